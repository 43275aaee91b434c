package memory

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-metrics/weir/metric"
)

// TestRoster adds and removes nodes in random order. It compares the nodeList, and each copy of
// it in a Snapshot, with a sorted list.
func TestRoster(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	type taken struct {
		nodeList
		want []*nodeView
	}
	var (
		r     nodeList
		now   snapshotGeneration
		want  []*nodeView
		snaps []taken
	)
	byName := func(n *nodeView, name metric.NodeName) int { return cmp.Compare(n.name, name) }
	for range 4000 {
		name := metric.NodeName(fmt.Sprintf("node-%d", random.IntN(300)))
		i, found := slices.BinarySearchFunc(want, name, byName)
		switch n := (&nodeView{name: name}); {
		case random.IntN(5) < 2 && found:
			r.remove(now, name)
			want = slices.Delete(slices.Clone(want), i, i+1)
		case found:
			r.set(now, n)
			want = slices.Clone(want)
			want[i] = n
		default:
			r.set(now, n)
			want = slices.Insert(slices.Clone(want), i, n)
		}
		if random.IntN(20) == 0 {
			snaps = append(snaps, taken{r, want})
			now++
		}
	}
	for k, s := range append(snaps, taken{r, want}) {
		var got []*nodeView
		for i, name := range s.names {
			if s.at(i).name != name {
				t.Fatalf("roster %d: node %d is %s by name and %s by its view", k, i, name, s.at(i).name)
			}
			got = append(got, s.get(name))
		}
		if !slices.Equal(got, s.want) {
			t.Fatalf("roster %d: got %d nodes that are not the %d wanted", k, len(got), len(s.want))
		}
	}
}
