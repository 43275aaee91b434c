package resourcemetrics

import (
	"slices"
	"sync"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/served"
)

// subject is the node or pod that a reading is of.
type subject struct {
	namespace metric.Namespace // of a pod
	name      string
	labels    map[string]string
	plain     bool // both names need no escape in JSON
}

func newSubject(namespace metric.Namespace, name string, labels map[string]string) subject {
	return subject{namespace, name, labels, plain(string(namespace)) && plain(name)}
}

// reading is what is served of one subject.
type reading struct {
	over served.Span // the time it was measured over
	// uses are uses[from:to] of the readings it is one of: a node's own, or
	// one for each container of a pod.
	from, to int32
	who      int32 // which of the subjects
}

// readings are what a LIST serves. They lie in a few slices, so that a LIST of a
// large cluster is no matter of many small objects.
type readings struct {
	who   []subject // own, or those of a roll, which are never changed
	items []reading
	uses  []served.Use
	order []int32       // of the items, once they are sorted
	said  served.PodUse // what the view says of one pod
	own   []subject
	ready ready
}

// pool keeps the memory of readings for the next LIST.
var pool = sync.Pool{New: func() any { return &readings{} }}

// release gives r's memory back. What was read must not be used any more.
func (r *readings) release() {
	clear(r.own) // so that nothing holds on to facts
	clear(r.uses)
	clear(r.ready.objects[:min(block, len(r.items))])
	r.who, r.own = nil, r.own[:0]
	r.items, r.uses, r.order = r.items[:0], r.uses[:0], r.order[:0]
	r.said = served.PodUse{Uses: r.said.Uses[:0]}
	pool.Put(r)
}

// grow makes room for so many pods, and as many containers as most have.
func (r *readings) grow(pods int) {
	r.items, r.uses = slices.Grow(r.items, pods), slices.Grow(r.uses, 2*pods)
}

// addPod appends what is served of a pod. who is which of the subjects it is.
func (r *readings) addPod(u *served.PodUse, who int32) {
	from := int32(len(r.uses))
	r.uses = append(r.uses, u.Uses...)
	r.items = append(r.items, reading{over: u.Over, from: from, to: int32(len(r.uses)), who: who})
}

// addNode appends what is served of a node.
func (r *readings) addNode(s subject, u served.Use, over served.Span) {
	from := int32(len(r.uses))
	r.uses = append(r.uses, u)
	r.items = append(r.items, reading{over: over, from: from, to: from + 1, who: r.add(s)})
}

// add appends a subject of r's own and returns which it is.
func (r *readings) add(s subject) int32 {
	r.own = append(r.own, s)
	r.who = r.own
	return int32(len(r.own) - 1)
}

// at returns the i-th item.
func (r *readings) at(i int) *reading {
	if len(r.order) == 0 {
		return &r.items[i]
	}
	return &r.items[r.order[i]]
}

// subject returns whom an item is of.
func (r *readings) subject(o *reading) *subject { return &r.who[o.who] }

// of returns the uses of an item.
func (r *readings) of(o *reading) []served.Use { return r.uses[o.from:o.to] }

// sort puts the items, each of which has the next subject, in the order of names.
func (r *readings) sort() {
	if len(r.items) > 1 {
		r.order = sorted(r.who, r.order[:0])
	}
}

// arrange puts the items in the order of their subjects, which is that of names.
func (r *readings) arrange() {
	r.order = slices.Grow(r.order[:0], len(r.who))[:len(r.who)]
	if len(r.items) < len(r.who) {
		for i := range r.order {
			r.order[i] = -1
		}
	}
	for i := range r.items {
		r.order[r.items[i].who] = int32(i)
	}
	if len(r.items) < len(r.who) {
		r.order = slices.DeleteFunc(r.order, func(i int32) bool { return i < 0 })
	}
}
