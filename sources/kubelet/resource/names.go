package resource

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/weir-metrics/weir/metric"
)

// names are the subjects of the last payload in the order it had them and, while there
// is one in hand, those that are new in it. A line is recognised by comparing it with
// what a kubelet would write of the subject that is expected there, so that nothing is
// kept of the lines themselves. Lines that are written otherwise, or stand elsewhere, are
// read label by label.
type names struct {
	body   []byte // the present payload
	layout *metric.Layout
	known  int // how many subjects are in layout; others are new
	// firsts are the places in layout of those that are known; nil where each has the
	// place of its own index.
	firsts  []int32
	escaped bool // the names of some may not stand in labels as they are
	// subjects are those of the present payload, in memory lent by rooms for it.
	subjects []subject
	rooms    *sync.Pool
	room     *[]subject
	// added are the entities that are not in layout, behind whose they count.
	added []metric.Entity
	// orders holds, for each family, the subjects as its lines name them: not every
	// family has all of them.
	orders [len(families)]order
	order  *order // of the present family
	next   int    // in order, what is expected
	last   int32  // the subject found last
	// index finds subjects by their entity, and words makes equal strings one. They are
	// made when something new comes, and live for that payload only.
	index map[metric.Entity]int32
	words map[string]string
}

// order is the subjects that a family's lines name, one after the other. Families that
// name the same ones share it, as most do.
type order struct {
	subjects []int32
	shared   bool
}

// own readies o for a change.
func (o *order) own() {
	if o.shared {
		o.subjects, o.shared = slices.Clone(o.subjects), false
	}
}

// near is how many subjects may have gone before one is looked up.
const near = 3

// begin readies n for a payload of that node.
func (n *names) begin(node metric.NodeName, body []byte) {
	if n.layout == nil || len(n.layout.Entities) > 0 && n.layout.Entities[0].Node != node {
		*n = names{layout: &metric.Layout{}, rooms: n.rooms}
	}
	n.body = body
	if n.room, _ = n.rooms.Get().(*[]subject); n.room == nil {
		n.room = new([]subject)
	}
	n.subjects = slices.Grow((*n.room)[:0], n.known)[:n.known]
	for i := range n.subjects {
		s := subject{entity: int32(i), plain: true}
		if n.firsts != nil {
			s.entity = n.firsts[i]
		}
		if n.escaped {
			s.plain = plain(&n.layout.Entities[s.entity])
		}
		n.subjects[i] = s
	}
}

// rewind expects the lines of that family.
func (n *names) rewind(family int) {
	n.order, n.next, n.last = &n.orders[family], 0, -1
}

// entity returns whom s is. It is valid until the next find.
func (n *names) entity(s *subject) *metric.Entity {
	if known := int32(len(n.layout.Entities)); s.entity >= known {
		return &n.added[s.entity-known]
	}
	return &n.layout.Entities[s.entity]
}

// guess returns whom the labels that b, the end of the payload, begins with name, if it
// is one that may be expected, and their length with the blank behind them; 0 if it is
// none.
func (n *names) guess(kind metric.Kind, b []byte) (s *subject, size int) {
	order := n.order.subjects
	for at := n.next; at < len(order) && at <= n.next+near; at++ {
		s = &n.subjects[order[at]]
		if size = n.written(s, kind, b); size > 0 {
			n.next, n.last = at+1, order[at]
			return s, size
		}
	}
	// The same once more; or one that is new to this family, and was in another behind
	// the last.
	for i := max(n.last, 0); i <= n.last+1 && int(i) < len(n.subjects); i++ {
		s = &n.subjects[i]
		if size = n.written(s, kind, b); size > 0 {
			if i != n.last {
				n.expect(i)
			}
			return s, size
		}
	}
	return nil, 0
}

// expect makes subject i the one expected at this place, and steps behind it.
func (n *names) expect(i int32) {
	o := n.order
	from := max(n.next-1, 0)
	at := slices.Index(o.subjects[from:min(n.next+near+1, len(o.subjects))], i)
	if at >= 0 { // as it may be, though written otherwise
		n.next, n.last = from+at+1, i
		return
	}
	o.own()
	if at = slices.Index(o.subjects, i); at >= 0 {
		o.subjects = slices.Delete(o.subjects, at, at+1)
		if at < n.next {
			n.next--
		}
	}
	o.subjects = slices.Insert(o.subjects, n.next, i)
	n.next, n.last = n.next+1, i
}

// written returns the length of s's labels, with the blank behind them, if b begins with
// them and s is of that kind; else 0. They are as in an earlier family of the payload,
// or else as a kubelet writes them.
func (n *names) written(s *subject, kind metric.Kind, b []byte) int {
	// Fast path: of one kind, most families are of everyone.
	if size := int(s.size); size > 0 && len(b) >= size && string(b[:size]) == string(n.body[s.at:int(s.at)+size]) && n.entity(s).Kind == kind {
		return size
	}
	size := n.spelled(s, kind, b)
	if size > 0 {
		n.seen(s, b, size)
	}
	return size
}

// seen remembers that b, the end of the payload, begins with size bytes of labels of s.
func (n *names) seen(s *subject, b []byte, size int) {
	if at := len(n.body) - len(b); at <= math.MaxInt32 && size <= math.MaxUint16 {
		s.at, s.size = int32(at), uint16(size)
	}
}

