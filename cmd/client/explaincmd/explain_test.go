package explaincmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// before returns the time d before noon.
func before(d time.Duration) time.Time { return noon.Add(-d) }

// testCluster is a weir with fixed answers. It has a pod that is served, a pod that has just
// started, a pod with a rejected duplicate, and a node that hangs.
type testCluster struct {
	explanations map[string]*explain.Explanation
	reports      map[metric.Namespace]*explain.MissingReport
	items        map[usage.Resource][]usage.Item
}

// unknown is weir's answer about an object that it does not know.
func unknown(what string) error {
	return cli.Advised(&weirdev.Problem{Status: http.StatusNotFound, Message: "weir does not know " + what, Hint: "Is the name right?"})
}

func (t *testCluster) find(what string) (*explain.Explanation, error) {
	e, ok := t.explanations[what]
	if !ok {
		return nil, unknown(what)
	}
	return e, nil
}

func (t *testCluster) Pod(_ context.Context, ref metric.PodRef) (*explain.Explanation, error) {
	return t.find("pod " + ref.String())
}

func (t *testCluster) Container(_ context.Context, ref metric.PodRef, name string) (*explain.Explanation, error) {
	return t.find("container " + ref.String() + "/" + name)
}

func (t *testCluster) Node(_ context.Context, name metric.NodeName) (*explain.Explanation, error) {
	return t.find("node " + string(name))
}

func (t *testCluster) Cgroup(_ context.Context, node metric.NodeName, name string) (*explain.Explanation, error) {
	return t.find("cgroup " + name + " on node " + string(node))
}

func (t *testCluster) Missing(_ context.Context, namespace metric.Namespace) (*explain.MissingReport, error) {
	r, ok := t.reports[namespace]
	if !ok {
		return nil, unknown("pods in namespace " + string(namespace))
	}
	return r, nil
}

func (t *testCluster) Workload(_ context.Context, namespace metric.Namespace, of cluster.Owner) (*explain.MissingReport, error) {
	if namespace != "shop" || of != (cluster.Owner{Kind: "deployment", Name: "web"}) {
		return nil, unknown(fmt.Sprintf("pods of %s/%s in namespace %s", of.Kind, of.Name, namespace))
	}
	r := *t.reports[namespace]
	r.Summary = "Deployment shop/web: 1 of 2 pods has CPU and memory. Together they use 250m of CPU and 180Mi of memory."
	r.Workload = &explain.Workload{Kind: "Deployment", Name: "web", CPUCores: 0.25, MemoryBytes: 180 << 20, Autoscalers: []string{"autoscaler/bank/ledger", "shop/web", "shop/other"}}
	return &r, nil
}

func (t *testCluster) List(_ context.Context, r usage.Resource, q usage.Query) (*usage.List, error) {
	if q.Namespace == "secret" {
		return nil, errors.New("forbidden")
	}
	list := &usage.List{Resource: r}
	for _, it := range t.items[r] {
		own := map[usage.Resource]string{usage.Nodes: string(it.Node), usage.Pods: string(it.Pod), usage.Containers: it.Container}[r]
		if fits(q.Namespace, string(it.Namespace)) && fits(q.Pod, string(it.Pod)) && fits(q.Name, own) {
			list.Items = append(list.Items, it)
		}
	}
	return list, nil
}

// fits reports whether a name matches a pattern that may end in a star.
func fits(pattern, name string) bool {
	begun, ok := strings.CutSuffix(pattern, "*")
	return pattern == "" || pattern == name || ok && strings.HasPrefix(name, begun)
}

func measured(group, value string) explain.Finding {
	return explain.Finding{Group: group, Reason: "Measured", Served: true, Value: value, Time: before(3 * time.Second), Severity: "none"}
}

