package cli

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// screen is a terminal of one line that knows only text and carriage returns.
type screen struct {
	mu   sync.Mutex
	line []rune
	at   int
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range string(b) {
		if r == '\r' {
			s.at = 0
			continue
		}
		for len(s.line) <= s.at {
			s.line = append(s.line, ' ')
		}
		s.line[s.at] = r
		s.at++
	}
	return len(b), nil
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimRight(string(s.line), " ")
}

func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s screen
		line := NewProgress(&s, func() int { return 40 })
		expect := func(when, want string) {
			t.Helper()
			if got := s.String(); got != want {
				t.Errorf("%s: the line is %q, want %q", when, got, want)
			}
			if len(s.line) >= 40 {
				t.Errorf("%s: the line is as wide as the terminal, which would scroll", when)
			}
		}
		line.Set("reading run.weirrec", 1, 4)
		time.Sleep(progressDelay - time.Millisecond)
		expect("within the first second", "")
		time.Sleep(2 * time.Millisecond)
		expect("after it", "reading run.weirrec 25%")
		line.Set("reading run.weirrec", 9, 4)
		time.Sleep(progressInterval)
		expect("at the end", "reading run.weirrec 100%")
		line.Query("sum(a_metric_with_a_long_name)\n", 2, 11)
		time.Sleep(progressInterval)
		expect("while Prometheus is asked", "asking Prometheus, part 2 of 11: sum...")
		line.Set("done", 0, 0)
		time.Sleep(progressInterval)
		expect("after a longer line", "done")
		line.Stop()
		expect("after Stop", "")
		line.Stop()
	})
}

// A command that ends within a second writes nothing, not even a carriage return.
func TestShortCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		line := NewProgress(&out, func() int { return 80 })
		line.Set("reading", 1, 2)
		time.Sleep(progressDelay / 2)
		line.Stop()
		if out.Len() > 0 {
			t.Errorf("wrote %q", out.String())
		}
	})
}

// What is not a terminal gets nothing.
func TestNoTerminal(t *testing.T) {
	var out bytes.Buffer
	line := StartProgress(&out)
	line.Set("reading", 1, 2)
	line.Query("up", 1, 1)
	line.Stop()
	if line != nil || out.Len() > 0 {
		t.Errorf("a buffer got %q", out.String())
	}
}
