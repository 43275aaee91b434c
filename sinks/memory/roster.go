package memory

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// view is what one source last said of one node. It is immutable.
type view struct {
	source      string
	clock       int64 // nanoseconds; 0 if unknown
	interval    int64
	lastRead    int64 // nanoseconds since the Unix epoch
	lastSuccess int64 // 0 for never
	err         error
	samples     int // in the batch, those turned away included
	standings   standings
	rounds      []round // newest first; at least one
	rows        []row
	head        *block
}

// nodeView is what all sources say of one node, the preferred first. It is
// immutable.
type nodeView struct {
	name  metric.NodeName
	views []*view
}

// roster is the sorted list of nodes. It is immutable; changing one of 5,000
// nodes copies a kilobyte, not 5,000 pointers. The zero roster is empty.
type roster struct {
	names  []metric.NodeName
	chunks []*[chunk]*nodeView
}

// chunk is about the root of the number of nodes of a large cluster.
const chunk = 64

// get returns the view of a node, or nil.
func (r *roster) get(name metric.NodeName) *nodeView {
	i, ok := slices.BinarySearch(r.names, name)
	if !ok {
		return nil
	}
	return r.at(i)
}

func (r *roster) at(i int) *nodeView { return r.chunks[i/chunk][i%chunk] }

// with returns the roster with n in it.
func (r *roster) with(n *nodeView) roster {
	i, ok := slices.BinarySearch(r.names, n.name)
	if !ok {
		// Rare: a new node shifts those behind it.
		return r.rebuild(slices.Insert(slices.Clone(r.names), i, n.name), n)
	}
	next := roster{r.names, slices.Clone(r.chunks)}
	c := *next.chunks[i/chunk]
	c[i%chunk] = n
	next.chunks[i/chunk] = &c
	return next
}

// without returns the roster without a node.
func (r *roster) without(name metric.NodeName) roster {
	i, ok := slices.BinarySearch(r.names, name)
	if !ok {
		return *r
	}
	return r.rebuild(slices.Delete(slices.Clone(r.names), i, i+1), nil)
}

// rebuild returns a roster of those names. added is the one that is new.
func (r *roster) rebuild(names []metric.NodeName, added *nodeView) roster {
	next := roster{names, make([]*[chunk]*nodeView, (len(names)+chunk-1)/chunk)}
	for i, name := range names {
		if i%chunk == 0 {
			next.chunks[i/chunk] = new([chunk]*nodeView)
		}
		n := added
		if n == nil || name != n.name {
			n = r.get(name)
		}
		next.chunks[i/chunk][i%chunk] = n
	}
	return next
}
