package inspect

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

func TestPodsOn(t *testing.T) {
	at := time.Unix(1000, 0)
	web := &cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: "web"}, UID: "u1", Node: "n1"}
	var none *cluster.Facts
	known := none.With(cluster.FactsChange{Synced: true, At: at, Pods: []*cluster.Pod{web}})
	if p := PodsOn("n1", known); p == nil || len(p.List) != 1 || p.List[0] != web || !p.At.Equal(at) || p.Static {
		t.Errorf("pods on n1: %+v, want shop/web, as of %v, without static pods", p, at)
	}
	if p := PodsOn("n2", known); p == nil || len(p.List) != 0 {
		t.Errorf("pods on n2: %+v, want an empty list", p)
	}
	for _, facts := range []*cluster.Facts{nil, {}, none.With(cluster.FactsChange{Pods: []*cluster.Pod{web}})} {
		if p := PodsOn("n1", facts); p != nil {
			t.Errorf("pods by facts that are not whole: %+v, want none", p)
		}
	}
}

// TestLeftoversOfThisMachine checks that the cgroups of any machine can be counted, and that
// without a list of pods none of them has the judgement no-pod.
func TestLeftoversOfThisMachine(t *testing.T) {
	i, err := New(Options{})
	if err != nil {
		t.Skipf("no cgroups here: %v", err)
	}
	c := NewCollector(i, func() *Pods { return PodsOn("n1", nil) })
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	noPod := -1.0
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "weir_pod_cgroups" && m.Label[0].GetValue() == string(NoPod) {
				noPod = m.GetGauge().GetValue()
			}
		}
	}
	if noPod != 0 {
		t.Errorf("%v cgroups without a pod, want 0", noPod)
	}
}
