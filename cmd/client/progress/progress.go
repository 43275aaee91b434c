// Package progress shows what a command is doing while it takes long: one line on the terminal of
// standard error, which is gone when the command prints its answer.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/weir-metrics/weir/cmd/client/terminal"
	"github.com/weir-metrics/weir/internal/humanize"
)

// delay is the time before the line is shown, and interval the time between two changes of it.
const (
	delay    = time.Second
	interval = 200 * time.Millisecond
)

// Line is the line. Several goroutines may use it. A nil Line shows nothing.
type Line struct {
	out   io.Writer
	width func() int
	stop  sync.Once
	end   chan struct{} // closed by Stop
	ended chan struct{} // closed when the line is gone

	mu          sync.Mutex
	what        string
	done, total int64
}

// Start shows a line on w from the first second on, until Stop. It returns nil if w is not a
// terminal.
func Start(w io.Writer) *Line {
	t := terminal.Of(w)
	if t.Size == nil {
		return nil
	}
	return New(w, func() int {
		width, _, err := t.Size()
		if err != nil {
			return 80
		}
		return width
	})
}

// New is Start for a terminal of a width that a function returns.
func New(w io.Writer, width func() int) *Line {
	l := &Line{out: w, width: width, end: make(chan struct{}), ended: make(chan struct{})}
	go l.run()
	return l
}

// Set says what the command is doing, and how much of it is done. If total is 0, that is not
// known. A call costs less than a microsecond.
func (l *Line) Set(what string, done, total int64) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.what, l.done, l.total = what, done, total
}

// Query is Set for one of several requests of a query to a Prometheus. history.Options.Progress may
// be this method.
func (l *Line) Query(query string, piece, of int) {
	l.Set(fmt.Sprintf("asking Prometheus, part %d of %d: %s", piece, of, query), 0, 0)
}

// Stop removes the line. It may be called several times.
func (l *Line) Stop() {
	if l == nil {
		return
	}
	l.stop.Do(func() { close(l.end) })
	<-l.ended
}

func (l *Line) run() {
	defer close(l.ended)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	shown := ""
	// A line is replaced by writing over it, because not every terminal has escape sequences.
	show := func(text string) {
		if text == shown {
			return
		}
		fmt.Fprintf(l.out, "\r%-*s\r%s", len(shown), "", text)
		shown = text
	}
	for {
		select {
		case <-timer.C:
			show(l.text())
			timer.Reset(interval)
		case <-l.end:
			show("")
			return
		}
	}
}

// text returns the line, which is shorter than the terminal is wide.
func (l *Line) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	share := ""
	if l.total > 0 {
		share = fmt.Sprintf(" %d%%", 100*min(l.done, l.total)/l.total)
	}
	if l.what == "" {
		return ""
	}
	const dots = len("...")
	room := l.width() - 1 - len(share) - dots
	if room < 10 {
		return ""
	}
	return strings.TrimSpace(humanize.Excerpt(l.what, room) + share)
}
