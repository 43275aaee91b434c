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
	labels    *labelSet
	plain     bool // both names need no escape in JSON
}

func newSubject(namespace metric.Namespace, name string, labels *labelSet) subject {
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
	who []subject // own, or those of a roll, which are never changed
	numbers
	said  served.PodUse // what the view says of one pod
	own   []subject
	sets  labelSets
	texts []usage // of one object, while it is written
	// For arrange.
	spare numbers
	order []int32
}

// numbers are items and their uses.
type numbers struct {
	items []reading
	uses  []served.Use
}

// pool keeps the memory of readings for the next LIST.
var pool = sync.Pool{New: func() any { return &readings{sets: labelSets{}} }}

// release gives r's memory back. What was read must not be used any more.
func (r *readings) release() {
	clear(r.own) // so that nothing holds on to facts
	clear(r.sets)
	clear(r.texts[:cap(r.texts)])
	r.numbers.clear()
	r.spare.clear()
	r.who, r.own = nil, r.own[:0]
	r.said = served.PodUse{Uses: r.said.Uses[:0]}
	pool.Put(r)
}

func (n *numbers) clear() {
	clear(n.uses)
	n.items, n.uses = n.items[:0], n.uses[:0]
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

// subject returns whom an item is of.
func (r *readings) subject(o *reading) *subject { return &r.who[o.who] }

// of returns the uses of an item.
func (r *readings) of(o *reading) []served.Use { return r.uses[o.from:o.to] }

// sort puts the items, each of which has the next subject, in the order of names.
func (r *readings) sort() {
	if len(r.items) > 1 {
		r.order = sorted(r.who, r.order[:0])
		r.arrange()
	}
}

// seat puts the items in the order of their subjects, which is that of names.
func (r *readings) seat() {
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
	r.arrange()
}

// arrange puts the items into order, and their uses, so that whoever writes them goes through
// the memory from one end to the other. To fetch them from all over it is quicker here,
// where a processor waits for many at once, than between other work.
func (r *readings) arrange() {
	to := &r.spare
	to.items, to.uses = slices.Grow(to.items, len(r.items)), slices.Grow(to.uses, len(r.uses))
	for _, i := range r.order {
		to.items = append(to.items, r.items[i])
	}
	for i := range to.items {
		o := &to.items[i]
		from := int32(len(to.uses))
		to.uses = append(to.uses, r.uses[o.from:o.to]...)
		o.from, o.to = from, int32(len(to.uses))
	}
	r.numbers, r.spare = r.spare, r.numbers
}
