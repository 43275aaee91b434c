package parity

import (
	"flag"
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/weir-metrics/weir/autoscaler"
)

var (
	seed  = flag.Uint64("seed", 1, "of the random cases; another finds others")
	cases = flag.Uint64("cases", 20_000, "how many, half of them calls of the calculator and half lives of an autoscaler")
	first = flag.Uint64("first", 0, "number of the first case of each half")
	shown = flag.Bool("coverage", false, "print how often each branch was met")
)

// block is the number of cases with the same feature gates. Upstream's gates
// belong to the process, and it takes time to set them.
const block = 64

// enough is the number of cases that must meet every branch.
const enough = 10_000

// run runs half of the cases, one at a time, with a clock that does not move.
// It fails with the first few differences, or if a branch was never met.
func run(t *testing.T, once func(t *testing.T, number uint64, gates autoscaler.Settings, seen coverage) string, branches []string) {
	count := max(1, *cases/2)
	seen := coverage{}
	failures := 0
	for number := *first; number < *first+count && failures < 3; number++ {
		gates := newGates(newRandom(*seed, ^(number / block)))
		difference := once(t, number, gates, seen)
		if difference == "" {
			continue
		}
		failures++
		t.Errorf("case %d of seed %d differs. Again:\n  go test -C test/parity -run '^%s$' -seed %d -first %d -cases 1\n%s",
			number, *seed, t.Name(), *seed, number, difference)
	}
	if *shown || testing.Verbose() {
		t.Logf("%d cases of seed %d\n%s", count, *seed, seen)
	}
	if count < enough || failures > 0 {
		return
	}
	for _, branch := range branches {
		if seen[branch] == 0 {
			t.Errorf("%d cases never met the branch %q", count, branch)
		}
	}
}

// guarded returns the result of find, or a text if it panicked.
func guarded(find func() string) (difference string) {
	defer func() {
		if p := recover(); p != nil {
			difference = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return find()
}
