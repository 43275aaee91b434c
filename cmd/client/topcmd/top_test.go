package topcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// testCluster answers with fixed lists. It stores the last query.
type testCluster struct {
	lists map[usage.Resource][]usage.Item
	asked usage.Query
	// history is that of each item, for queries that want it.
	history []float64
}

func (t *testCluster) List(_ context.Context, r usage.Resource, q usage.Query) (*usage.List, error) {
	t.asked = q
	list := &usage.List{APIVersion: weirdev.APIVersion, Kind: r.Kind() + "List", Resource: r}
	for _, it := range t.lists[r] {
		name := map[usage.Resource]string{
			usage.Nodes: string(it.Node), usage.Pods: string(it.Pod), usage.Containers: it.Container, usage.Cgroups: string(it.Cgroup),
		}[r]
		byName, _ := path.Match(q.Name, name)
		byNamespace, _ := path.Match(q.Namespace, string(it.Namespace))
		byNode, _ := path.Match(q.Node, string(it.Node))
		if (q.Name == "" || byName) && (q.Namespace == "" || byNamespace) && (q.Node == "" || byNode) {
			if q.History > 0 && it.CPU != nil {
				it.CPUHistory = append(slices.Clone(t.history), float64(it.CPU.Nanocores))
			}
			list.Items = append(list.Items, it)
		}
	}
	return list, nil
}

func used(it usage.Item, nanocores, bytes int64) usage.Item {
	it.CPU = &usage.CPUUsage{Nanocores: nanocores, Time: noon, WindowSeconds: 15.02}
	it.Memory = &usage.MemoryUsage{WorkingSetBytes: bytes, Time: noon}
	return it
}

func newTestCluster() *testCluster {
	late := []usage.GroupReason{
		{Group: "cpu", Reason: "NodeTimeout", Message: "the node did not answer in time"},
		{Group: "memory", Reason: "NodeTimeout", Message: "the node did not answer in time"},
	}
	n1 := used(usage.Item{Node: "n1"}, 1_234_567_890, 3<<30)
	n1.Metrics = map[string]float64{"cpu/node_utilization": 0.3086, "memory/node_utilization": 0.5, "memory/rss": 2 << 30, "network/rx_rate": 2048}
	n2 := used(usage.Item{Node: "n2"}, 500_000_000, 1<<30)
	n2.Metrics = map[string]float64{"cpu/node_capacity": 4e9, "memory/node_capacity": 4 << 30}
	three := int32(3)
	web := used(usage.Item{Node: "n1", Namespace: "shop", Pod: "web-1", Workload: cluster.Owner{Kind: "Deployment", Name: "web"}, Restarts: &three}, 250_000_000, 180<<20)
	web.Metrics = map[string]float64{"cpu/request": 0.5e9, "cpu/utilization": 0.5, "memory/utilization": 0.9, "cpu/limit": 1e9, "memory/limit": 200 << 20, "network/rx_rate": 2048}
	lastKnown := used(usage.Item{Node: "n1", Namespace: "shop", Pod: "web-2", Workload: cluster.Owner{Kind: "Deployment", Name: "web"}}, 90_000_000, 300<<20)
	lastKnown.CPU.LastKnown = true
	lastKnown.Metrics = map[string]float64{"cpu/request": 1e9, "memory/limit": 400 << 20, "ephemeral_storage/usage": 50 << 20}
	web.Reasons = []usage.GroupReason{{Group: "network", Reason: "NotApplicable", Message: "it has none of its own"}}
	lastKnown.Reasons = []usage.GroupReason{{Group: "cpu", Reason: "NodeTimeout", Message: "the node did not answer in time"}}
	young := usage.Item{Node: "n2", Namespace: "bank", Pod: "vault", Memory: &usage.MemoryUsage{WorkingSetBytes: 5 << 20, Time: noon},
		Reasons: []usage.GroupReason{{Group: "cpu", Reason: "FirstSample", Message: "it was first seen too recently, and a rate needs two readings"}}}
	app := web
	app.Container = "app"
	return &testCluster{lists: map[usage.Resource][]usage.Item{
		usage.Nodes:      {n1, n2, {Node: "n3", Reasons: late}},
		usage.Pods:       {young, web, lastKnown},
		usage.Containers: {app},
		usage.Cgroups: {
			used(usage.Item{Node: "n1", Cgroup: "/"}, 1_234_567_890, 3<<30),
			used(usage.Item{Node: "n1", Cgroup: "/system.slice/idle.service"}, 499_999, 0),
			used(usage.Item{Node: "n1", Cgroup: "/system.slice/ill\x1b[2J.service"}, 500_000, 12<<10),
			used(usage.Item{Node: "n1", Cgroup: "/kubepods/pod1/a", Namespace: "shop", Pod: "web-1", Container: "app"}, 2e9, 1<<20-1),
		},
	}}
}