// spelled is written where the labels have not come yet.
func (n *names) spelled(s *subject, kind metric.Kind, b []byte) int {
	const container, namespace, pod, end = `{container="`, `",namespace="`, `",pod="`, `"} `
	const first = `{namespace="` // of a pod
	e := n.entity(s)
	if e.Kind != kind || !s.plain {
		return 0
	}
	at := 0 // where the namespace's name begins
	switch kind {
	case metric.Container:
		at = len(container) + len(e.Name) + len(namespace)
	case metric.Pod:
		at = len(first)
	default:
		if len(b) > 0 && b[0] == ' ' {
			return 1
		}
		return 0
	}
	name := at + len(e.Namespace) + len(pod)
	size := name + len(e.Pod) + len(end)
	if len(b) < size ||
		string(b[name+len(e.Pod):size]) != end ||
		string(b[name:name+len(e.Pod)]) != string(e.Pod) ||
		string(b[name-len(pod):name]) != pod ||
		string(b[at:at+len(e.Namespace)]) != string(e.Namespace) {
		return 0
	}
	if kind == metric.Pod {
		if string(b[:at]) != first {
			return 0
		}
		return size
	}
	if string(b[:len(container)]) != container ||
		string(b[len(container):len(container)+len(e.Name)]) != e.Name ||
		string(b[at-len(namespace):at]) != namespace {
		return 0
	}
	return size
}

// find returns the subject that is e, which is added if it is not known. It is false
// if e is new and there are limit subjects already.
func (n *names) find(e metric.Entity, limit int) (*subject, bool) {
	if n.index == nil {
		n.index = make(map[metric.Entity]int32, len(n.subjects))
		n.words = map[string]string{}
		for i := range n.subjects {
			known := *n.entity(&n.subjects[i])
			n.index[known] = int32(i)
			n.intern(&known)
		}
	}
	i, known := n.index[e]
	if !known {
		if len(n.subjects) >= limit && e.Kind != metric.Node {
			return nil, false
		}
		n.intern(&e)
		i = int32(len(n.subjects))
		n.subjects = append(n.subjects, subject{entity: int32(len(n.layout.Entities) + len(n.added)), plain: plain(&e)})
		n.added = append(n.added, e)
		n.index[e] = i
	}
	n.expect(i)
	return &n.subjects[i], true
}

// plain reports whether e's names stand in labels as they are.
func plain(e *metric.Entity) bool {
	const escaped = "\"\\\n"
	return !strings.ContainsAny(string(e.Namespace), escaped) && !strings.ContainsAny(string(e.Pod), escaped) &&
		!strings.ContainsAny(e.Name, escaped)
}

// intern makes e share its strings with those before it.
func (n *names) intern(e *metric.Entity) {
	e.Namespace = metric.Namespace(n.word(string(e.Namespace)))
	e.Pod = metric.PodName(n.word(string(e.Pod)))
	e.Name = n.word(e.Name)
}

func (n *names) word(s string) string {
	if w, known := n.words[s]; known {
		return w
	}
	n.words[s] = s
	return s
}

// learn makes a layout of samples, the first of which has index base in its batch,
// and forgets who is not in it.
func (n *names) learn(samples []metric.Sample, base int) {
	layout := metric.LayoutOf(samples)
	subjects := make([]subject, 0, len(samples))
	for _, s := range n.subjects {
		if s.sample > 0 {
			s.entity = s.sample - 1 - int32(base)
			subjects = append(subjects, s)
		}
	}
	slices.SortFunc(subjects, func(a, b subject) int { return int(a.entity - b.entity) })
	place := make(map[metric.Entity]int32, len(subjects))
	for i := range subjects {
		place[layout.Entities[subjects[i].entity]] = int32(i)
	}
	var orders [len(families)]order
	for f, before := range n.orders {
		subjects := make([]int32, 0, len(before.subjects))
		for _, i := range before.subjects {
			if at, present := place[*n.entity(&n.subjects[i])]; present {
				subjects = append(subjects, at)
			}
		}
		orders[f].subjects = subjects
		for g := range f {
			if other := &orders[g]; len(subjects) > 0 && slices.Equal(other.subjects, subjects) {
				other.shared, orders[f] = true, order{other.subjects, true}
				break
			}
		}
	}
	n.orders = orders
	n.layout, n.subjects, n.known = layout, subjects, len(subjects)
	n.firsts, n.escaped = nil, slices.ContainsFunc(subjects, func(s subject) bool { return !s.plain })
	if n.known < len(samples) {
		n.firsts = make([]int32, n.known)
		for i := range subjects {
			n.firsts[i] = subjects[i].entity
		}
	}
}

// end forgets what is new and was not learned, and gives the memory back.
func (n *names) end() {
	if len(n.subjects) > n.known {
		for f := range n.orders {
			// It is no shared one that has some.
			n.orders[f].subjects = slices.DeleteFunc(n.orders[f].subjects, func(i int32) bool { return int(i) >= n.known })
		}
	}
	*n.room = n.subjects
	n.rooms.Put(n.room)
	n.body, n.subjects, n.room, n.added, n.index, n.words = nil, nil, nil, nil, nil, nil
}
