package memoryload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const page = 4096

// childEnv is the environment variable that makes the test binary a child.
const childEnv = "WEIR_TEST_HOG"

// Child returns unless this process is the child. The child reads orders, one
// on each line, and answers each with a line:
//
//	cross FILE FIGURE  use memory until FILE contains FIGURE, and 4 MiB more; the answer is a time
//	                   shortly before that
//	grow BYTES         use this much memory
//	free               free all memory
//	cache FILE BYTES   fill the page cache with a new file
//	burn               run two threads on one processor until the end
func Child() {
	if os.Getenv(childEnv) == "" {
		return
	}
	obey()
	os.Exit(0)
}

func obey() {
	must := func(err error) {
		if err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
	}
	region, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	must(err)
	must(unix.Madvise(region, unix.MADV_NOHUGEPAGE))
	top := 0
	touch := func(pages int) {
		for range pages {
			region[top] = 1
			top += page
		}
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		number := func(i int) int {
			n, err := strconv.Atoi(words[i])
			must(err)
			return n
		}
		switch words[0] {
		case "cross":
			f, err := os.Open(words[1])
			must(err)
			figure, buf := number(2), make([]byte, 32)
			for {
				before := Clock() // the crossing is after this
				touch(8)
				n, err := f.ReadAt(buf, 0)
				if !errors.Is(err, io.EOF) {
					must(err)
				}
				usage, err := strconv.Atoi(string(bytes.TrimSpace(buf[:n])))
				must(err)
				if usage >= figure {
					touch(4 << 20 / page) // the kernel compares every 128 pages
					fmt.Println(int64(before))
					break
				}
			}
			must(f.Close())
		case "grow":
			touch(number(1) / page)
			fmt.Println("grown")
		case "free":
			must(unix.Madvise(region, unix.MADV_DONTNEED))
			top = 0
			fmt.Println("free")
		case "cache":
			f, err := os.Create(words[1])
			must(err)
			_, err = io.CopyN(f, zeros{}, int64(number(2)))
			must(err)
			must(f.Sync())
			must(f.Close())
			fmt.Println("cached")
		case "burn":
			for range 2 {
				go func() {
					runtime.LockOSThread()
					var one unix.CPUSet
					must(unix.SchedGetaffinity(0, &one))
					for cpu := range 1024 {
						if one.IsSet(cpu) {
							one.Zero()
							one.Set(cpu)
							break
						}
					}
					must(unix.SchedSetaffinity(0, &one))
					for n := 0; ; n++ { // burn CPU
						_ = n
					}
				}()
			}
			fmt.Println("burning")
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }
