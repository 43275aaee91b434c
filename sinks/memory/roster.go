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
	lastRead    int64 // nanoseconds since the Unix era
	lastSuccess int64 // 0 for never
	err         error
	samples     int // in the batch, those turned away included
	standings   standings
	rounds      []round // newest first; at least one
	past        past
}

// nodeView is what all sources say of one node, the preferred first. It is
// immutable.
type nodeView struct {
	name  metric.NodeName
	views []*view
}

// era counts snapshots. What the writer made since the last one was taken
// nobody reads yet, so that it may be changed in place; what is older is shared
// with readers and copied first. So a Write costs the same on a large cluster
// as on a small one, and only a snapshot that is taken makes the next writes
// copy, each part once.
type era uint64

// roster is the sorted list of nodes. As a part of a Snapshot it is immutable.
// The zero roster is empty.
type roster struct {
	names  []metric.NodeName // replaced, never changed
	chunks []*chunk
	made   era // chunks
}

// chunkNodes is about the root of the number of nodes of a large cluster.
const chunkNodes = 64

// chunk is a stretch of a roster.
type chunk struct {
	made  era
	nodes [chunkNodes]*nodeView
}

// get returns the view of a node, or nil.
func (r *roster) get(name metric.NodeName) *nodeView {
	i, ok := slices.BinarySearch(r.names, name)
	if !ok {
		return nil
	}
	return r.at(i)
}

func (r *roster) at(i int) *nodeView { return r.chunks[i/chunkNodes].nodes[i%chunkNodes] }

// put puts n in the place of what was there of its name.
func (r *roster) put(now era, n *nodeView) {
	i, ok := slices.BinarySearch(r.names, n.name)
	if !ok {
		// Rare: a new node shifts those behind it.
		r.rebuild(now, slices.Insert(slices.Clone(r.names), i, n.name), n)
		return
	}
	if r.made != now {
		r.chunks, r.made = slices.Clone(r.chunks), now
	}
	c := r.chunks[i/chunkNodes]
	if c.made != now {
		c = &chunk{made: now, nodes: c.nodes}
		r.chunks[i/chunkNodes] = c
	}
	c.nodes[i%chunkNodes] = n
}

// remove takes a node out.
func (r *roster) remove(now era, name metric.NodeName) {
	if i, ok := slices.BinarySearch(r.names, name); ok {
		r.rebuild(now, slices.Delete(slices.Clone(r.names), i, i+1), nil)
	}
}

// rebuild makes r a roster of those names. added is the one that is new.
func (r *roster) rebuild(now era, names []metric.NodeName, added *nodeView) {
	next := roster{names, make([]*chunk, (len(names)+chunkNodes-1)/chunkNodes), now}
	for i, name := range names {
		if i%chunkNodes == 0 {
			next.chunks[i/chunkNodes] = &chunk{made: now}
		}
		n := added
		if n == nil || name != n.name {
			n = r.get(name)
		}
		next.chunks[i/chunkNodes].nodes[i%chunkNodes] = n
	}
	*r = next
}
