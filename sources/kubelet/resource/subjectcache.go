package resource

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/weir-metrics/weir/metric"
)

// subjectCache has the subjects of the last payload in their order and, while a payload is
// parsed, those that are new in it. A line is recognised by comparing it with the labels
// that a kubelet writes for the subject that is expected there. Lines that are written
// in another form or come in another order are read label by label.
//
// Unlike payload.NameCache it keeps no bytes of the lines: between two reads a subject costs
// 4 bytes for each order and its entity in the layout. With NameCache it costs some 250 bytes, 25 MB at
// 1,000 nodes of 100 containers, for the endpoint that weir reads by default.
type subjectCache struct {
	body   []byte // the present payload
	layout *metric.Layout
	known  int // subjects[:known] are in layout, the others are new
	// layoutIndex has the index in layout of each known subject; nil if it is the index of
	// the subject itself.
	layoutIndex []int32
	escaped     bool // some names need escapes in labels
	// subjects are those of the present payload, in memory of pool.
	subjects []subject
	pool     *sync.Pool // of *[]subject
	memory   *[]subject
	// added are the new entities. Their indexes continue those of layout.
	added []metric.Entity
	// orders has, for each family, its subjects in the order of its lines.
	orders [len(families)]familyOrder
	order  *familyOrder // of the present family
	next   int          // index in order of the subject that is expected next
	last   int32        // the subject found last
	// index finds subjects by entity; interned has one string for equal strings. Both are made when a
	// new entity comes, and dropped at the end of the payload.
	index    map[metric.Entity]int32
	interned map[string]string
}

// familyOrder lists the subjects of a family in the order of its lines. Families with
// equal lists share one slice, as most do.
type familyOrder struct {
	subjects []int32
	shared   bool
}

// unshare prepares o for a change.
func (o *familyOrder) unshare() {
	if o.shared {
		o.subjects, o.shared = slices.Clone(o.subjects), false
	}
}

// maxSkipped is how many subjects may be missing from a family before a line is read label by label.
const maxSkipped = 3

// begin prepares n for a payload of that node.
func (n *subjectCache) begin(node metric.NodeName, body []byte) {
	if n.layout == nil || len(n.layout.Entities) > 0 && n.layout.Entities[0].Node != node {
		*n = subjectCache{layout: &metric.Layout{}, pool: n.pool}
	}
	n.body = body
	if n.memory, _ = n.pool.Get().(*[]subject); n.memory == nil {
		n.memory = new([]subject)
	}
	n.subjects = slices.Grow((*n.memory)[:0], n.known)[:n.known]
	for i := range n.subjects {
		s := subject{entity: int32(i), plain: true}
		if n.layoutIndex != nil {
			s.entity = n.layoutIndex[i]
		}
		if n.escaped {
			s.plain = isPlain(&n.layout.Entities[s.entity])
		}
		n.subjects[i] = s
	}
}

// beginFamily prepares n for the lines of a family.
func (n *subjectCache) beginFamily(family int) {
	n.order, n.next, n.last = &n.orders[family], 0, -1
}

// entity returns the entity of s. The pointer is valid until the next call of find.
func (n *subjectCache) entity(s *subject) *metric.Entity {
	if known := int32(len(n.layout.Entities)); s.entity >= known {
		return &n.added[s.entity-known]
	}
	return &n.layout.Entities[s.entity]
}

// match compares the labels at the start of b, the rest of the payload, with those of the
// subjects that are expected there. It returns the subject and the length of its labels with
// the blank behind them; 0 if none matches.
func (n *subjectCache) match(kind metric.Kind, b []byte) (s *subject, size int) {
	order := n.order.subjects
	for at := n.next; at < len(order) && at <= n.next+maxSkipped; at++ {
		s = &n.subjects[order[at]]
		if size = n.labelsSize(s, kind, b); size > 0 {
			n.next, n.last = at+1, order[at]
			return s, size
		}
	}
	// The last subject again (a duplicate), or the one behind it, which this family did not have before.
	for i := max(n.last, 0); i <= n.last+1 && int(i) < len(n.subjects); i++ {
		s = &n.subjects[i]
		if size = n.labelsSize(s, kind, b); size > 0 {
			if i != n.last {
				n.setExpected(i)
			}
			return s, size
		}
	}
	return nil, 0
}

// setExpected makes subject i the one expected at this line, and moves behind it.
func (n *subjectCache) setExpected(i int32) {
	o := n.order
	from := max(n.next-1, 0)
	at := slices.Index(o.subjects[from:min(n.next+maxSkipped+1, len(o.subjects))], i)
	if at >= 0 { // it is in order, its labels are only written in another form
		n.next, n.last = from+at+1, i
		return
	}
	o.unshare()
	if at = slices.Index(o.subjects, i); at >= 0 {
		o.subjects = slices.Delete(o.subjects, at, at+1)
		if at < n.next {
			n.next--
		}
	}
	o.subjects = slices.Insert(o.subjects, n.next, i)
	n.next, n.last = n.next+1, i
}

