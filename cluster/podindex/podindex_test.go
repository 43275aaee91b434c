package podindex

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
	x := New()
	if got := x.Find(facts, "old", labels.Everything()); len(got) != 1 {
		t.Fatalf("%d pods in old, want 1", len(got))
	}
	facts = facts.With(cluster.FactsChange{Synced: true, GonePods: []metric.PodRef{{Namespace: "old", Name: "web"}}}).With(pod("new"))
	if got := x.Find(facts, "new", labels.Everything()); len(got) != 1 || len(x.spaces) != 1 || x.spaces["new"] == nil {
		t.Errorf("%d pods in new, and %d namespaces are remembered; want 1 and 1", len(got), len(x.spaces))
	}
}

// TestLabelsOfNoPodAreForgotten checks that the index keeps nothing of a label that no pod has:
// callers choose the selectors.
func TestLabelsOfNoPodAreForgotten(t *testing.T) {
	ref := metric.PodRef{Namespace: "shop", Name: "web"}
	pod := func(has map[string]string) cluster.FactsChange {
		return cluster.FactsChange{Synced: true, Pods: []*cluster.Pod{{PodRef: ref, Labels: has}}}
	}
	var facts *cluster.Facts
	facts = facts.With(pod(map[string]string{"app": "web"}))
	x := New()
	for selector, want := range map[string]int{"app=web": 1, "app=db": 0, "team=blue": 0} {
		if got := x.Find(facts, "shop", parse(t, selector)); len(got) != want {
			t.Errorf("%s: %d pods, want %d", selector, len(got), want)
		}
	}
	if got := x.spaces["shop"].labels; len(got) != 1 || got["app"] == nil {
		t.Errorf("the labels %v are kept, want app", got)
	}
	facts = facts.With(pod(nil))
	if got := x.Find(facts, "shop", parse(t, "app")); len(got) != 0 || len(x.spaces["shop"].labels) != 0 {
		t.Errorf("without labels: %d pods and the labels %v, want none", len(got), x.spaces["shop"].labels)
	}
	facts = facts.With(pod(map[string]string{"team": "blue"}))
	if got := x.Find(facts, "shop", parse(t, "team=blue")); len(got) != 1 {
		t.Errorf("%d pods with the new label, want 1", len(got))
	}
}

func parse(t *testing.T, selector string) labels.Selector {
	t.Helper()
	s, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