func newTestCluster() *testCluster {
	quarter, amount := 0.25, float64(180<<20)
	cpu, memory := measured("cpu", "250m over 12.4s"), measured("memory", "180Mi")
	cpu.Number, memory.Number = &quarter, &amount
	cpu.Evidence = []string{"read at 11:59:57 UTC (3 s ago)"}
	web := &explain.Explanation{
		Kind: "pod", Node: "n1", Namespace: "shop", Pod: "web-1", At: noon,
		Summary:  "Pod shop/web-1 uses CPU 250m over 12.4s and memory 180Mi.",
		Known:    &explain.Known{UID: "u-1", Phase: "Running", QoS: "Burstable", Started: before(time.Hour), Restarts: 2, AsOf: before(2 * time.Second)},
		Findings: []explain.Finding{cpu, memory},
		Containers: []explain.Explanation{{
			Kind: "container", Node: "n1", Namespace: "shop", Pod: "web-1", Container: "app", At: noon,
			Findings: []explain.Finding{measured("cpu", "247m over 12.4s"), measured("memory", "170Mi")},
		}, {
			Kind: "container", Node: "n1", Namespace: "shop", Pod: "web-1", Container: "proxy", At: noon,
			Findings: []explain.Finding{measured("cpu", "3m over 12.4s"), measured("memory", "10Mi")},
		}},
		Reads:       []explain.Read{{Source: "kubelet:resource", LastRead: before(3 * time.Second), LastSuccess: before(3 * time.Second), Due: noon.Add(12 * time.Second), Seconds: 0.012, ClockAheadSeconds: 90.5}},
		Autoscalers: []string{"shop/web"},
	}

	first := explain.Finding{Group: "cpu", Reason: "FirstSample", Severity: "temporary",
		Message: "it was first seen too recently, and a rate needs two readings", Rule: "two readings",
		Evidence: []string{"12.5 s of CPU at 11:59:54 UTC (6 s ago)"},
		Since:    before(6 * time.Second), Due: noon.Add(9 * time.Second), Next: "a second reading is due in 9 s"}
	whole := first
	whole.Reason, whole.Message, whole.Advice = "Incomplete", "container app has no number: "+first.Message, "Ask for the container that is at fault: `weir explain container NS/POD/CONTAINER`."
	sameForMemory := explain.Finding{Group: "memory", Reason: "Incomplete", Severity: "temporary", Message: "a pod is served whole, and container app has no CPU"}
	repeated := measured("memory", "170Mi")
	repeated.LastKnown, repeated.Reason, repeated.Message = true, "NodeTimeout", "the node did not answer in time"
	app := explain.Explanation{Kind: "container", Node: "n1", Namespace: "shop", Pod: "api", Container: "app", At: noon,
		Summary:  "Container app of pod shop/api has no CPU: it was first seen too recently, and a rate needs two readings.",
		Findings: []explain.Finding{first, repeated}}
	api := &explain.Explanation{
		Kind: "pod", Node: "n1", Namespace: "shop", Pod: "api", At: noon,
		Summary:    "Pod shop/api has no CPU and memory: container app has no number: it was first seen too recently, and a rate needs two readings.",
		Findings:   []explain.Finding{whole, sameForMemory},
		Containers: []explain.Explanation{app},
	}

	db := &explain.Explanation{
		Kind: "container", Node: "n1", Namespace: "bank", Pod: "vault", Container: "db", At: noon,
		Summary: "Container db of pod bank/vault uses CPU 1 over 15s and memory 2Gi.",
		Known:   &explain.Known{State: "waiting", Why: "CrashLoopBackOff", ID: "0123456789abcdef0123", Started: before(30 * time.Hour)},
		Findings: []explain.Finding{
			{Group: "cpu", Reason: "Ambiguous", Served: true, Value: "1 over 15s", Message: "two instances go by this name, nothing distinguishes them, and one was chosen", Severity: "broken"},
			{Group: "memory", Reason: "Measured", Served: true, Value: "2Gi"},
			{Group: "network", Reason: "NotApplicable", Message: "it has none of its own", Severity: "none"},
		},
		Duplicates: []explain.Duplicate{{
			Node: "n2", UID: "u-9", ID: "fedcba9876543210fedc", Path: "/kubepods/ill\x1b[2J/podu-9", Started: before(26 * time.Hour),
			Reason: "OtherNode", Rule: "place", Message: "the API server binds the pod to n1", Since: before(5 * time.Minute),
			Advice: "If the other node still runs such a pod, it has lost touch with the API server: look at its kubelet.",
		}},
	}

	late := func(group string) explain.Finding {
		return explain.Finding{Group: group, Reason: "NodeTimeout", Severity: "broken", Message: "the node did not answer in time",
			Since: before(20 * time.Minute), ServedUntil: before(19 * time.Minute), Next: "the next attempt is due in 7 s", Advice: "Check whether the node is overloaded."}
	}
	n2 := &explain.Explanation{
		Kind: "node", Node: "n2", At: noon,
		Summary:  "Node n2 has no CPU and memory: the node did not answer in time.",
		Known:    &explain.Known{State: "not ready", AsOf: noon},
		Findings: []explain.Finding{late("cpu"), measured("process", "113 processes"), late("memory")},
		Reads: []explain.Read{
			{Source: "kubelet:resource", LastRead: before(8 * time.Second), LastSuccess: before(20 * time.Minute), Due: noon.Add(7 * time.Second),
				Reason: "NodeTimeout", Error: `Get "https://192.0.2.1:10250/metrics/resource": context deadline exceeded`},
			{Source: "kubelet:summary", LastRead: before(8 * time.Second), Reason: "NodeUnauthorized"},
			{Source: "kubelet:cadvisor", Due: noon.Add(3 * time.Second)},
		},
	}

	// The node hangs, and that is the reason for everything on it. Without an API server, names and
	// errors come from nodes.
	lost := func(kind, container string) explain.Explanation {
		f := late("cpu")
		f.Message = "node n2 did not answer in time"
		f.Advice += " `weir explain node n2` shows more."
		g := f
		g.Group = "memory"
		return explain.Explanation{Kind: kind, Node: "n2", Namespace: "bank", Pod: "ledger", Container: container, At: noon, Findings: []explain.Finding{f, g}}
	}
	ledger := lost("pod", "")
	ledger.Summary = "Pod bank/ledger has no CPU or memory: node n2 did not answer in time."
	ill := lost("container", "ill\x1b[2J\xff")
	ill.Duplicates = db.Duplicates
	ledger.Containers = []explain.Explanation{lost("container", "app"), lost("container", "b\x1b[2J"), ill}
	ledger.Reads = []explain.Read{{Source: "kubelet\x07", Reason: "NodeTimeout", Error: strings.Repeat("größe ", 300)}}

	wait := func(kind, container, message string) explain.Explanation {
		f := explain.Finding{Group: "cpu", Reason: "PodPending", Severity: "temporary", Message: message, Advice: "`kubectl describe pod` tells what it waits for."}
		g := f
		g.Group = "memory"
		return explain.Explanation{Kind: kind, Namespace: "shop", Pod: "new", Container: container, At: noon, Findings: []explain.Finding{f, g}}
	}
	fresh := wait("pod", "", "the pod has not started; container app waits: ErrImagePull")
	fresh.Summary = "Pod shop/new has no CPU or memory: the pod has not started; container app waits: ErrImagePull."
	fresh.Containers = []explain.Explanation{wait("container", "app", "the pod has not started; the container waits: ErrImagePull")}

	causes := []explain.MissingCause{{
		Reason: "NodeTimeout", Severity: "broken", Node: "n2", Message: "the node did not answer in time", Next: "the next attempt is due in 7 s",
		Advice: "Check whether the node is overloaded.", Since: before(20 * time.Minute), Pods: 12, Nodes: 1,
		Names: []string{"node/n2"}, Autoscalers: []string{"bank/ledger"},
	}, {
		Reason: "FirstSample", Severity: "temporary", Message: "it was first seen too recently, and a rate needs two readings", Pods: 1, Names: []string{"shop/api/app"},
	}}
	return &testCluster{
		explanations: map[string]*explain.Explanation{
			"pod shop/web-1": web, "pod shop/api": api, "pod bank/ledger": &ledger, "pod shop/new": &fresh, "container shop/api/app": &app, "container bank/vault/db": db, "node n2": n2,
			"cgroup /mail.slice on node n1": {Kind: "cgroup", Node: "n1", Cgroup: "/mail.slice", At: noon, Summary: "Cgroup /mail.slice uses memory 20Mi. It has no CPU: the cgroup exists in the memory hierarchy only, which counts no CPU time.",
				Findings: []explain.Finding{{Group: "cpu", Reason: "Unsupported", Severity: "none", Message: "the cgroup exists in the memory hierarchy only, which counts no CPU time"}, measured("memory", "20Mi")}},
		},
		reports: map[metric.Namespace]*explain.MissingReport{
			"": {At: noon, Summary: "1 of 2 nodes and 17 of 30 pods have CPU and memory.",
				Nodes: explain.Tally{Expected: 2, Served: 1}, Pods: explain.Tally{Expected: 30, Served: 17}, Causes: causes, NodesAtRisk: 1,
				AtRisk: []explain.Risk{{Node: "n1", Message: "no new reading for 45s (NodeTimeout), its numbers are withdrawn in 15s", Until: noon.Add(15 * time.Second)}}},
			"shop": {Namespace: "shop", At: noon, Summary: "1 of 2 pods have CPU and memory.", Pods: explain.Tally{Expected: 2, Served: 1}, Causes: causes[1:]},
			"sent": {Namespace: "sent", At: noon, Summary: "2 of 3 pods have CPU and memory.", Pods: explain.Tally{Expected: 3, Served: 2}, Causes: []explain.MissingCause{
				{Reason: "NodeTimeout", Severity: "broken", Node: "n2", Message: "node n2 did not answer in time", Since: before(20 * time.Second), BeforeStart: true, Pods: 1, Names: []string{"sent/a"}},
			},
				Receivers: []explain.Receiver{{Name: "remotewrite https://prometheus/api/v1/write", Message: "the receiver answers 401 Unauthorized: no", Since: before(5 * time.Minute)}},
				Adapters:  []explain.Adapter{{Name: "keda", Message: "adapter keda did not answer within 5s", Since: before(2 * time.Minute)}}},
			"calm": {Namespace: "calm", At: noon, Summary: "3 of 3 pods have CPU and memory.", Pods: explain.Tally{Expected: 3, Served: 3}, Causes: []explain.MissingCause{}},
			"storm": {Namespace: "storm", At: noon, Summary: "0 of 40 pods have CPU and memory.", Pods: explain.Tally{Expected: 40}, Causes: []explain.MissingCause{
				{Reason: "NodeTimeout", Severity: "broken", Node: "n2", Message: "node n2 did not answer in time", Advice: "See whether it is overloaded. `weir explain node n2` shows more.", Pods: 25,
					Names: []string{"storm/$(reboot)", "storm/-rf"}, Autoscalers: strings.Split("a,b,c,d,e,f,g,h,i,j,k,l", ",")},
				{Reason: "NodeTimeout", Severity: "broken", Node: "n3", Message: "node n3 did not answer in time", Advice: "See whether it is overloaded. `weir explain node n3` shows more.", Pods: 15,
					Names: []string{"storm/web-1"}},
			}},
			"idle": {Namespace: "idle", At: noon, Summary: "No pod of namespace idle should have CPU and memory now.", Pods: explain.Tally{Idle: 4}, Causes: []explain.MissingCause{}, Idle: []explain.MissingCause{
				{Reason: "PodPending", Severity: "broken", Why: "ErrImageNeverPull", Message: "the pod has not started; a container waits: ErrImageNeverPull", Next: "it is measured once it runs",
					Advice: "`kubectl describe pod` shows what it is waiting for: a node with room, a volume or an image.", Since: before(20 * time.Minute), Pods: 2, Names: []string{"idle/a/app", "idle/b/app"}, Autoscalers: []string{"idle/web"}},
				{Reason: "ContainerFinished", Severity: "none", Why: "Completed", Message: "the container has ended: Completed", Pods: 1, Names: []string{"idle/c/app"}},
			}},
		},
		items: map[usage.Resource][]usage.Item{
			usage.Nodes: {{Node: "n1"}, {Node: "n2"}},
			usage.Pods: {
				{Node: "n2", Namespace: "bank", Pod: "vault"}, {Node: "n2", Namespace: "bank", Pod: "data-0"}, {Node: "n2", Namespace: "bank", Pod: "data-1"},
				{Node: "n2", Namespace: "bank", Pod: "data-billing-7"}, {Node: "n2", Namespace: "bank", Pod: "data-billing-8"}, {Node: "n2", Namespace: "bank", Pod: "database"}, {Node: "n1", Namespace: "shop", Pod: "api"},
				{Node: "n1", Namespace: "shop", Pod: "web-1", Workload: cluster.Owner{Kind: "Deployment", Name: "web"}},
			},
			usage.Containers: {
				{Namespace: "bank", Pod: "vault", Container: "db"}, {Namespace: "shop", Pod: "web-1", Container: "app"},
				{Namespace: "shop", Pod: "web-1", Container: "$(reboot)"}, {Namespace: "shop", Pod: "web-1", Container: "proxy"},
			},
		},
	}
}

