package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
)

// progressDelay is the time before the line is shown, and progressInterval the time between two changes of it.
const (
	progressDelay    = time.Second
	progressInterval = 200 * time.Millisecond
)

// Progress shows what a command is doing while it takes long: one line on the terminal of standard
// error, which is gone when the command prints its answer. Several goroutines may use it. A nil Progress shows nothing.
type Progress struct {
	out   io.Writer
	width func() int
	stop  sync.Once
	end   chan struct{} // closed by Stop
	ended chan struct{} // closed when the line is gone

	mu          sync.Mutex
	what        string
	done, total int64
}

// StartProgress shows a line on w from the first second on, until Stop. It returns nil if w is not a
// terminal.
func StartProgress(w io.Writer) *Progress {
	t := TerminalOf(w)
	if t.Size == nil {
		return nil
	}
	return NewProgress(w, func() int {
		width, _, err := t.Size()
		if err != nil {
			return 80
		}
		return width
	})
}

// NewProgress is Start for a terminal of a width that a function returns.
func NewProgress(w io.Writer, width func() int) *Progress {
	p := &Progress{out: w, width: width, end: make(chan struct{}), ended: make(chan struct{})}
	go p.run()
	return p
}

// Set describes what the command is doing, and how much of it is done. If total is 0, that is not
// known. A call costs less than a microsecond.
func (p *Progress) Set(what string, done, total int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.done, p.total = what, done, total
}

// Query is Set for one of several requests of a query to a Prometheus. history.Options.Progress may
// be this method.
func (p *Progress) Query(query string, piece, pieces int) {
	p.Set(fmt.Sprintf("asking Prometheus, part %d of %d: %s", piece, pieces, query), 0, 0)
}

// Stop removes the line. It may be called several times.
func (p *Progress) Stop() {
	if p == nil {
		return
	}
	p.stop.Do(func() { close(p.end) })
	<-p.ended
}

func (p *Progress) run() {
	defer close(p.ended)
	timer := time.NewTimer(progressDelay)
	defer timer.Stop()
	shown := ""
	// A line is replaced by writing over it, because not every terminal has escape sequences.
	show := func(text string) {
		if text == shown {
			return
		}
		fmt.Fprintf(p.out, "\r%-*s\r%s", len(shown), "", text)
		shown = text
	}
	for {
		select {
		case <-timer.C:
			show(p.text())
			timer.Reset(progressInterval)
		case <-p.end:
			show("")
			return
		}
	}
}

// text returns the line, which is shorter than the terminal is wide.
func (p *Progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	share := ""
	if p.total > 0 {
		share = fmt.Sprintf(" %d%%", 100*min(p.done, p.total)/p.total)
	}
	if p.what == "" {
		return ""
	}
	const dots = len("...")
	room := p.width() - 1 - len(share) - dots
	if room < 10 {
		return ""
	}
	return strings.TrimSpace(humanize.Excerpt(p.what, room) + share)
}
