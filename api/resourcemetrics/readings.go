package resourcemetrics

import (
	"cmp"
	"encoding/binary"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/weir-metrics/weir/cluster/served"
	"github.com/weir-metrics/weir/metric"
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

// compare orders subjects as the API server lists objects.
func (s *subject) compare(o *subject) int {
	return cmp.Or(cmp.Compare(s.namespace, o.namespace), strings.Compare(s.name, o.name))
}

// place is where a subject comes in the order of names.
type place struct {
	head uint64 // the first bytes of the name, as a number in their order
	who  int32
}

// sorted appends which of the subjects come first, second and so on: first by counting,
// into namespaces, then each of those. Most comparisons are of numbers, for strings lie
// all over the memory. There must be a subject.
func sorted(who []subject, order []int32) []int32 {
	ranks := ranksOf(who)
	begin := make([]int, len(ranks)+1) // of each namespace in the order
	eachRank(who, ranks, func(_, rank int) { begin[rank+1]++ })
	for rank := range len(ranks) {
		begin[rank+1] += begin[rank]
	}
	places, next := make([]place, len(who)), slices.Clone(begin)
	eachRank(who, ranks, func(i, rank int) {
		places[next[rank]] = place{head(who[i].name), int32(i)}
		next[rank]++
	})
	for rank := range len(ranks) {
		slices.SortFunc(places[begin[rank]:begin[rank+1]], func(a, b place) int {
			if a.head != b.head {
				return cmp.Compare(a.head, b.head)
			}
			return strings.Compare(who[a.who].name, who[b.who].name)
		})
	}
	for _, p := range places {
		order = append(order, p.who)
	}
	return order
}

// eachRank calls do for each subject with the place of its namespace among them.
func eachRank(who []subject, ranks map[metric.Namespace]int, do func(i, rank int)) {
	namespace, rank := who[0].namespace, ranks[who[0].namespace]
	for i := range who {
		if is := who[i].namespace; is != namespace {
			namespace, rank = is, ranks[is]
		}
		do(i, rank)
	}
}

// ranksOf returns which namespaces there are, each with its place among them.
func ranksOf(who []subject) map[metric.Namespace]int {
	ranks := map[metric.Namespace]int{}
	last := who[0].namespace
	ranks[last] = 0
	for i := range who {
		if is := who[i].namespace; is != last {
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

// labelSet is the labels of a subject, and how they are written. It is immutable.
type labelSet struct {
	all            map[string]string
	json, protobuf []byte
}

// label is one of a set.
type label struct{ key, value string }

func newLabelSet(all map[string]string) *labelSet {
	sorted, size := make([]label, 0, len(all)), 0
	for k, v := range all {
		sorted = append(sorted, label{k, v})
		size += len(k) + len(v) + len(`"":"",`) // in protobuf as much, unless it is long
	}
	slices.SortFunc(sorted, func(a, b label) int { return cmp.Compare(a.key, b.key) })
	text := appendLabels(make([]byte, 0, 2*size+len(`,"labels":{}`)), sorted)
	n := len(text)
	text = appendLabelFields(text, sorted)
	return &labelSet{all: all, json: text[:n:n], protobuf: text[n:]}
}

// noLabels is the set of what has none.
var noLabels = &labelSet{}

// labelSets are those that were met, by their maps: the pods of a replica set share one.
type labelSets map[uintptr]*labelSet

// of returns the set of labels, which nobody changes.
func (l labelSets) of(labels map[string]string) *labelSet {
	if len(labels) == 0 {
		return noLabels
	}
	set := l[address(labels)]
	if set == nil {
		set = newLabelSet(labels)
		l.add(set)
	}
	return set
}

// add has set be found.
func (l labelSets) add(set *labelSet) { l[address(set.all)] = set }

// address returns which map labels are.
func address(labels map[string]string) uintptr { return reflect.ValueOf(labels).Pointer() }
