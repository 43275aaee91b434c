package cluster

import (
	"maps"
	"math/rand/v2"
	"testing"
	"testing/quick"
	"time"

	"github.com/weir-metrics/weir/metric"
)

func TestFactsShareAndStayAsTheyAre(t *testing.T) {
	at := time.Unix(1000, 0)
	pod := func(name, uid string, node metric.NodeName) *Pod {
		return &Pod{PodRef: metric.PodRef{Namespace: "shop", Name: metric.PodName(name)}, UID: metric.PodUID(uid), Node: node}
	}
	var none *Facts
	one := none.With(FactsChange{Synced: true, At: at, Pods: []*Pod{pod("web", "u1", "n1"), pod("db", "u2", "n1")}})
	two := one.With(FactsChange{Synced: true, At: at, Pods: []*Pod{pod("web", "u3", "n2")}, GonePods: []metric.PodRef{{Namespace: "shop", Name: "db"}}})

	check := func(f *Facts, ref metric.PodRef, want metric.PodUID) {
		t.Helper()
		p := f.Pod(ref)
		if (p == nil) != (want == "") || p != nil && p.UID != want {
			t.Errorf("pod %v is %+v, want UID %q", ref, p, want)
		}
	}
	web, db := metric.PodRef{Namespace: "shop", Name: "web"}, metric.PodRef{Namespace: "shop", Name: "db"}
	check(none, web, "")
	check(one, web, "u1")
	check(one, db, "u2")
	check(two, web, "u3")
	check(two, db, "")
	for _, c := range []struct {
		f    *Facts
		node metric.NodeName
		want int
	}{{none, "n1", 0}, {one, "n1", 2}, {one, "n2", 0}, {two, "n1", 0}, {two, "n2", 1}} {
		if got := len(c.f.PodsOn(c.node)); got != c.want {
			t.Errorf("%d pods on %s, want %d", got, c.node, c.want)
		}
	}
}

func TestFactsAgreeWithAList(t *testing.T) {
	check := func(seed uint64) bool {
		r := rand.New(rand.NewPCG(seed, 2))
		ref := func() metric.PodRef {
			return metric.PodRef{Namespace: []metric.Namespace{"a", "b"}[r.IntN(2)], Name: metric.PodName('a' + rune(r.IntN(10)))}
		}
		var f *Facts
		want := map[metric.PodRef]*Pod{}
		for range 60 {
			var c FactsChange
			for range r.IntN(5) {
				if gone := ref(); r.IntN(3) == 0 {
					c.GonePods = append(c.GonePods, gone)
					delete(want, gone)
				}
			}
			for range r.IntN(5) {
				p := &Pod{PodRef: ref(), Node: []metric.NodeName{"", "n1", "n2"}[r.IntN(3)]}
				c.Pods = append(c.Pods, p)
				want[p.PodRef] = p
			}
			f = f.With(c)
		}
		on, in := map[metric.NodeName]int{}, map[metric.Namespace]int{}
		for ref, p := range want {
			if f.Pod(ref) != p {
				return false
			}
			on[p.Node]++
			in[p.Namespace]++
		}
		seen := map[metric.PodRef]*Pod{}
		f.EachPod(func(p *Pod) bool {
			seen[p.PodRef] = p
			return true
		})
		for _, namespace := range []metric.Namespace{"a", "b"} {
			for _, p := range f.PodsIn(namespace) {
				if p.Namespace != namespace || want[p.PodRef] != p {
					return false
				}
			}
		}
		return maps.Equal(seen, want) && f.Pods() == len(want) &&
			len(f.PodsOn("n1")) == on["n1"] && len(f.PodsOn("n2")) == on["n2"] &&
			len(f.PodsIn("a")) == in["a"] && len(f.PodsIn("b")) == in["b"]
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}
