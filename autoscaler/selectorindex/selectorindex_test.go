package selectorindex

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// TestIndexFindsWhatMatches checks that the index finds all matching selectors, in every form that
// a selector can have.
func TestIndexFindsWhatMatches(t *testing.T) {
	x, parsed := New[string](), map[string]labels.Selector{}
	for _, text := range []string{
		"app=web", "app==web,tier=front", "tier in (front)", "tier in (front,back),app=web", "app!=web", "!tier",
		"tier", "tier notin (back)", "shard>3", "app=web,app=api",
	} {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		parsed[text] = selector
		x.Set(text, "shop", labels.SelectorFromSet(labels.Set{"app": "another"})) // it is replaced below
		x.Set(text, "shop", selector)
	}
	for _, set := range []labels.Set{
		nil, {"app": "web"}, {"app": "api"}, {"app": "web", "tier": "front"}, {"app": "web", "tier": "back", "shard": "4"}, {"tier": "middle", "shard": "3"},
	} {
		var want []string
		for text, selector := range parsed {
			if selector.Matches(set) {
				want = append(want, text)
			}
		}
		slices.Sort(want)
		if got := slices.Sorted(x.Matching("shop", set)); !slices.Equal(got, want) {
			t.Errorf("%v: got %q, want %q", set, got, want)
		}
		if got := slices.Collect(x.Matching("bank", set)); got != nil {
			t.Errorf("%v in another namespace: got %q", set, got)
		}
	}
	for text := range parsed {
		x.Delete(text)
	}
	if x.Len() != 0 || len(x.entries) != 0 {
		t.Errorf("%d selectors are left of none", x.Len())
	}
}
