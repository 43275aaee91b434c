package aggregate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weir-metrics/weir/metric"
)

// The index finds what a map finds, and nothing of an earlier batch.
func TestVerdictIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var x verdictIndex
	for range 50 {
		var all []metric.Verdict
		at := map[verdictKey]int{}
		x.clear()
		for range r.IntN(300) {
			e := metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: metric.PodName(fmt.Sprint(r.IntN(100))), Name: "app"}
			key := verdictKey{e, metric.Group(r.IntN(2))}
			got, ok := x.find(all, &e, key.group)
			if want, there := at[key]; ok != there || ok && got != want {
				t.Fatalf("find %v of %d: got %d, %v; want %d, %v", key, len(all), got, ok, want, there)
			}
			all = append(all, metric.Verdict{Entity: e, Group: key.group})
			x.set(all, len(all)-1)
			at[key] = len(all) - 1
		}
	}
}
