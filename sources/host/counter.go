//go:build linux

package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"github.com/weir-metrics/weir/sources/host/kernel"
)

// counter is a cgroup's CPU time and when it was read.
//
// The kernel says the value, not the moment: that lies between our looks at
// the clock before and after, and at is their middle. When we lost the CPU in
// between they are far apart, and the read is tried again; the narrowest try
// counts. So at is wrong by at most half of within.
type counter struct {
	nanoseconds uint64
	at          time.Time
	within      time.Duration
}

const (
	// narrow is how far apart the looks at the clock may be: some 20 times what
	// a read takes undisturbed, and 1e-5 of the shortest window rates use.
	narrow = 100 * time.Microsecond
	tries  = 3
)

// readCounter reads a cgroup's CPU time from its directory: cpuacct.usage
// on version 1, usage_usec in cpu.stat on version 2.
func readCounter(dir string, v2 bool) (counter, error) {
	name, parse := "cpuacct.usage", kernel.ParseUint
	if v2 {
		name, parse = "cpu.stat", kernel.ParseCPUStat
	}
	file, err := os.Open(path.Join(dir, name))
	if err != nil {
		return counter{}, fmt.Errorf("read CPU time: %w", err)
	}
	defer file.Close()
	var best counter
	var data [1024]byte // usage_usec is cpu.stat's first line
	for try := range tries {
		before := time.Now()
		n, err := file.ReadAt(data[:], 0)
		within := time.Since(before)
		if err != nil && !errors.Is(err, io.EOF) {
			return counter{}, fmt.Errorf("read CPU time: %w", err)
		}
		if try > 0 && within >= best.within {
			continue
		}
		value, err := parse(data[:n])
		if err != nil {
			return counter{}, fmt.Errorf("read CPU time: parse %s: %w", file.Name(), err)
		}
		best = counter{value, before.Add(within / 2), within}
		if within <= narrow {
			break
		}
	}
	return best, nil
}
