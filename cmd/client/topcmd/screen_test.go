package topcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/cockroachdb/datadriven"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
)

// keyed returns the message of a key: a letter, or the name of another key.
func keyed(name string) tea.KeyPressMsg {
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "backspace": tea.KeyBackspace, "space": tea.KeySpace, "end": tea.KeyEnd,
		"pgdown": tea.KeyPgDown, "down": tea.KeyDown, "up": tea.KeyUp, "left": tea.KeyLeft, "right": tea.KeyRight}
	if code, ok := codes[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// newTestScreen returns a screen of the test cluster's pods, after one request.
func newTestScreen(t *testing.T) *screen { return newScreenOf(t, usage.Pods) }

func newScreenOf(t *testing.T, r usage.Resource) *screen {
	t.Helper()
	return newScreenWith(t, newTestCluster(), r)
}

func newScreenWith(t *testing.T, lister cli.Lister, r usage.Resource) *screen {
	t.Helper()
	v := &viewer{lister: lister, resource: r, flags: &flags{interval: time.Second, timeout: time.Second, order: ordering{key: "name"}, known: true}, explain: testExplain}
	s, err := newScreen(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	update(t, s, tea.WindowSizeMsg{Width: 100, Height: 7})
	s.asked = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	return s
}

// testExplain writes an explanation of three lines.
func testExplain(_ context.Context, out io.Writer, args ...string) {
	fmt.Fprintf(out, "%s has a number\n\n  cpu    250m\n  memory 180Mi\n", args[len(args)-1])
}

// draw acts on a command of a transcript about a screen. Each begins with "screen", which opens one.
func draw(t *testing.T, s *screen, d *datadriven.TestData) *screen {
	t.Helper()
	switch d.Cmd {
	case "screen":
		lister := newTestCluster()
		if d.HasArg("history") {
			lister.history = []float64{20e6, 60e6, 40e6, 80e6}
		}
		s = newScreenWith(t, lister, usage.Resource(d.CmdArgs[0].Key))
	case "press":
		press(t, s, strings.Fields(d.Input)...)
	case "answer": // a reading later
		for _, items := range s.lister.(*testCluster).lists {
			for i := range items {
				if items[i].CPU != nil {
					cpu := *items[i].CPU
					cpu.Time = cpu.Time.Add(15 * time.Second)
					items[i].CPU = &cpu
				}
			}
		}
		update(t, s, s.request()())
	case "fail":
		update(t, s, answer{err: errors.New(d.Input), at: noon})
	case "resize":
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	width, height := s.width, s.height
	for name, to := range map[string]*int{"width": &width, "height": &height} {
		if d.HasArg(name) {
			d.ScanArgs(t, name, to)
		}
	}
	s.Colour = d.HasArg("colour")
	update(t, s, tea.WindowSizeMsg{Width: width, Height: height})
	s.asked = noon
	return s
}

func update(t *testing.T, s *screen, msgs ...tea.Msg) (last tea.Cmd) {
	t.Helper()
	for _, m := range msgs {
		_, last = s.Update(m)
	}
	return last
}

// press presses keys, and runs the request that each begins.
func press(t *testing.T, s *screen, names ...string) {
	t.Helper()
	for _, name := range names {
		if cmd := update(t, s, keyed(name)); cmd != nil {
			update(t, s, cmd())
		}
	}
}

// drawn returns the lines of the screen without spaces at their ends.
func drawn(s *screen) string {
	var b strings.Builder
	for line := range strings.Lines(s.View().Content + "\n") {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// Containers are requested only while a pod is unfolded.
func TestTreeAsksForWhatIsUnfolded(t *testing.T) {
	s := newTestScreen(t)
	press(t, s, "t", "e")
	if s.tree.containers != nil {
		t.Errorf("containers while no pod is unfolded: %v", s.tree.containers)
	}
	press(t, s, "end", "right")
	if len(s.tree.containers) != 1 {
		t.Errorf("containers of an unfolded pod: %v", s.tree.containers)
	}
	press(t, s, "left")
	before := s.request()()
	press(t, s, "right")
	if update(t, s, before); len(s.tree.containers) != 1 {
		t.Errorf("containers after an answer to a request from before the pod was unfolded: %v", s.tree.containers)
	}
	press(t, s, "left")
	if update(t, s, s.request()()); s.tree.containers != nil {
		t.Errorf("containers after the pod was folded: %v", s.tree.containers)
	}
}

// The tree of containers has the pods that have a listed container, and sums only those.
func TestTreeOfContainers(t *testing.T) {
	s := newScreenOf(t, usage.Containers)
	press(t, s, "t", "e")
	var names []string
	for _, r := range s.visibleRows() {
		names = append(names, r.name+" "+cpu().text(&r.Item))
	}
	if want := []string{"shop 250m", "Deployment/web 250m", "web-1 250m"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// Only the first request for an item asks for its history.
func TestHistoryIsAskedOnce(t *testing.T) {
	lister := newTestCluster()
	s := newScreenWith(t, lister, usage.Pods)
	f := func(what string, want int) {
		t.Helper()
		if lister.asked.History != want {
			t.Errorf("%s: asked for %d readings, want %d", what, lister.asked.History, want)
		}
	}
	f("at first", trendLength)
	update(t, s, s.request()())
	f("after a tick", 0)
	press(t, s, "t", "e", "end", "right")
	f("containers of a pod that is unfolded", trendLength)
	update(t, s, s.request()())
	f("after another tick", 0)
}

// A pod that two nodes report counts once, with the numbers.
func TestTreeCountsPodsOnce(t *testing.T) {
	s := newTestScreen(t)
	elsewhere := usage.Item{Node: "n0", Namespace: "shop", Pod: "web-1", Workload: cluster.Owner{Kind: "Deployment", Name: "web"}}
	again := used(elsewhere, 999_000_000, 1<<30)
	s.tree = treeItems{pods: slices.Concat([]usage.Item{elsewhere}, s.list.Items, []usage.Item{again})}
	s.grouping = byWorkload
	for name, row := range s.buildTree().children {
		if got := fmt.Sprint(cpu().text(&row.Item), " of ", podCount(row.pods)); name == "shop" && got != "340m of 2" {
			t.Errorf("%s: got %s, want 340m of 2", name, got)
		}
	}
}

// A paused screen does not ask. Keys that leave it do.
func TestScreenCommands(t *testing.T) {
	s := newTestScreen(t)
	if _, ok := update(t, s, tick{})().(answer); !ok {
		t.Error("a tick does not ask")
	}
	update(t, s, keyed("space"))
	s.lister = nil // a request would panic
	if update(t, s, tick{}) == nil {
		t.Error("a paused screen does not wait for the next tick")
	}
	if cmd := update(t, s, keyed("q")); cmd == nil || cmd() != tea.Quit() {
		t.Error("q does not leave")
	}
	if cmd := update(t, s, keyed("esc")); cmd != nil {
		t.Error("esc leaves the list, from which there is no way back")
	}
	update(t, s, keyed("/"))
	if cmd := update(t, s, keyed("q")); cmd != nil || s.filter != "q" {
		t.Errorf("q in a filter: filter %q", s.filter)
	}
	if cmd := update(t, s, tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}); cmd == nil || cmd() != tea.Quit() {
		t.Error("ctrl+c does not leave a filter")
	}
}

// A filter may leave no row, and a terminal may have one line.
func TestScreenWithoutRows(t *testing.T) {
	s := newTestScreen(t)
	press(t, s, "s", "/", "x", "y")
	if got := drawn(s); !strings.Contains(got, "0 of 3") || !strings.Contains(got, "(sum)") {
		t.Errorf("with a filter for nothing, and the sum:\n%s", got)
	}
	press(t, s, "esc", "?")
	update(t, s, tea.WindowSizeMsg{Width: 100, Height: 1})
	if got := drawn(s); !strings.Contains(got, "weir top: keys") {
		t.Errorf("keys on a terminal of one line:\n%s", got)
	}
}

func TestTrend(t *testing.T) {
	for want, values := range map[string][]float64{"": nil, "▁": {0}, "█": {5}, "▁▅█▇": {1, 500, 1000, 870}} {
		if got := trend(values); got != want {
			t.Errorf("trend of %v is %q, want %q", values, got, want)
		}
	}
	if got := humanize.Truncate(humanize.Printable("äöü"), 2); got != "äö" {
		t.Errorf("cut to 2: %q", got)
	}
}
