//go:build linux

package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCountsWhatDuCounts(t *testing.T) {
	f := func(name string, fill func(t *testing.T, dir string)) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir)
			if got, want := count(t, dir), truth(t, dir); got != want {
				t.Errorf("du = %+v, want %+v", got, want)
			}
		})
	}
	f("nothing", func(*testing.T, string) {})
	f("files", func(t *testing.T, dir string) {
		for i, n := range []int{0, 1, 4095, 4096, 4097, 1 << 20} {
			write(t, n, dir, "a", fmt.Sprint(i), "file")
		}
	})
	f("a sparse file", func(t *testing.T, dir string) {
		must(t, os.Truncate(write(t, 4096, dir, "sparse"), 1<<30))
	})
	f("more names than a buffer holds", func(t *testing.T, dir string) {
		for i := range 3000 {
			write(t, 0, dir, "wide", strings.Repeat("n", 100)+fmt.Sprint(i))
		}
	})
	f("hard links", func(t *testing.T, dir string) {
		file := write(t, 10_000, dir, "a", "one")
		must(t, os.Link(file, filepath.Join(dir, "two")))
		must(t, os.Link(file, filepath.Join(dir, "a", "three")))
	})
	f("links that lead out and round", func(t *testing.T, dir string) {
		write(t, 1<<20, t.TempDir(), "outside")
		must(t, os.Symlink(t.TempDir(), filepath.Join(dir, "out")))
		must(t, os.Symlink(".", filepath.Join(dir, "round")))
		must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
		must(t, os.Symlink("long/"+strings.Repeat("x", 200), filepath.Join(dir, "with a block")))
	})
	f("what is no file", func(t *testing.T, dir string) {
		must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600)) // an open would block
		write(t, 5, dir, "new\nline \\ \xff")
	})
	f("another device below", func(t *testing.T, dir string) {
		write(t, 5000, dir, "here")
		mount(t, "tmpfs", filepath.Join(dir, "there"), "tmpfs", "")
		write(t, 50_000, dir, "there", "file")
	})
	for seed := range uint64(20) {
		f(fmt.Sprintf("tree %d", seed), func(t *testing.T, dir string) {
			r := rand.New(rand.NewPCG(seed, 0))
			dirs, files := []string{dir}, []string(nil)
			for i := range 150 {
				at := filepath.Join(dirs[r.IntN(len(dirs))], fmt.Sprint(i))
				switch r.IntN(5) {
				case 0:
					must(t, os.Mkdir(at, 0o755))
					dirs = append(dirs, at)
				case 1:
					if len(files) > 0 {
						must(t, os.Link(files[r.IntN(len(files))], at))
					}
				case 2:
					must(t, os.Symlink(dirs[r.IntN(len(dirs))], at))
				default:
					files = append(files, write(t, r.IntN(20_000), at))
				}
			}
		})
	}
}

// TestCountsOneFile checks that a file or a link at the top counts itself.
func TestCountsOneFile(t *testing.T) {
	dir := t.TempDir()
	file, link := write(t, 5000, dir, "file"), filepath.Join(dir, "link")
	must(t, os.Symlink(dir, link))
	for _, path := range []string{file, link} {
		if got, want := count(t, path), truth(t, path); got != want {
			t.Errorf("du of %s = %+v, want %+v", filepath.Base(path), got, want)
		}
	}
}

// TestFilesVanish adds and removes files during the count. The files that stay are in every sum.
func TestFilesVanish(t *testing.T) {
	dir := t.TempDir()
	for i := range 50 {
		write(t, 100, dir, "stay", fmt.Sprint(i))
	}
	least := truth(t, dir).inodes
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			for i := range 50 {
				at := filepath.Join(dir, "stay", fmt.Sprintf("go%d", i))
				if err := errors.Join(os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(at, "f"), nil, 0o644), os.RemoveAll(at)); err != nil {
					stopped <- err
					return
				}
			}
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
		}
	}()
	for range 200 {
		if got := count(t, dir).inodes; got < least || got > least+2 {
			t.Errorf("%d inodes, want %d, and at most a directory and a file more", got, least)
			break
		}
	}
	close(stop)
	must(t, <-stopped)
}

// TestDirectoryReplaced replaces a directory by another one, a link or a file after it was listed.
func TestDirectoryReplaced(t *testing.T) {
	f := func(name string, replace func(t *testing.T, at, outside string)) {
		t.Run(name, func(t *testing.T) {
			at, outside := filepath.Join(t.TempDir(), "dir"), t.TempDir()
			write(t, 1, at, "file")
			write(t, 1, outside, "secret")
			var st unix.Stat_t
			must(t, unix.Lstat(at, &st))
			must(t, os.Rename(at, at+".old"))
			replace(t, at, outside)
			w := walker{pace: newPace(1), dev: st.Dev, links: map[uint64]struct{}{}}
			if err := w.enter(context.Background(), unix.AT_FDCWD, at, &st, 0); err != nil || w.use != (diskUse{}) {
				t.Errorf("enter = %v, and counted %+v, want nothing", err, w.use)
			}
		})
	}
	f("by nothing", func(*testing.T, string, string) {})
	f("by a link", func(t *testing.T, at, outside string) { must(t, os.Symlink(outside, at)) })
	f("by a file", func(t *testing.T, at, _ string) { write(t, 1, at) })
	f("by another", func(t *testing.T, at, outside string) { must(t, os.Rename(outside, at)) })
}

func TestCannotCount(t *testing.T) {
	f := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("err = %v, want %q in it", err, want)
		}
	}
	_, err := countTree(context.Background(), filepath.Join(t.TempDir(), "none"), newPace(1))
	f(err, "no such file")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v, which is not fs.ErrNotExist", err)
	}

	wide := t.TempDir()
	for i := range stepsPerCheck {
		write(t, 0, wide, fmt.Sprint(i))
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("enough"))
	_, err = countTree(ctx, wide, newPace(1))
	f(err, "enough")

	deep := t.TempDir()
	dir, err := os.OpenRoot(deep)
	must(t, err)
	for range maxDepth { // deeper than the longest path, which a pod can create
		must(t, dir.Mkdir("d", 0o755))
		below, err := dir.OpenRoot("d")
		must(t, err)
		dir.Close()
		dir = below
	}
	dir.Close()
	_, err = countTree(context.Background(), deep, newPace(1))
	f(err, "more than 1000 deep")
}

func TestClosedDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: cannot become another user")
	}
	dir := t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	must(t, os.Chmod(dir, 0o755))
	write(t, 1, dir, "closed", "file")
	must(t, os.Chmod(filepath.Join(dir, "closed"), 0o700))
	errs := make(chan error)
	go func() {
		runtime.LockOSThread() // it is never unlocked, so the thread ends with its goroutine
		if err := unix.Setfsuid(65534); err != nil {
			errs <- err
			return
		}
		_, err := countTree(context.Background(), dir, newPace(1))
		errs <- err
	}()
	if err := <-errs; !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "open closed") {
		t.Errorf("err = %v, want that closed may not be opened", err)
	}
}
