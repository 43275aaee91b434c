package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/autoscaler/selectorindex"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/test/cmptest"
)

// TestOverlapping checks that objects of one kind are found if their selectors match a common pod.
// It compares the result with matching every pod against every selector.
func TestOverlapping(t *testing.T) {
	sets := map[string]labels.Set{
		"a": {"app": "web"}, "b": {"app": "web", "tier": "front"}, "c": {"app": "api", "tier": "front"}, "d": {"tier": "back", "shard": "1"}, "e": nil,
	}
	texts := []string{"app=web", "app==api", "tier=front", "app in (web),tier=front", "app in (web,api)", "tier!=front", "shard", "app=web,tier=back", "!app"}
	c := &Controller{catalog: newCatalog(func(objectKey) {}), selectors: selectorindex.New[selectorOwner]()}
	add := func(kind, name, target, text string) selectorOwner {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		owner := selectorOwner{objectKey{kind, "shop", name}, scaleclient.WorkloadID{Namespace: "shop", Name: target}}
		c.selectors.Set(owner, "shop", selector)
		c.catalog.mu.objects[owner.objectKey] = &scalingObject{objectKey: owner.objectKey, mode: decisionreport.Active}
		return owner
	}
	var owners []selectorOwner
	for n, text := range texts {
		owners = append(owners, add(v1alpha1.Kind, fmt.Sprint("s", n), fmt.Sprint("s", n), text))
	}
	add(hpaKind, "another-kind", "another-kind", "app=web")
	add(v1alpha1.Kind, "same-target", "s0", "app=web")
	common := func(a, b string) bool {
		return slices.ContainsFunc([]string{"a", "b", "c", "d", "e"}, func(pod string) bool {
			return parse(t, a).Matches(sets[pod]) && parse(t, b).Matches(sets[pod])
		})
	}
	for n, text := range texts {
		var pods []autoscaler.PodInput
		for name, set := range sets {
			if parse(t, text).Matches(set) {
				pods = append(pods, autoscaler.PodInput{Name: name, Labels: set})
			}
		}
		var want []types.NamespacedName
		for m, other := range texts {
			if m == n || common(text, other) {
				want = append(want, owners[m].namespacedName())
			}
		}
		if n != 0 && common(text, "app=web") {
			want = append(want, types.NamespacedName{Namespace: "shop", Name: "same-target"})
		}
		slices.SortFunc(want, func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
		cmptest.Equal(t, text, want, c.overlapping(owners[n], pods))
	}
	hpa, second := add(hpaKind, "hpa", "web", "app=api"), add(hpaKind, "second", "web", "app=api")
	want := []types.NamespacedName{hpa.namespacedName(), second.namespacedName()}
	cmptest.Equal(t, "two HPAs of one target", want, c.overlapping(hpa, []autoscaler.PodInput{{Name: "c", Labels: sets["c"]}}))
	for _, o := range c.catalog.mu.objects {
		o.mode = decisionreport.DryRun
	}
	if got := c.overlapping(owners[0], []autoscaler.PodInput{{Name: "a", Labels: sets["a"]}}); len(got) != 1 {
		t.Errorf("got %v although no other object writes", got)
	}
}

func parse(t *testing.T, text string) labels.Selector {
	t.Helper()
	selector, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return selector
}
