package memory

import (
	"slices"
	"sort"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// words is how many 64-bit words hold one bit for each metric.
const words = (int(metric.NumMetrics) + 63) / 64

// directory is what seldom changes from one round of a source to the next:
// which entities there are, and what is known of each beside numbers. It is
// immutable, and shared by all rounds for which it holds.
type directory struct {
	// entries are sorted as metric.Entity.Compare sorts, one for each entity.
	entries []entry
	shapes  []shape
	// kinds says where each kind begins: kind k is entries[kinds[k]:kinds[k+1]].
	kinds [metric.NumKinds + 1]int
	// runs are the stretches of pods and containers in one namespace, in order.
	runs []run
}

// entry is one entity of a directory.
type entry struct {
	entity *metric.Entity // shared with other directories and the history
	// instance without its number of processes, which moves.
	instance metric.Instance
	shape    uint32 // index of its shape
}

// run is a stretch of entries of one kind in one namespace.
type run struct {
	kind      metric.Kind
	namespace metric.Namespace
	from, to  int
}

// shape is what a sample is like but for its numbers. Few samples of a node
// differ in it.
type shape struct {
	present        [words]uint64 // the metrics served
	reasons        [metric.NumGroups]metric.Reason
	received, held uint16
	times, windows uint8 // the groups with a time, with a window
}

// serves reports whether group g has numbers that may be served.
func (s *shape) serves(g metric.Group) bool { return served(s.reasons[g]) }

// empty reports whether there is nothing to serve.
func (s *shape) empty() bool { return s.present == [words]uint64{} }

// served reports whether a group with reason r is served.
func served(r metric.Reason) bool { return r == metric.Measured || r == metric.Ambiguous }

// shapeOf returns the shape of s.
func shapeOf(s *metric.Sample) shape {
	sh := shape{reasons: s.Reasons, received: s.Received, held: s.Held}
	for g := range metric.NumGroups {
		if s.Times[g] != 0 {
			sh.times |= 1 << g
		}
		if s.Rates[g] != (metric.Window{}) {
			sh.windows |= 1 << g
		}
	}
	for id := range s.Values.All() {
		if served(s.Reasons[metric.Catalogue[id].Group]) {
			sh.present[id/64] |= 1 << (id % 64)
		}
	}
	return sh
}

// holds reports whether entry i describes s.
func (d *directory) holds(i int, s *metric.Sample) bool {
	e := &d.entries[i]
	if !sameName(e.entity, &s.Entity) || !sameInstance(&e.instance, &s.Instance) {
		return false
	}
	return d.shapes[e.shape] == shapeOf(s)
}

// sameName compares two entities of one node. Whoever fills a batch may leave
// Node empty in its samples.
func sameName(a, b *metric.Entity) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Pod == b.Pod && a.Name == b.Name && a.Part == b.Part
}

// sameInstance compares two instances but for their number of processes.
func sameInstance(a, b *metric.Instance) bool {
	return a.Start == b.Start && a.Origin == b.Origin && a.Inode == b.Inode && a.Line == b.Line &&
		a.ID == b.ID && a.UID == b.UID && a.Path == b.Path
}

// compareNames orders the entities of one node as metric.Entity.Compare does.
func compareNames(a, b *metric.Entity) int {
	if a.Kind != b.Kind {
		return int(a.Kind) - int(b.Kind)
	}
	if c := strings.Compare(string(a.Namespace), string(b.Namespace)); c != 0 {
		return c
	}
	if c := strings.Compare(string(a.Pod), string(b.Pod)); c != 0 {
		return c
	}
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return strings.Compare(a.Part, b.Part)
}

// newDirectory describes samples, which are sorted and of one node. Entities
// that were in old are shared with it.
func newDirectory(node metric.NodeName, samples []*metric.Sample, old *directory) *directory {
	d := &directory{entries: make([]entry, len(samples))}
	shapes := map[shape]uint32{}
	for i, s := range samples {
		sh := shapeOf(s)
		n, ok := shapes[sh]
		if !ok {
			n = uint32(len(d.shapes))
			shapes[sh] = n
			d.shapes = append(d.shapes, sh)
		}
		e := &d.entries[i]
		e.entity, e.instance, e.shape = old.intern(node, &s.Entity), s.Instance, n
		e.instance.Processes = 0
	}
	d.shapes = slices.Clip(d.shapes)
	kind := 0
	for i := range d.entries {
		e := d.entries[i].entity
		for ; kind <= int(e.Kind); kind++ {
			d.kinds[kind] = i
		}
		if e.Kind != metric.Pod && e.Kind != metric.Container {
			continue
		}
		if n := len(d.runs) - 1; n >= 0 && d.runs[n].kind == e.Kind && d.runs[n].namespace == e.Namespace {
			d.runs[n].to = i + 1
		} else {
			d.runs = append(d.runs, run{e.Kind, e.Namespace, i, i + 1})
		}
	}
	for ; kind <= metric.NumKinds; kind++ {
		d.kinds[kind] = len(d.entries)
	}
	return d
}

// intern returns the stored copy of e, made to be of node.
func (d *directory) intern(node metric.NodeName, e *metric.Entity) *metric.Entity {
	if i, ok := d.find(e); ok {
		return d.entries[i].entity
	}
	kept := *e
	kept.Node = node
	return &kept
}

// find returns where e is, its node left aside. d may be nil.
func (d *directory) find(e *metric.Entity) (int, bool) {
	if d == nil {
		return 0, false
	}
	return sort.Find(len(d.entries), func(i int) int { return compareNames(e, d.entries[i].entity) })
}

// within returns the entries of a kind and, for pods and containers, of a
// namespace.
func (d *directory) within(kind metric.Kind, namespace metric.Namespace) (from, to int) {
	if kind != metric.Pod && kind != metric.Container {
		return d.kinds[kind], d.kinds[kind+1]
	}
	i, ok := sort.Find(len(d.runs), func(i int) int {
		r := &d.runs[i]
		if r.kind != kind {
			return int(kind) - int(r.kind)
		}
		return strings.Compare(string(namespace), string(r.namespace))
	})
	if !ok {
		return 0, 0
	}
	return d.runs[i].from, d.runs[i].to
}

// ofPod returns the entries of one pod: of kind Pod or of kind Container.
func (d *directory) ofPod(kind metric.Kind, ref metric.PodRef) (from, to int) {
	from, to = d.within(kind, ref.Namespace)
	entries := d.entries[from:to]
	to = from + sort.Search(len(entries), func(i int) bool { return entries[i].entity.Pod > ref.Name })
	from += sort.Search(len(entries), func(i int) bool { return entries[i].entity.Pod >= ref.Name })
	return from, to
}

// pods returns the pods that have an entry, themselves or by a container,
// sorted. d may be nil.
func (d *directory) pods() []metric.PodRef {
	if d == nil {
		return nil
	}
	var refs []metric.PodRef
	for i := d.kinds[metric.Pod]; i < len(d.entries); i++ {
		ref := d.entries[i].entity.PodRef()
		if n := len(refs); n == 0 || refs[n-1] != ref {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, comparePods)
	return slices.Compact(refs)
}

func comparePods(a, b metric.PodRef) int {
	if c := strings.Compare(string(a.Namespace), string(b.Namespace)); c != 0 {
		return c
	}
	return strings.Compare(string(a.Name), string(b.Name))
}