// run runs a command line and returns everything that it prints.
func run(ctx context.Context, o Options, args ...string) string {
	root := &cobra.Command{Use: "weir"}
	root.AddCommand(NewCommand(o))
	var out bytes.Buffer
	if status := cli.Main(ctx, root, args, &out, &out); status != 0 {
		fmt.Fprintf(&out, "exit status %d\n", status)
	}
	return out.String()
}

func inTestCluster() (Asker, error) { return newTestCluster(), nil }

// tags replaces colours by words.
var tags = strings.NewReplacer(string(humanize.Bold), "<bold>", string(humanize.Amber), "<amber>", string(humanize.Red), "<red>", string(humanize.Dim), "<dim>", "\x1b[0m", "</>")

// The transcripts are the input and output that a user sees. "sh" has no terminal, "kubectl" has a
// namespace from a kubeconfig, and "terminal" shows one explanation on a terminal of a given width.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			o := Options{Connect: inTestCluster}
			if d.Cmd == "kubectl" {
				o.Namespace = func() (string, error) { return "shop", nil }
				o.Program = "kubectl weir"
			}
			if d.Cmd == "terminal" {
				var width int
				d.ScanArgs(t, "width", &width)
				p := &page{Page: humanize.Page{Colour: true, Width: width}, program: "weir"}
				if what := strings.TrimSpace(d.Input); what == "missing" {
					writeReport(p, newTestCluster().reports[""])
				} else {
					writeExplanation(p, newTestCluster().explanations[what])
				}
				return tags.Replace(p.String())
			}
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				words := strings.Fields(line)
				if words[0] != "weir" {
					t.Fatalf("%s: %q is no command of weir's", d.Pos, line)
				}
				out.WriteString(run(t.Context(), o, words[1:]...))
			}
			return out.String()
		})
	})
}

// For an unknown object, the command searches with the caller's rights. If the caller has no
// rights, it suggests nothing.
func TestSuggestsOnlyWhatMayBeSeen(t *testing.T) {
	got := run(t.Context(), Options{Connect: inTestCluster}, "explain", "pod", "secret/ap")
	want := "error: weir does not know pod secret/ap\nIs the name right?\nexit status 1\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestTimeout(t *testing.T) {
	slow := Options{Connect: func() (Asker, error) { return hanging{newTestCluster()}, nil }}
	if got, want := run(t.Context(), slow, "explain", "node", "n1", "--timeout=1ms"), "error: context deadline exceeded\nexit status 1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// hanging never answers about nodes.
type hanging struct{ *testCluster }

func (hanging) Node(ctx context.Context, _ metric.NodeName) (*explain.Explanation, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
