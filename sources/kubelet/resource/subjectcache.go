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
// Unlike payload.NameCache it keeps nothing of the lines: between two reads a subject needs only the memory
// of its entity.
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

// begin prepares c for a payload of that node.
func (c *subjectCache) begin(node metric.NodeName, body []byte) {
	if len(c.entities) > 0 && c.entities[0].Node != node {
		*c = subjectCache{pool: c.pool}
	}
	c.body = body
	if c.memory, _ = c.pool.Get().(*[]subject); c.memory == nil {
		c.memory = new([]subject)
	}
	c.subjects = slices.Grow((*c.memory)[:0], c.known)[:c.known]
	clear(c.subjects)
}

// beginFamily prepares c for the lines of a family.
func (c *subjectCache) beginFamily(kind metric.Kind) { c.next, c.last = c.first[kind], -1 }

// match compares the labels at the start of b with those of the subjects that are expected next. b
// is the rest of the payload. It returns the length of the labels with the blank after them, or 0
// if none matches. last is then the index of the subject.
func (c *subjectCache) match(kind metric.Kind, b []byte) (size int) {
	if size = c.labelsSize(c.next, kind, b); size > 0 {
		c.last = c.next
		c.next++
		return size
	}
	if size = c.labelsSize(c.last, kind, b); size > 0 { // a duplicate
		return size
	}
	for i := c.next + 1; i <= c.next+maxMissing && i < len(c.subjects); i++ {
		if size = c.labelsSize(i, kind, b); size > 0 {
			c.next, c.last = i+1, i
			return size
		}
	}
	return 0
}

// labelsSize returns the length of the labels of subject i, with the blank after them, if b begins
// with them and the subject has that kind; else 0. The labels come from an earlier line of the
// payload, or are those that a kubelet writes.
func (c *subjectCache) labelsSize(i int, kind metric.Kind, b []byte) int {
	if i < 0 || i >= len(c.subjects) {
		return 0
	}
	s := &c.subjects[i]
	// Fast path: an earlier line of the payload has the same labels.
	if size := int(s.labelsSize); size > 0 && len(b) >= size && string(b[:size]) == string(c.body[s.labelsAt:int(s.labelsAt)+size]) && c.entities[i].Kind == kind {
		return size
	}
	if i >= c.known {
		return 0
	}
	size := writtenSize(&c.entities[i], kind, b)
	if size > 0 {
		c.rememberLabels(s, b, size)
	}
	return size
}

// rememberLabels notes that b, the rest of the payload, begins with size bytes of labels of s.
func (c *subjectCache) rememberLabels(s *subject, b []byte, size int) {
	if at := len(c.body) - len(b); at <= math.MaxInt32 && size <= math.MaxUint16 {
		s.labelsAt, s.labelsSize = int32(at), uint16(size)
	}
}

// writtenSize returns the length of the labels that a kubelet writes for e, with the blank after
// them, if b begins with them and e has that kind; else 0. The names in e must not need escapes.
func writtenSize(e *metric.Entity, kind metric.Kind, b []byte) int {
	if e.Kind != kind {
		return 0
	}
	switch kind {
	case metric.Container:
		const container, namespace = `{container="`, `",namespace="`
		at := len(container) + len(e.Name) + len(namespace)
		size := writtenEnd(e, at, b)
		if size == 0 || string(b[:len(container)]) != container ||
			string(b[len(container):len(container)+len(e.Name)]) != e.Name ||
			string(b[at-len(namespace):at]) != namespace {
			return 0
		}
		return size
	case metric.Pod:
		const namespace = `{namespace="`
		size := writtenEnd(e, len(namespace), b)
		if size == 0 || string(b[:len(namespace)]) != namespace {
			return 0
		}
		return size
	}
	if len(b) > 0 && b[0] == ' ' {
		return 1
	}
	return 0
}

// writtenEnd returns the index after the labels if b has the namespace of e at index at, and its
// pod label after it; else 0.
func writtenEnd(e *metric.Entity, at int, b []byte) int {
	const pod, end = `",pod="`, `"} `
	name := at + len(e.Namespace) + len(pod)
	size := name + len(e.Pod) + len(end)
	if len(b) < size ||
		string(b[name+len(e.Pod):size]) != end ||
		string(b[name:name+len(e.Pod)]) != string(e.Pod) ||
		string(b[name-len(pod):name]) != pod ||
		string(b[at:at+len(e.Namespace)]) != string(e.Namespace) {
		return 0
	}
	return size
}

// find sets last to the index of the subject of e, and adds the subject if it is new. It returns
// false if e is new and there are already limit subjects.
func (c *subjectCache) find(e metric.Entity, limit int) bool {
	if c.index == nil {
		c.index = make(map[metric.Entity]int32, len(c.subjects))
		c.interned = map[string]string{}
		for i, known := range c.entities {
			c.index[known] = int32(i)
			c.intern(&known)
		}
	}
	i, known := c.index[e]
	if !known {
		if len(c.subjects) >= limit && e.Kind != metric.Node {
			return false
		}
		c.intern(&e)
		i = int32(len(c.subjects))
		c.subjects, c.entities = append(c.subjects, subject{}), append(c.entities, e)
		c.index[e] = i
	}
	// After a new subject, the subject that was expected here comes next.
	if c.last = int(i); known || c.last == c.next {
		c.next = c.last + 1
	}
	return true
}

// intern makes e share its strings with the entities before it.
func (c *subjectCache) intern(e *metric.Entity) {
	e.Namespace = metric.Namespace(c.internString(string(e.Namespace)))
	e.Pod = metric.PodName(c.internString(string(e.Pod)))
	e.Name = c.internString(e.Name)
}

func (c *subjectCache) internString(s string) string {
	if w, known := c.interned[s]; known {
		return w
	}
	c.interned[s] = s
	return s
}

// keep makes the subjects that have a sample the known ones, in the order of their samples.
func (c *subjectCache) keep() {
	var sampled []int
	for i := range c.subjects {
		if c.subjects[i].sample > 0 {
			sampled = append(sampled, i)
		}
	}
	slices.SortFunc(sampled, func(a, b int) int { return cmp.Compare(c.subjects[a].sample, c.subjects[b].sample) })
	entities := make([]metric.Entity, len(sampled))
	for i, at := range sampled {
		entities[i] = c.entities[at]
	}
	if slices.ContainsFunc(entities, needsEscapes) {
		entities = nil // the lines of this node are read label by label
	}
	c.entities, c.known, c.first = entities, len(entities), [metric.NumKinds]int{}
	for i, e := range slices.Backward(entities) {
		c.first[e.Kind] = i
	}
}

// isChanged reports whether a line was read label by label, or a known subject has no sample.
func (c *subjectCache) isChanged() bool {
	if c.index != nil {
		return true
	}
	for i := range c.subjects {
		if c.subjects[i].sample == 0 {
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
func (c *subjectCache) end() {
	*c.memory = c.subjects
	c.pool.Put(c.memory)
	clear(c.entities[c.known:])
	c.entities = c.entities[:c.known]
	c.body, c.subjects, c.memory, c.index, c.interned = nil, nil, nil, nil, nil
}
