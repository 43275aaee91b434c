//go:build linux

package harness

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress writes a line for each completed step.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	start time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w: w, start: time.Now()} }

func (p *progress) logf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "%6.1fs  %s\n", time.Since(p.start).Seconds(), fmt.Sprintf(format, args...))
}

// step runs f and writes how long it took. If f fails, it writes nothing and
// returns the error.
func (p *progress) step(name string, f func() error) error {
	begin := time.Now()
	if err := f(); err != nil {
		return err
	}
	p.logf("%-42s %5.1fs", name, time.Since(begin).Seconds())
	return nil
}