// newPartialCluster is a test cluster in which a container of web-1 does not run.
func newPartialCluster() *testCluster {
	c := newTestCluster()
	c.lists[usage.Pods][1].Partial = &usage.Partial{Running: 1, Containers: 2, Stopped: "proxy", Message: "1 of 2 containers: proxy does not run, CrashLoopBackOff, last run OOMKilled, exit code 137"}
	return c
}

// run runs a command line and returns everything that it prints.
func run(ctx context.Context, lister cli.Lister, args ...string) string {
	root := &cobra.Command{Use: "weir"}
	root.AddCommand(NewCommand(Options{Connect: func() (cli.Lister, error) { return lister, nil }}))
	var out bytes.Buffer
	if status := cli.Main(ctx, root, args, &out, &out); status != 0 {
		fmt.Fprintf(&out, "exit status %d\n", status)
	}
	return out.String()
}

// The transcripts are the input and output that a user sees, including mistakes.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		var shown *screen
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "sh" {
				shown = draw(t, shown, d)
				return drawn(shown)
			}
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				words := strings.Fields(line)
				if words[0] != "weir" {
					t.Fatalf("%s: %q is no command of weir's", d.Pos, line)
				}
				out.WriteString(run(t.Context(), newPartialCluster(), words[1:]...))
			}
			return out.String()
		})
	})
}

// TestAtRisk shows a node whose numbers are withdrawn soon, and a pod on it.
func TestAtRisk(t *testing.T) {
	const why = "no new reading for 45s (NodeTimeout), its numbers are withdrawn in 15s"
	lister := newTestCluster()
	lister.lists[usage.Nodes][0].AtRisk, lister.lists[usage.Pods][2].AtRisk = why, why
	for args, want := range map[string]string{
		"nodes n?": `NAME   CPU(cores)   CPU%    MEMORY(bytes)   MEMORY%   AT RISK
n1     1235m        30.9%   3Gi             50%       ` + why + `
n2     500m         12.5%   1Gi             25%
n3     -            -       -               -
1 of 3 lack a number: -o wide shows why.
`,
		"pods -n shop": `NAME    CPU(cores)   MEMORY(bytes)   AT RISK
web-1   250m         180Mi
web-2   90m          300Mi           ` + why + `
`,
	} {
		cmptest.Equal(t, fmt.Sprintf("weir top %s", args), want, run(t.Context(), lister, strings.Fields("top "+args)...))
	}
	s := newScreenWith(t, lister, usage.Nodes)
	update(t, s, tea.WindowSizeMsg{Width: 100, Height: 12})
	if got := drawn(s); !strings.Contains(got, "  (1 at risk)") || !strings.Contains(got, "\nat risk: "+why+"\n") {
		t.Errorf("got\n%s\nwant the number of nodes at risk above, and why below", got)
	}
}

// TestCgroupAboveItsParent lists a cgroup with more memory than the one that contains it.
func TestCgroupAboveItsParent(t *testing.T) {
	const said = "/a/b has more memory than the cgroup that contains it: the kernel counts each cgroup by itself, and weir adds none up.\n"
	f := func(child, parent int64, want string) {
		t.Helper()
		lister := &testCluster{lists: map[usage.Resource][]usage.Item{usage.Cgroups: {
			used(usage.Item{Node: "n1", Cgroup: "/a/b"}, 1, child), used(usage.Item{Node: "n2", Cgroup: "/a"}, 1, 1), {Node: "n1", Cgroup: "/"}, used(usage.Item{Node: "n1", Cgroup: "/a"}, 1, parent),
		}}}
		got := run(t.Context(), lister, "top", "cgroups")
		if _, note, _ := strings.Cut(got, "shows why.\n"); note != want {
			t.Errorf("%d bytes in one of %d: got\n%s\nwant %q below the table", child, parent, got, want)
		}
	}
	f(173<<20, 119<<20, said)
	f(120<<20, 119<<20, "")
	f(1<<20, 0, "")
	f(3<<20, 0, said)
}

