package cluster

import (
	"math"
	"slices"
)

// Surplus returns which entries to drop, so that at most places are left: the oldest of the namespaces that have the
// most. Namespaces with few keep theirs, and the others share the rest equally. So one that is flooded loses its own.
// oldest compares entries by their age, the oldest first.
func Surplus[N comparable, E any](byNamespace map[N][]E, places int, oldest func(a, b E) int) (drop []E) {
	counts := make([]int, 0, len(byNamespace))
	for _, entries := range byNamespace {
		counts = append(counts, len(entries))
	}
	share := largestShare(counts, places)
	for _, entries := range byNamespace {
		if len(entries) > share {
			slices.SortFunc(entries, oldest)
			drop = append(drop, entries[:len(entries)-share]...)
		}
	}
	return drop
}

// largestShare returns the most places that each count may take so that all together take at most
// places: small counts keep theirs, and the others share the rest equally. It sorts counts.
func largestShare(counts []int, places int) int {
	slices.Sort(counts)
	for i, n := range counts {
		if share := places / (len(counts) - i); n > share {
			return share
		}
		places -= n
	}
	return math.MaxInt
}
