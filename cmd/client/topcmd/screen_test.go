package topcmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/internal/humanize"
)

// keyed returns the message of a key: a letter, or the name of another key.
func keyed(name string) tea.KeyPressMsg {
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "backspace": tea.KeyBackspace, "space": tea.KeySpace, "end": tea.KeyEnd,
		"down": tea.KeyDown, "up": tea.KeyUp, "left": tea.KeyLeft, "right": tea.KeyRight}
	if code, ok := codes[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// newScreen returns a screen of the test cluster's pods, after one request.
func newScreen(t *testing.T) *screen { return newScreenOf(t, usage.Pods) }

func newScreenOf(t *testing.T, r usage.Resource) *screen {
	t.Helper()
	v := &viewer{lister: newTestCluster(), resource: r, flags: &flags{interval: time.Second, timeout: time.Second, sortBy: "name"}}
	s := &screen{viewer: v, ctx: t.Context(), unfolded: map[string]bool{}, sortBy: "name"}
	update(t, s, s.request()())
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

func TestScreen(t *testing.T) {
	f := func(what string, s *screen, want string) {
		t.Helper()
		if diff := cmp.Diff(want, drawn(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	s := newScreen(t)
	f("at first", s, `weir top pods  12:00:00  3 of 3  cpu 340m  memory 485Mi  (1 missing)  by name
NAMESPACE   NAME    CPU(cores)   MEMORY(bytes)   CPU TREND
bank        vault   -            5Mi
shop        web-1   250m         180Mi           █
shop        web-2   90m          300Mi           █

`+keys+"\n")

	update(t, s, keyed("m"), keyed("s"))
	f("by memory, with the sum", s, `weir top pods  12:00:00  3 of 3  cpu 340m  memory 485Mi  (1 missing)  by memory
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
	f("after an error", s, `error: connection\x1b refused  (weir top pods  12:00:00  3 of 3  cpu 340m  memory 485Mi  (1 missing)
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

// Groups have the sums of their pods and say how many of these were measured.
func TestTree(t *testing.T) {
	f := func(what string, s *screen, want string) {
		t.Helper()
		if diff := cmp.Diff(want, drawn(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	s := newScreen(t)
	update(t, s, tea.WindowSizeMsg{Width: 100, Height: 12})
	press(t, s, "t")
	f("folded", s, `weir top pods per workload  12:00:00  3 of 3 pods  cpu 340m  memory 485Mi  (1 missing)  by name
  NAME     CPU(cores)   MEMORY(bytes)   PODS     CPU TREND
> ▸ bank   -            5Mi             0 of 1
  ▸ shop   340m         480Mi           2        █





1 pod without a number. bank/vault: cpu FirstSample (it was first seen too recently, and a rate
needs two readings)
`+treeKeys+"\n")
	press(t, s, "e", "end", "up")
	f("groups unfolded", s, `weir top pods per workload  12:00:00  3 of 3 pods  cpu 340m  memory 485Mi  (1 missing)  by name
  NAME                 CPU(cores)   MEMORY(bytes)   PODS     CPU TREND
  ▾ bank               -            5Mi             0 of 1
    ▸ vault            -            5Mi
  ▾ shop               340m         480Mi           2        █
    ▾ Deployment/web   340m         480Mi           2        █
>     ▸ web-1          250m         180Mi                    █
      ▸ web-2          90m          300Mi                    █



`+treeKeys+"\n")
	press(t, s, "right")
	update(t, s, s.request()())
	s.asked = noon
	f("a pod unfolded, after another answer", s, `weir top pods per workload  12:00:00  3 of 3 pods  cpu 340m  memory 485Mi  (1 missing)  by name
  NAME                 CPU(cores)   MEMORY(bytes)   PODS     CPU TREND
  ▾ bank               -            5Mi             0 of 1
    ▸ vault            -            5Mi
  ▾ shop               340m         480Mi           2        ██
    ▾ Deployment/web   340m         480Mi           2        ██
>     ▾ web-1          250m         180Mi                    ██
          app          250m         180Mi                    █
      ▸ web-2          90m          300Mi                    ██


`+treeKeys+"\n")
	press(t, s, "/", "v", "a", "u", "enter")
	f("filtered", s, `weir top pods per workload  12:00:00  1 of 3 pods  cpu -  memory 5Mi  (1 missing)  by name  with vau
  NAME        CPU(cores)   MEMORY(bytes)   PODS     CPU TREND
> ▾ bank      -            5Mi             0 of 1
    ▸ vault   -            5Mi





1 pod without a number. bank/vault: cpu FirstSample (it was first seen too recently, and a rate
needs two readings)
`+treeKeys+"\n")
	press(t, s, "/", "esc", "left", "left", "m")
	f("folded from within", s, `weir top pods per workload  12:00:00  3 of 3 pods  cpu 340m  memory 485Mi  (1 missing)  by memory
  NAME                 CPU(cores)   MEMORY(bytes)   PODS     CPU TREND
  ▾ shop               340m         480Mi           2        ██
>   ▾ Deployment/web   340m         480Mi           2        ██
      ▸ web-2          90m          300Mi                    ██
      ▸ web-1          250m         180Mi                    ██
  ▾ bank               -            5Mi             0 of 1
    ▸ vault            -            5Mi



`+treeKeys+"\n")
	press(t, s, "t", "right")
	f("per node", s, `weir top pods per node  12:00:00  3 of 3 pods  cpu 340m  memory 485Mi  (1 missing)  by memory
  NAME             CPU(cores)   MEMORY(bytes)   PODS     CPU TREND
> ▾ n1             340m         480Mi           2        ██
    ▸ shop/web-2   90m          300Mi                    ██
    ▸ shop/web-1   250m         180Mi                    ██
  ▸ n2             -            5Mi             0 of 1





`+treeKeys+"\n")
	press(t, s, "t")
	f("the list again", s, `weir top pods  12:00:00  3 of 3  cpu 340m  memory 485Mi  (1 missing)  by memory
NAMESPACE   NAME    CPU(cores)   MEMORY(bytes)   CPU TREND
shop        web-2   90m          300Mi           ██
shop        web-1   250m         180Mi           ██
bank        vault   -            5Mi






`+keys+"\n")

	s = newScreenOf(t, usage.Nodes)
	update(t, s, tea.WindowSizeMsg{Width: 60, Height: 10})
	press(t, s, "t", "right", "end")
	f("nodes have their own numbers", s, `weir top nodes  12:00:00  3 of 3  cpu 1735m  memory 4Gi  (1
  NAME             CPU(cores)   MEMORY(bytes)   PODS     CPU
  ▾ n1             1235m        3Gi             2        █
    ▸ shop/web-1   250m         180Mi
    ▸ shop/web-2   90m          300Mi
  ▸ n2             500m         1Gi             0 of 1   █
> ▸ n3             -            -               0

cpu,memory NodeTimeout (the node did not answer in time)
← → fold, unfold  e all  t next view  c cpu  m memory  n nam
`)
}

// The rows and the last line stay visible under a reason of many lines.
func TestLongReasonOnASmallTerminal(t *testing.T) {
	s := newScreen(t)
	update(t, s, tea.WindowSizeMsg{Width: 20, Height: 8})
	press(t, s, "t")
	const want = `weir top pods per wo
  NAME     CPU(cores
> ▸ bank   -
1 pod without a
number. bank/vault:
cpu FirstSample (it
was first seen too
← → fold, unfold  e
`
	if diff := cmp.Diff(want, drawn(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Containers are requested only while a pod is unfolded.
func TestTreeAsksForWhatIsUnfolded(t *testing.T) {
	s := newScreen(t)
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

// A pod that two nodes report counts once, with the numbers.
func TestTreeCountsPodsOnce(t *testing.T) {
	s := newScreen(t)
	elsewhere := usage.Item{Node: "n0", Namespace: "shop", Pod: "web-1", Workload: usage.Workload{Kind: "Deployment", Name: "web"}}
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