// TestKillsAreSorted sorts by kills for memory, and shows the column only where it is asked for.
func TestKillsAreSorted(t *testing.T) {
	pod := func(name string, kills int) usage.Item {
		it := used(usage.Item{Node: "n1", Namespace: "shop", Pod: metric.PodName(name), Workload: cluster.Owner{Kind: "StatefulSet", Name: "web"}}, 100e6, 10<<20)
		it.OOMKills = kills
		return it
	}
	lister := &testCluster{lists: map[usage.Resource][]usage.Item{usage.Pods: {pod("web-0", 0), pod("web-1", 12), pod("web-2", 1)}}}
	for args, want := range map[string]string{
		"pods -n shop": `NAME    CPU(cores)   MEMORY(bytes)
web-0   100m         10Mi
web-1   100m         10Mi
web-2   100m         10Mi
`,
		"pods -n shop --sort-by=oom": `NAME    CPU(cores)   MEMORY(bytes)   OOM
web-1   100m         10Mi            12
web-2   100m         10Mi            1
web-0   100m         10Mi
`,
		"workloads -n shop --sort-by=oom": `NAME              CPU(cores)   MEMORY(bytes)   PODS   OOM
StatefulSet/web   300m         30Mi            3      13
`,
	} {
		cmptest.Equal(t, fmt.Sprintf("weir top %s", args), want, run(t.Context(), lister, strings.Fields("top "+args)...))
	}
}

// Only the metrics that are shown are requested.
func TestAsksForWhatIsShown(t *testing.T) {
	for args, want := range map[string]usage.Query{
		"pods":                             {Metrics: []string{}},
		"nodes n* --node=n?":               {Name: "n*", Node: "n?", Metrics: []string{"cpu/node_utilization", "cpu/node_capacity", "memory/node_utilization", "memory/node_capacity"}},
		"pods -n shop -o json":             {Namespace: "shop"},
		"containers -A --no-headers":       {Metrics: []string{}},
		"cgroups /kubepods* -o wide":       {Name: "/kubepods*", Metrics: []string{"cpu/limit", "memory/limit", "memory/rss", "process/count"}},
		"pods --sort-by=ephemeral-storage": {Metrics: []string{"ephemeral_storage/usage"}},
		"pods --sort-by=cpu --output=yaml": {},
	} {
		lister := newTestCluster()
		out := run(t.Context(), lister, strings.Fields("top "+args)...)
		if diff := cmp.Diff(want, lister.asked); diff != "" {
			t.Errorf("weir top %s asked (-want +got):\n%s\n%s", args, diff, out)
		}
	}
}

// flaky fails at its second request and is interrupted at its fourth.
type flaky struct {
	testCluster *testCluster
	looks       int
	cancel      context.CancelFunc
}

func (f *flaky) List(ctx context.Context, r usage.Resource, q usage.Query) (*usage.List, error) {
	f.looks++
	switch f.looks {
	case 2:
		return nil, errors.New("connection refused")
	case 4:
		f.cancel()
		return nil, ctx.Err()
	}
	return f.testCluster.List(ctx, r, q)
}

func TestWatchGoesOnAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		got := run(ctx, &flaky{testCluster: newTestCluster(), cancel: cancel}, "top", "containers", "--watch", "--interval=2s", "-n", "shop")
		look := "POD     NAME   CPU(cores)   MEMORY(bytes)\n" +
			"web-1   app    250m         180Mi\n"
		if want := look + "error: connection refused\n\n" + look; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if took := time.Since(began); took != 6*time.Second {
			t.Errorf("four looks every 2s took %v, want 6s", took)
		}
	})
}

func TestWidth(t *testing.T) {
	list := &usage.List{Resource: usage.Pods, Items: newTestCluster().lists[usage.Pods]}
	table := layout(list.Items, shownColumns(list, usage.Query{}, &flags{}), true)

	for width := 1; width < 80; width++ {
		for _, l := range table.Lines(width, false) {
			if len(l) > width {
				t.Errorf("a line of width %d has %d characters: %q", width, len(l), l)
			}
		}
	}
}

// TestResize shows the requests and limits that a resize has not applied, in a column that is else not there.
func TestResize(t *testing.T) {
	lister := newTestCluster()
	lister.lists[usage.Pods][1].Resize = &usage.Resize{State: "Deferred", Message: "Deferred: app has CPU request 100m, not 200m"}
	lister.lists[usage.Containers][0].Resize = &usage.Resize{State: "Deferred", Message: "Deferred: CPU request 100m, not 200m"}
	for args, want := range map[string]string{
		"pods -n shop": `NAME    CPU(cores)   MEMORY(bytes)   RESIZE
web-1   250m         180Mi           Deferred: app has CPU request 100m, not 200m
web-2   90m          300Mi
`,
		"containers -n shop": `POD     NAME   CPU(cores)   MEMORY(bytes)   RESIZE
web-1   app    250m         180Mi           Deferred: CPU request 100m, not 200m
`,
		"pods -n bank": `NAME    CPU(cores)   MEMORY(bytes)
vault   -            5Mi
1 of 1 lack a number: -o wide shows why.
`,
	} {
		cmptest.Equal(t, fmt.Sprintf("weir top %s", args), want, run(t.Context(), lister, strings.Fields("top "+args)...))
	}
}
