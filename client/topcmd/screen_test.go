package topcmd

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/humanize"
)

// keyed returns the message of a key: a letter, or the name of another key.
func keyed(name string) tea.KeyPressMsg {
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "backspace": tea.KeyBackspace, "space": tea.KeySpace, "end": tea.KeyEnd}
	if code, ok := codes[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// newScreen returns a screen of the test cluster's pods, after one request.
func newScreen(t *testing.T) *screen {
	t.Helper()
	v := &viewer{lister: newTestCluster(), resource: usage.Pods, flags: &flags{interval: time.Second, timeout: time.Second, sortBy: "name"}}
	s := &screen{viewer: v, ctx: t.Context(), seen: map[string][]float64{}, sortBy: "name"}
	update(t, s, s.request())
	update(t, s, tea.WindowSizeMsg{Width: 100, Height: 7})
	s.asked = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	return s
}

func update(t *testing.T, s *screen, msgs ...tea.Msg) (last tea.Cmd) {
	t.Helper()
	for _, m := range msgs {
		_, last = s.Update(m)
	}
	return last
}

// drawn returns the lines of the screen without spaces at their ends.
func drawn(s *screen) string {
	var b strings.Builder
	for line := range strings.Lines(s.View().Content + "\n") {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

func TestScreen(t *testing.T) {
	f := func(what string, s *screen, want string) {
		t.Helper()
		if diff := cmp.Diff(want, drawn(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	s := newScreen(t)
	f("at first", s, `weir top pods  12:00:00  3 of 3  cpu 340m  memory 485Mi  by name
NAMESPACE   NAME    CPU(cores)   MEMORY(bytes)   CPU TREND
bank        vault   -            5Mi
shop        web-1   250m         180Mi           █
shop        web-2   90m          300Mi           █

`+keys+"\n")

	update(t, s, keyed("m"), keyed("s"))
	f("by memory, with the sum", s, `weir top pods  12:00:00  3 of 3  cpu 340m  memory 485Mi  by memory
NAMESPACE   NAME    CPU(cores)   MEMORY(bytes)   CPU TREND
shop        web-2   90m          300Mi           █
shop        web-1   250m         180Mi           █
bank        vault   -            5Mi
-           (sum)   340m         485Mi
`+keys+"\n")

	update(t, s, keyed("/"), keyed("w"), keyed("e"), keyed("x"), keyed("backspace"))
	f("while filtering", s, `weir top pods  12:00:00  2 of 3  cpu 340m  memory 480Mi  by memory  with we
NAMESPACE   NAME    CPU(cores)   MEMORY(bytes)   CPU TREND
shop        web-2   90m          300Mi           █
shop        web-1   250m         180Mi           █
-           (sum)   340m         480Mi

filter: we_  enter keep  esc clear
`)
	update(t, s, keyed("enter"), keyed("s"), keyed("c"), keyed("space"))
	f("filtered and paused", s, `weir top pods  12:00:00  2 of 3  cpu 340m  memory 480Mi  by cpu  with we  paused
NAMESPACE   NAME    CPU(cores)   MEMORY(bytes)   CPU TREND
shop        web-1   250m         180Mi           █
shop        web-2   90m          300Mi           █


`+keys+"\n")
	update(t, s, keyed("/"), keyed("esc"))

	update(t, s, answer{err: errors.New("connection\x1b refused"), at: s.asked})
	f("after an error", s, `error: connection\x1b refused  (weir top pods  12:00:00  3 of 3  cpu 340m  memory 485Mi  by cpu  pau
NAMESPACE   NAME    CPU(cores)   MEMORY(bytes)   CPU TREND
shop        web-1   250m         180Mi           █
shop        web-2   90m          300Mi           █
bank        vault   -            5Mi

`+keys+"\n")

	update(t, s, tea.WindowSizeMsg{Width: 30, Height: 4}, keyed("end"))
	f("on a small terminal, at the end", s, `error: connection\x1b refused
NAMESPACE   NAME    CPU(cores)
bank        vault   -
c cpu  m memory  n name  / fil
`)
}

// A paused screen does not ask. Keys that leave it do.
func TestScreenCommands(t *testing.T) {
	s := newScreen(t)
	if _, ok := update(t, s, tick{})().(answer); !ok {
		t.Error("a tick does not ask")
	}
	update(t, s, keyed("space"))
	s.lister = nil // a request would panic
	if update(t, s, tick{}) == nil {
		t.Error("a paused screen does not wait for the next tick")
	}
	for _, name := range []string{"q", "esc"} {
		if cmd := update(t, s, keyed(name)); cmd == nil || cmd() != tea.Quit() {
			t.Errorf("%s does not leave", name)
		}
	}
	update(t, s, keyed("/"))
	if cmd := update(t, s, keyed("q")); cmd != nil || s.filter != "q" {
		t.Errorf("q in a filter: filter %q", s.filter)
	}
	if cmd := update(t, s, tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}); cmd == nil || cmd() != tea.Quit() {
		t.Error("ctrl+c does not leave a filter")
	}
}

func TestTrend(t *testing.T) {
	for want, values := range map[string][]float64{"": nil, "▁": {0}, "█": {5}, "▁▅█▇": {1, 500, 1000, 870}} {
		if got := trend(values); got != want {
			t.Errorf("trend of %v is %q, want %q", values, got, want)
		}
	}
	if got := truncate(humanize.Printable("äöü"), 2); got != "äö" {
		t.Errorf("cut to 2: %q", got)
	}
}
