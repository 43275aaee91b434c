package clustermetrics

import (
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

// judgedView is a MetricsReader of verdicts without samples.
type judgedView struct {
	samples
	verdicts []metric.Verdict
}

func (v judgedView) Verdicts() iter.Seq2[metric.Verdict, time.Time] {
	return func(yield func(metric.Verdict, time.Time) bool) {
		for _, one := range v.verdicts {
			if !yield(one, time.Unix(1767323045, 0)) {
				return
			}
		}
	}
}

func (v *judgedView) add(e metric.Entity, r metric.Reason, groups ...metric.Group) {
	for _, g := range groups {
		v.verdicts = append(v.verdicts, metric.Verdict{Entity: e, Group: g, Reason: r})
	}
}

// trouble is a cluster with many missing numbers.
func trouble() judgedView {
	var v judgedView
	const cpu, memory = metric.CPU, metric.Memory
	n1 := metric.Entity{Kind: metric.Node, Node: "n1"}
	web := metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: "web"}
	app := metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: "app"}
	eth0 := n1
	eth0.Part = "interface:eth0"
	// One source reports twice what another reports too: n1 is one node.
	v.add(n1, metric.NodeTimeout, cpu, memory, metric.Network)
	v.add(web, metric.Incomplete, cpu)
	v.add(app, metric.FirstSample, cpu)
	v.add(app, metric.OlderStart, cpu, memory) // a duplicate
	v.add(app, metric.OlderStart, cpu, memory) // another duplicate
	v.add(n1, metric.NodeTimeout, cpu, memory)
	v.add(web, metric.NoData, memory)
	// Only CPU and memory of whole entities are counted.
	v.add(web, metric.NotApplicable, metric.Network)
	v.add(eth0, metric.NotReported, cpu)
	v.add(n1, metric.Measured, cpu)
	// The same pod on another node is another entity.
	other := web
	other.Node = "n2"
	v.add(other, metric.OtherNode, cpu, memory)
	v.add(metric.Entity{Kind: metric.System, Node: "n2", Name: "kubelet"}, metric.NotReported, cpu)
	bank := web
	bank.Node, bank.Namespace = "n2", "bank"
	v.add(bank, metric.Incomplete, cpu, memory)
	return v
}

// verdictSeries returns the series of weir_verdicts for which pass is true.
func verdictSeries(t *testing.T, h http.Handler, query string, pass func(string) bool) (list []string) {
	t.Helper()
	for line := range strings.Lines(get(t, h, query).Body.String()) {
		if s, ok := strings.CutPrefix(strings.TrimSpace(line), "weir_verdicts"); ok && pass(s) {
			list = append(list, s)
		}
	}
	return list
}

func TestVerdicts(t *testing.T) {
	above0 := func(s string) bool { return !strings.HasSuffix(s, " 0") }
	h := handler(trouble(), Options{})
	for query, want := range map[string][]string{
		"": {
			`{reason="NodeTimeout",level="node"} 1`,
			`{reason="NotReported",level="system"} 1`,
			`{reason="NoData",level="pod"} 1`,
			`{reason="OtherNode",level="pod"} 1`,
			`{reason="Incomplete",level="pod"} 2`,
			`{reason="OlderStart",level="container"} 1`,
			`{reason="FirstSample",level="container"} 1`,
		},
		"?level=node,system": {
			`{reason="NodeTimeout",level="node"} 1`,
			`{reason="NotReported",level="system"} 1`,
		},
		"?namespace=ba*":        {`{reason="Incomplete",level="pod"} 1`},
		"?label=pod=web":        {`{reason="NoData",level="pod"} 1`, `{reason="OtherNode",level="pod"} 1`, `{reason="Incomplete",level="pod"} 2`, `{reason="OlderStart",level="container"} 1`, `{reason="FirstSample",level="container"} 1`},
		"?metric=cpu_*":         nil,
		"?metric=weir_verdicts": {`{reason="NodeTimeout",level="node"} 1`, `{reason="NotReported",level="system"} 1`, `{reason="NoData",level="pod"} 1`, `{reason="OtherNode",level="pod"} 1`, `{reason="Incomplete",level="pod"} 2`, `{reason="OlderStart",level="container"} 1`, `{reason="FirstSample",level="container"} 1`},
	} {
		cmptest.Equal(t, fmt.Sprintf("%q", query), want, verdictSeries(t, h, query, above0))
	}
}

// If there are no verdicts, nodes, pods and containers have series with the value 0. A query for
// one namespace returns only series that are not 0.
func TestOverruledVerdicts(t *testing.T) {
	all := func(string) bool { return true }
	var (
		reasons = metric.NumReasons - 2 // of pods: all but Unjudged and Measured
		node    = reasons - 5 - 7 - 1   // a node has no reasons of the layers life and identity, and none about containers
	)
	for query, want := range map[string]int{
		"":                     node + reasons + reasons - 1,
		"?level=node,pod":      node + reasons,
		"?level=system":        0,
		"?namespace=shop":      0,
		"?label=node=n1":       0,
		"?metric=weir_*":       node + reasons + reasons - 1,
		"?metric=cpu/*,memory": 0,
	} {
		if got := verdictSeries(t, handler(judgedView{}, Options{}), query, all); len(got) != want {
			t.Errorf("%q: got %d series, want %d", query, len(got), want)
		}
	}
	// The next answer does not contain the verdicts of this one.
	h, view := handler(nil, Options{}), MetricsReader(trouble())
	h.view = func() MetricsReader { return view }
	before := verdictSeries(t, h, "", func(s string) bool { return !strings.HasSuffix(s, " 0") })
	view = judgedView{}
	after := verdictSeries(t, h, "", func(s string) bool { return !strings.HasSuffix(s, " 0") })
	if len(before) != 7 || after != nil {
		t.Errorf("got %d series and then %v, want 7 and none", len(before), after)
	}
}

// outage returns a reader of nodes with 30 pods each; no node answers.
func outage(nodes int) (v judgedView) {
	for n := range nodes {
		e := metric.Entity{Kind: metric.Node, Node: metric.NodeName(fmt.Sprint("n", n))}
		v.add(e, metric.NodeTimeout, metric.CPU, metric.Memory)
		for p := range 30 {
			e.Kind, e.Namespace, e.Pod = metric.Pod, "shop", metric.PodName(fmt.Sprint("p", p))
			v.add(e, metric.NodeTimeout, metric.CPU, metric.Memory)
		}
	}
	return v
}

// After the first answer, weir_verdicts costs no allocations, even during an outage of all nodes.
func TestVerdictsAllocateNothing(t *testing.T) {
	v := outage(20)
	var x exposition
	f := filters{{}, {}}
	x.verdicts(v, f)
	if got := testing.AllocsPerRun(10, func() { x.buf = x.buf[:0]; x.verdicts(v, f) }); got > 4 {
		t.Errorf("got %v allocations, want at most those of the iterator", got)
	}
	if want := `weir_verdicts{reason="NodeTimeout",level="pod"} 600` + "\n"; !strings.Contains(string(x.buf), want) {
		t.Errorf("got %s, want in it %s", x.buf, want)
	}
}

func BenchmarkVerdicts(b *testing.B) {
	v := outage(1000)
	h := handler(v, Options{})
	r := httptest.NewRequest(http.MethodGet, "/metrics/cluster", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(&discard{header: http.Header{}}, r)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(v.verdicts)), "ns/verdict")
}
