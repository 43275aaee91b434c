package controller

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// Whoever selects a common pod is found, as if every pod were looked at with every
// selector; whatever is ruled out has none in common.
func TestRivals(t *testing.T) {
	pods := map[string]labels.Set{
		"a": {"app": "web"}, "b": {"app": "web", "tier": "front"}, "c": {"app": "api", "tier": "front"}, "d": {"tier": "back", "shard": "1"}, "e": nil,
	}
	podsOf := func(s labels.Selector) (found []autoscaler.Pod, _ error) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			if s.Matches(pods[name]) {
				found = append(found, autoscaler.Pod{Name: name})
			}
		}
		return found, nil
	}
	texts := []string{"app=web", "app==api", "tier=front", "app in (web),tier=front", "app in (web,api)", "tier!=front", "shard", "app=web,tier=back", "!app"}
	r := newSelectorIndex()
	name := func(n int) objectKey { return objectKey{v1alpha1.Kind, "shop", fmt.Sprintf("s%d", n)} }
	put := func(n int, text string) {
		s, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		r.setSelector(name(n), scaleclient.WorkloadID{Name: fmt.Sprint(n)}, text, s)
	}
	for n, text := range texts {
		put(n, "app=elsewhere") // it changes its mind
		put(n, text)
	}
	r.setSelector(objectKey{v1alpha1.Kind, "bank", "s"}, scaleclient.WorkloadID{}, "", labels.Everything())
	for n, text := range texts {
		own := mustPods(t, podsOf, text)
		want := []types.NamespacedName{name(n).namespacedName()}
		for m, other := range texts {
			if m != n && sharePod(own, mustPods(t, podsOf, other)) {
				want = append(want, name(m).namespacedName())
			}
		}
		slices.SortFunc(want, func(a, b types.NamespacedName) int { return cmpName(a.Name, b.Name) })
		got := r.overlapping(name(n), own, podsOf, func(objectKey) bool { return false })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if got := r.overlapping(name(n), own, podsOf, func(objectKey) bool { return true }); len(got) != 1 {
			t.Errorf("%s: got %v although nobody is to be minded", text, got)
		}
	}
	for n := range texts {
		r.deleteSelector(name(n))
	}
	r.deleteSelector(objectKey{v1alpha1.Kind, "bank", "s"})
	if len(r.mu.known) != 0 || len(r.mu.spaces) != 0 {
		t.Errorf("of nobody there is left %v %v", r.mu.known, r.mu.spaces)
	}
}

func cmpName(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

func mustPods(t *testing.T, podsOf func(labels.Selector) ([]autoscaler.Pod, error), text string) []autoscaler.Pod {
	t.Helper()
	s, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	pods, _ := podsOf(s)
	return pods
}