// labelsSize returns the length of s's labels, with the blank behind them, if b begins with
// them and s is of that kind; else 0. The labels are those of an earlier family of the
// payload, or else what a kubelet writes.
func (n *subjectCache) labelsSize(s *subject, kind metric.Kind, b []byte) int {
	// Fast path: an earlier family of the payload has the same labels.
	if size := int(s.labelsSize); size > 0 && len(b) >= size && string(b[:size]) == string(n.body[s.labelsAt:int(s.labelsAt)+size]) && n.entity(s).Kind == kind {
		return size
	}
	size := n.writtenSize(s, kind, b)
	if size > 0 {
		n.rememberLabels(s, b, size)
	}
	return size
}

// rememberLabels notes that b, the rest of the payload, begins with size bytes of labels of s.
func (n *subjectCache) rememberLabels(s *subject, b []byte, size int) {
	if at := len(n.body) - len(b); at <= math.MaxInt32 && size <= math.MaxUint16 {
		s.labelsAt, s.labelsSize = int32(at), uint16(size)
	}
}

// writtenSize is labelsSize for the first line of s in a payload: it compares b with what a
// kubelet writes.
func (n *subjectCache) writtenSize(s *subject, kind metric.Kind, b []byte) int {
	const container, namespace, pod, end = `{container="`, `",namespace="`, `",pod="`, `"} `
	const first = `{namespace="` // of a pod
	e := n.entity(s)
	if e.Kind != kind || !s.plain {
		return 0
	}
	var at int // index of the namespace
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

// find returns the subject of e, and adds it if it is new. It returns false if e is new and
// there are limit subjects already.
func (n *subjectCache) find(e metric.Entity, limit int) (*subject, bool) {
	if n.index == nil {
		n.index = make(map[metric.Entity]int32, len(n.subjects))
		n.interned = map[string]string{}
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
		n.subjects = append(n.subjects, subject{entity: int32(len(n.layout.Entities) + len(n.added)), plain: isPlain(&e)})
		n.added = append(n.added, e)
		n.index[e] = i
	}
	n.setExpected(i)
	return &n.subjects[i], true
}

// isPlain reports whether the names of e need no escapes in labels.
func isPlain(e *metric.Entity) bool {
	const escaped = "\"\\\n"
	return !strings.ContainsAny(string(e.Namespace), escaped) && !strings.ContainsAny(string(e.Pod), escaped) &&
		!strings.ContainsAny(e.Name, escaped)
}

// intern makes e share strings with the entities before it.
func (n *subjectCache) intern(e *metric.Entity) {
	e.Namespace = metric.Namespace(n.internString(string(e.Namespace)))
	e.Pod = metric.PodName(n.internString(string(e.Pod)))
	e.Name = n.internString(e.Name)
}

func (n *subjectCache) internString(s string) string {
	if w, known := n.interned[s]; known {
		return w
	}
	n.interned[s] = s
	return s
}

// rebuild makes a new layout of samples and keeps only the subjects in it. base is the index of the first
// sample in its batch.
func (n *subjectCache) rebuild(samples []metric.Sample, base int) {
	layout := metric.LayoutOf(samples)
	subjects := make([]subject, 0, len(samples))
	for _, s := range n.subjects {
		if s.sample > 0 {
			s.entity = s.sample - 1 - int32(base)
			subjects = append(subjects, s)
		}
	}
	slices.SortFunc(subjects, func(a, b subject) int { return int(a.entity - b.entity) })
	indexOf := make(map[metric.Entity]int32, len(subjects))
	for i := range subjects {
		indexOf[layout.Entities[subjects[i].entity]] = int32(i)
	}
	var orders [len(families)]familyOrder
	for f, before := range n.orders {
		subjects := make([]int32, 0, len(before.subjects))
		for _, i := range before.subjects {
			if at, present := indexOf[*n.entity(&n.subjects[i])]; present {
				subjects = append(subjects, at)
			}
		}
		orders[f].subjects = subjects
		for g := range f {
			if other := &orders[g]; len(subjects) > 0 && slices.Equal(other.subjects, subjects) {
				other.shared, orders[f] = true, familyOrder{other.subjects, true}
				break
			}
		}
	}
	n.orders = orders
	n.layout, n.subjects, n.known = layout, subjects, len(subjects)
	n.layoutIndex, n.escaped = nil, slices.ContainsFunc(subjects, func(s subject) bool { return !s.plain })
	if n.known < len(samples) {
		n.layoutIndex = make([]int32, n.known)
		for i := range subjects {
			n.layoutIndex[i] = subjects[i].entity
		}
	}
}

// end drops the new subjects that rebuild did not keep, and returns the memory to the pool.
func (n *subjectCache) end() {
	if len(n.subjects) > n.known {
		for f := range n.orders {
			// A shared order has no new subjects.
			n.orders[f].subjects = slices.DeleteFunc(n.orders[f].subjects, func(i int32) bool { return int(i) >= n.known })
		}
	}
	*n.memory = n.subjects
	n.pool.Put(n.memory)
	n.body, n.subjects, n.memory, n.added, n.index, n.interned = nil, nil, nil, nil, nil, nil
}
