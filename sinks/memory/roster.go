package memory

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// view is what one source last said of one node. As a part of a Snapshot it is
// immutable.
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
	names  []metric.NodeName
	chunks []*chunk // all full but the last
	named  era      // when names were made
	made   era      // chunks
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
	if ok {
		r.own(now, i/chunkNodes).nodes[i%chunkNodes] = n
		return
	}
	// Slow path: a new node shifts those behind it.
	r.ownNames(now)
	r.names = slices.Insert(r.names, i, n.name)
	if len(r.names) > len(r.chunks)*chunkNodes {
		r.chunks = append(r.ownChunks(now), &chunk{made: now})
	}
	for at, from := i/chunkNodes, i%chunkNodes; at < len(r.chunks); at, from = at+1, 0 {
		c := r.own(now, at)
		last := c.nodes[chunkNodes-1]
		copy(c.nodes[from+1:], c.nodes[from:])
		c.nodes[from], n = n, last
	}
}

// remove takes a node out.
func (r *roster) remove(now era, name metric.NodeName) {
	i, ok := slices.BinarySearch(r.names, name)
	if !ok {
		return
	}
	r.ownNames(now)
	r.names = slices.Delete(r.names, i, i+1)
	for at, from := i/chunkNodes, i%chunkNodes; at < len(r.chunks); at, from = at+1, 0 {
		c := r.own(now, at)
		copy(c.nodes[from:], c.nodes[from+1:])
		c.nodes[chunkNodes-1] = nil
		if at+1 < len(r.chunks) {
			c.nodes[chunkNodes-1] = r.chunks[at+1].nodes[0]
		}
	}
	if last := len(r.chunks) - 1; len(r.names) <= last*chunkNodes {
		r.chunks[last] = nil
		r.chunks = r.chunks[:last]
	}
}

// own returns a chunk that no Snapshot has.
func (r *roster) own(now era, at int) *chunk {
	c := r.ownChunks(now)[at]
	if c.made != now {
		c = &chunk{made: now, nodes: c.nodes}
		r.chunks[at] = c
	}
	return c
}

// ownChunks makes chunks a slice that no Snapshot has, and returns it.
func (r *roster) ownChunks(now era) []*chunk {
	if r.made != now {
		r.chunks, r.made = slices.Clone(r.chunks), now
	}
	return r.chunks
}

// ownNames makes names a slice that no Snapshot has.
func (r *roster) ownNames(now era) {
	if r.named != now {
		r.names, r.named = slices.Clone(r.names), now
	}
}
