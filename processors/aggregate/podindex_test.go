package aggregate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weir-metrics/weir/metric"
)

// A podIndex holds what a map would.
func TestPodIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var x podIndex
	want := map[metric.Entity]*pod{}
	for i := range 5000 {
		e := metric.Entity{
			Kind: metric.Pod, Node: metric.NodeName(fmt.Sprint("n", r.IntN(2))),
			Namespace: metric.Namespace(fmt.Sprint("a", r.IntN(3))), Pod: metric.PodName(fmt.Sprint("p", r.IntN(40))),
		}
		if want[e] == nil && r.IntN(2) == 0 {
			want[e] = &pod{entity: &e}
			x.add(want[e])
		}
		if r.IntN(20) == 0 {
			namespace := metric.Namespace(fmt.Sprint("a", r.IntN(3)))
			x.drop(func(p *pod) bool { return p.entity.Namespace == namespace })
			for o := range want {
				if o.Namespace == namespace {
					delete(want, o)
				}
			}
		}
		inside := e
		inside.Kind, inside.Name = metric.Container, "app"
		if got := x.find(&inside); got != want[e] || len(x.all) != len(want) {
			t.Fatalf("step %d: found %p for %v among %d, want %p among %d", i, got, e, len(x.all), want[e], len(want))
		}
	}
}
