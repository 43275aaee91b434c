package resourcemetrics

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/served"
)

// reading is what is served of one node or pod.
type reading struct {
	namespace metric.Namespace // of a pod
	name      string
	labels    map[string]string
	over      served.Span // the time it was measured over
	// uses are uses[from:to] of the readings it is one of: a node's own, or
	// one for each container of a pod.
	from, to int32
	size     int // of the object in protobuf; see protobufEncoding
}

// readings are what a LIST serves. They lie in a few slices, so that a LIST of a
// large cluster is no matter of many small objects.
type readings struct {
	items []reading
	uses  []served.Use
	order []place       // of the items, once they are sorted
	said  served.PodUse // what the view says of one pod
}

// place is where an item comes in the order of names.
type place struct {
	head uint64 // the first bytes of the name, as a number in their order
	item int
}

// pool keeps the memory of readings for the next LIST.
var pool = sync.Pool{New: func() any { return &readings{} }}

// release gives r's memory back. What was read must not be used any more.
func (r *readings) release() {
	clear(r.items) // so that nothing holds on to facts
	clear(r.uses)
	r.items, r.uses, r.order = r.items[:0], r.uses[:0], r.order[:0]
	r.said = served.PodUse{Uses: r.said.Uses[:0]}
	pool.Put(r)
}

// grow makes room for so many pods, and as many containers as most have.
func (r *readings) grow(pods int) {
	r.items, r.uses = slices.Grow(r.items, pods), slices.Grow(r.uses, 2*pods)
}

// addPod appends what is served of a pod.
func (r *readings) addPod(u *served.PodUse, labels map[string]string) {
	from := int32(len(r.uses))
	r.uses = append(r.uses, u.Uses...)
	r.items = append(r.items, reading{
		namespace: u.Namespace, name: string(u.Name), labels: labels, over: u.Over, from: from, to: int32(len(r.uses)),
	})
}

// addNode appends what is served of a node.
func (r *readings) addNode(name metric.NodeName, labels map[string]string, u served.Use, over served.Span) {
	from := int32(len(r.uses))
	r.uses = append(r.uses, u)
	r.items = append(r.items, reading{name: string(name), labels: labels, over: over, from: from, to: from + 1})
}

// at returns the i-th item.
func (r *readings) at(i int) *reading {
	if len(r.order) == 0 {
		return &r.items[i]
	}
	return &r.items[r.order[i].item]
}

// of returns the uses of an item.
func (r *readings) of(o *reading) []served.Use { return r.uses[o.from:o.to] }

// sort puts the items in the order in which the API server lists objects: first by
// counting, into namespaces, then each of those. Most comparisons are of numbers, for
// strings lie all over the memory.
func (r *readings) sort() {
	if len(r.items) < 2 {
		return
	}
	ranks := r.ranks()
	begin := make([]int, len(ranks)+1) // of each namespace in the order
	r.eachRank(ranks, func(_, rank int) { begin[rank+1]++ })
	for rank := range len(ranks) {
		begin[rank+1] += begin[rank]
	}
	r.order = slices.Grow(r.order[:0], len(r.items))[:len(r.items)]
	next := slices.Clone(begin)
	r.eachRank(ranks, func(i, rank int) {
		r.order[next[rank]] = place{head(r.items[i].name), i}
		next[rank]++
	})
	for rank := range len(ranks) {
		slices.SortFunc(r.order[begin[rank]:begin[rank+1]], func(a, b place) int {
			if a.head != b.head {
				return cmp.Compare(a.head, b.head)
			}
			return strings.Compare(r.items[a.item].name, r.items[b.item].name)
		})
	}
}

// eachRank calls do for each item with the place of its namespace among them.
func (r *readings) eachRank(ranks map[metric.Namespace]int, do func(i, rank int)) {
	namespace, rank := r.items[0].namespace, ranks[r.items[0].namespace]
	for i := range r.items {
		if is := r.items[i].namespace; is != namespace {
			namespace, rank = is, ranks[is]
		}
		do(i, rank)
	}
}

// ranks returns which namespaces there are, each with its place among them.
func (r *readings) ranks() map[metric.Namespace]int {
	ranks := map[metric.Namespace]int{}
	last := r.items[0].namespace
	ranks[last] = 0
	for i := range r.items {
		if is := r.items[i].namespace; is != last {
			ranks[is], last = 0, is
		}
	}
	for rank, name := range slices.Sorted(maps.Keys(ranks)) {
		ranks[name] = rank
	}
	return ranks
}

// head returns a number that orders names as their first eight bytes do.
func head(name string) uint64 {
	var b [8]byte
	copy(b[:], name)
	return binary.BigEndian.Uint64(b[:])
}
