package aggregate

import (
	"math/rand/v2"
	"testing"
)

// A table finds what a map finds, and nothing that came before it was cleared.
func TestTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var x hashIndex[int]
	for range 50 {
		var all []int
		keyOf := func(at int) int { return all[at] }
		want := map[int]int{}
		x.clear()
		for range r.IntN(300) {
			key := r.IntN(200)
			got, ok := x.find(key, keyOf)
			if at, there := want[key]; ok != there || ok && got != at {
				t.Fatalf("find %d among %d: got %d, %v; want %d, %v", key, len(all), got, ok, at, there)
			}
			all = append(all, key)
			x.set(len(all)-1, keyOf)
			want[key] = len(all) - 1
		}
	}
}
