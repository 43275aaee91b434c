package resource

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/weir-metrics/weir/metric"
)

// subjectCache has the subjects of the last payload in their order. While a payload is parsed it
// also has the new ones. A line is recognised by a comparison with the labels that a kubelet writes
// for the expected subject. A kubelet sorts the lines of each family by their labels, so the
// expected subject is the one after that of the line before; the lines of some subjects may be
// missing. Lines in another form or order are read label by label.
//
// Unlike payload.NameCache it keeps no bytes of the lines: between two reads a subject needs only
// the memory of its entity. With NameCache a subject needs some 250 bytes, which is 25 MB for 1,000
// nodes of 100 containers at the default endpoint.
type subjectCache struct {
	body []byte // the current payload
	// entities has the entity of each subject, by index. The first known entities come from the last
	// payload, in the order of their samples.
	entities []metric.Entity
	known    int
	first    [metric.NumKinds]int // index of the first known subject of each kind
	subjects []subject            // subjects of the current payload, in memory from pool
	pool     *sync.Pool           // of *[]subject
	memory   *[]subject
	next     int // index of the subject expected next
	last     int // index of the subject of the line before; -1 at the beginning of a family
	// index finds subjects by entity; interned has one string for equal strings. Both are created when
	// a new entity occurs, and dropped at the end of the payload.
	index    map[metric.Entity]int32
	interned map[string]string
}

// maxMissing is the number of subjects that may be missing from a family before a line is read
// label by label.
const maxMissing = 256

// begin prepares n for a payload of that node.
func (n *subjectCache) begin(node metric.NodeName, body []byte) {
	if len(n.entities) > 0 && n.entities[0].Node != node {
		*n = subjectCache{pool: n.pool}
	}
	n.body = body
	if n.memory, _ = n.pool.Get().(*[]subject); n.memory == nil {
		n.memory = new([]subject)
	}
	n.subjects = slices.Grow((*n.memory)[:0], n.known)[:n.known]
	clear(n.subjects)
}

// beginFamily prepares n for the lines of a family.
func (n *subjectCache) beginFamily(kind metric.Kind) { n.next, n.last = n.first[kind], -1 }

// match compares the labels at the start of b with those of the subjects that are expected next. b
// is the rest of the payload. It returns the length of the labels with the blank after them, or 0
// if none matches. last is then the index of the subject.
func (n *subjectCache) match(kind metric.Kind, b []byte) (size int) {
	if size = n.labelsSize(n.next, kind, b); size > 0 {
		n.last = n.next
		n.next++
		return size
	}
	if size = n.labelsSize(n.last, kind, b); size > 0 { // a duplicate
		return size
	}
	for i := n.next + 1; i <= n.next+maxMissing && i < len(n.subjects); i++ {
		if size = n.labelsSize(i, kind, b); size > 0 {
			n.next, n.last = i+1, i
			return size
		}
	}
	return 0
}

// labelsSize returns the length of the labels of subject i, with the blank after them, if b begins
// with them and the subject has that kind; else 0. The labels come from an earlier line of the
// payload, or are those that a kubelet writes.
func (n *subjectCache) labelsSize(i int, kind metric.Kind, b []byte) int {
	if i < 0 || i >= len(n.subjects) {
		return 0
	}
	s := &n.subjects[i]
	// Fast path: an earlier line of the payload has the same labels.
	if size := int(s.labelsSize); size > 0 && len(b) >= size && string(b[:size]) == string(n.body[s.labelsAt:int(s.labelsAt)+size]) && n.entities[i].Kind == kind {
		return size
	}
	if i >= n.known {
		return 0
	}
	size := writtenSize(&n.entities[i], kind, b)
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

// writtenSize returns the length of the labels that a kubelet writes for e, with the blank after
// them, if b begins with them and e has that kind; else 0. The names in e must not need escapes.
func writtenSize(e *metric.Entity, kind metric.Kind, b []byte) int {
	const container, namespace, pod, end = `{container="`, `",namespace="`, `",pod="`, `"} `
	const first = `{namespace="` // of a pod
	if e.Kind != kind {
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

// find sets last to the index of the subject of e, and adds the subject if it is new. It returns
// false if e is new and there are already limit subjects.
func (n *subjectCache) find(e metric.Entity, limit int) bool {
	if n.index == nil {
		n.index = make(map[metric.Entity]int32, len(n.subjects))
		n.interned = map[string]string{}
		for i, known := range n.entities {
			n.index[known] = int32(i)
			n.intern(&known)
		}
	}
	i, known := n.index[e]
	if !known {
		if len(n.subjects) >= limit && e.Kind != metric.Node {
			return false
		}
		n.intern(&e)
		i = int32(len(n.subjects))
		n.subjects, n.entities = append(n.subjects, subject{}), append(n.entities, e)
		n.index[e] = i
	}
	// After a new subject, the subject that was expected here comes next.
	if n.last = int(i); known || n.last == n.next {
		n.next = n.last + 1
	}
	return true
}

// intern makes e share its strings with the entities before it.
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

// keep makes the subjects that have a sample the known ones, in the order of their samples.
func (n *subjectCache) keep() {
	var sampled []int
	for i := range n.subjects {
		if n.subjects[i].sample > 0 {
			sampled = append(sampled, i)
		}
	}
	slices.SortFunc(sampled, func(a, b int) int { return cmp.Compare(n.subjects[a].sample, n.subjects[b].sample) })
	entities := make([]metric.Entity, len(sampled))
	for i, at := range sampled {
		entities[i] = n.entities[at]
	}
	if slices.ContainsFunc(entities, needsEscapes) {
		entities = nil // the lines of this node are read label by label
	}
	n.entities, n.known, n.first = entities, len(entities), [metric.NumKinds]int{}
	for i, e := range slices.Backward(entities) {
		n.first[e.Kind] = i
	}
}

// isChanged reports whether a line was read label by label, or a known subject has no sample.
func (n *subjectCache) isChanged() bool {
	if n.index != nil {
		return true
	}
	for i := range n.subjects {
		if n.subjects[i].sample == 0 {
			return true
		}
	}
	return false
}

// needsEscapes reports whether a name of e needs escapes in labels.
func needsEscapes(e metric.Entity) bool {
	const escaped = "\"\\\n"
	return strings.ContainsAny(string(e.Namespace), escaped) || strings.ContainsAny(string(e.Pod), escaped) ||
		strings.ContainsAny(e.Name, escaped)
}

// end drops the subjects that are not known, and returns the memory to the pool.
func (n *subjectCache) end() {
	*n.memory = n.subjects
	n.pool.Put(n.memory)
	clear(n.entities[n.known:])
	n.entities = n.entities[:n.known]
	n.body, n.subjects, n.memory, n.index, n.interned = nil, nil, nil, nil, nil
}
