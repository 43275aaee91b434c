package cluster

import (
	"math"
	"slices"
)

// LargestShare returns the most places that each count may take so that all together take at most
// places: small counts keep theirs, and the others share the rest equally. It sorts counts.
func LargestShare(counts []int, places int) int {
	slices.Sort(counts)
	for i, n := range counts {
		if share := places / (len(counts) - i); n > share {
			return share
		}
		places -= n
	}
	return math.MaxInt
}
