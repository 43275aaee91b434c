package podmetrics

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// TestDeletedNamespacesAreForgotten checks that the index of a deleted namespace is removed,
// although nobody asks for it again.
func TestDeletedNamespacesAreForgotten(t *testing.T) {
	pod := func(namespace metric.Namespace) cluster.FactsChange {
		return cluster.FactsChange{Synced: true, Pods: []*cluster.Pod{{PodRef: metric.PodRef{Namespace: namespace, Name: "web"}}}}
	}
	var facts *cluster.Facts
	facts = facts.With(pod("old"))
	x := newLabelIndex()
	if got := x.find(facts, "old", labels.Everything()); len(got) != 1 {
		t.Fatalf("%d pods in old, want 1", len(got))
	}
	facts = facts.With(cluster.FactsChange{Synced: true, GonePods: []metric.PodRef{{Namespace: "old", Name: "web"}}}).With(pod("new"))
	if got := x.find(facts, "new", labels.Everything()); len(got) != 1 || len(x.spaces) != 1 || x.spaces["new"] == nil {
		t.Errorf("%d pods in new, and %d namespaces are remembered; want 1 and 1", len(got), len(x.spaces))
	}
}
