package memory

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unique"

	"github.com/weir-metrics/weir/metric"
)

// directory is what seldom changes from one round of a source to the next:
// which entities there are, and what is known of each beside numbers. It is
// immutable, and shared by all rounds for which it holds.
type directory struct {
	node metric.NodeName
	// entries are sorted as metric.Entity.Compare sorts, one for each entity.
	entries []entry
	shapes  []shape
	// kinds says where each kind begins: kind k is entries[kinds[k]:kinds[k+1]].
	kinds [metric.NumKinds + 1]int
	// runs are the stretches of pods and containers in one namespace, in order.
	runs  []run
	words int // of a round
}

// entry is one entity of a directory.
type entry struct {
	name
	// What an instance is told by, but for the pod's UID, which its podKey has.
	start  int64
	more   *more // nil for most
	line   uint32
	shape  uint32 // index of its shape
	at     uint32 // where in a round's words its record is
	origin metric.StartOrigin
}

// more is what few sources know of an instance.
type more struct {
	uid     metric.PodUID
	id      metric.ContainerID
	path    metric.CgroupPath
	inode   uint64
	sandbox metric.ContainerID
}

// instance returns the entry's instance, without its number of processes, which
// moves.
func (e *entry) instance() metric.Instance {
	i := metric.Instance{Start: e.start, Origin: e.origin, Line: e.line, Processes: -1}
	switch {
	case e.more != nil:
		i.UID, i.ID, i.Path, i.Inode, i.Sandbox = e.more.uid, e.more.id, e.more.path, e.more.inode, e.more.sandbox
	case e.pod != nil:
		i.UID = e.pod.uid
	}
	return i
}

// is reports whether i is the entry's instance, processes aside.
func (e *entry) is(i *metric.Instance) bool {
	if e.start != i.Start || e.line != i.Line || e.origin != i.Origin {
		return false
	}
	if m := e.more; m != nil {
		return m.id == i.ID && m.uid == i.UID && m.path == i.Path && m.inode == i.Inode && m.sandbox == i.Sandbox
	}
	if i.ID != "" || i.Path != "" || i.Inode != 0 || i.Sandbox != "" {
		return false
	}
	if e.pod == nil {
		return i.UID == ""
	}
	return i.UID == e.pod.uid
}

// put makes the entry's instance i.
func (e *entry) put(i *metric.Instance) {
	e.start, e.origin, e.line = i.Start, i.Origin, i.Line
	if !e.is(i) {
		e.more = &more{i.UID, i.ID, i.Path, i.Inode, i.Sandbox}
	}
}

// run is a stretch of entries of one kind in one namespace.
type run struct {
	namespace metric.Namespace
	from, to  uint32
	kind      metric.Kind
}

// describes reports whether entry i has the name and the instance of s. named
// says that the name is known to be.
func (d *directory) describes(i int, s *metric.Sample, named bool) bool {
	e := &d.entries[i]
	return (named || e.of(&s.Entity)) && e.is(&s.Instance)
}

// fits reports whether the numbers of s are of entry i's shape.
func (d *directory) fits(i int, s *metric.Sample) bool { return d.shapes[d.entries[i].shape].fits(s) }

// newDirectory describes samples, which are sorted and of one node. What was in
// old is shared with it; old may be nil.
func newDirectory(node metric.NodeName, samples []*metric.Sample, old *directory) *directory {
	d := &directory{node: node, entries: make([]entry, len(samples))}
	pods := keysOf(samples, old)
	for i, s := range samples {
		e := &d.entries[i]
		if at, ok := old.find(&s.Entity); ok {
			e.what = old.entries[at].what
		} else {
			e.what = whatOf(&s.Entity)
		}
		if inPod(&s.Entity) {
			e.pod = pods[s.Entity.PodRef()]
		}
		e.put(&s.Instance)
	}
	d.giveShapes(samples, old)
	d.index()
	return d
}

// keysOf returns the pods of samples, those of old where they are the same.
func keysOf(samples []*metric.Sample, old *directory) map[metric.PodRef]*podKey {
	keys := map[metric.PodRef]*podKey{}
	for _, s := range samples {
		if !inPod(&s.Entity) {
			continue
		}
		ref := s.Entity.PodRef()
		if keys[ref] == nil {
			keys[ref] = old.key(ref)
		}
		k, uid := keys[ref], s.Instance.UID
		if k == nil || uid != "" && (k.uid == "" || k.uid != uid && s.Entity.Kind == metric.Pod && s.Entity.Part == "") {
			keys[ref] = &podKey{ref, uid}
		}
	}
	return keys
}

// key returns the key of a pod, or nil. d may be nil.
func (d *directory) key(ref metric.PodRef) *podKey {
	if d == nil {
		return nil
	}
	for _, kind := range [...]metric.Kind{metric.Pod, metric.Container} {
		if from, to := d.ofPod(kind, ref); from < to {
			return d.entries[from].pod
		}
	}
	return nil
}

// refit returns d, or one of its entries with the shapes that samples have now.
func (d *directory) refit(samples []*metric.Sample) *directory {
	for i, s := range samples {
		if !d.fits(i, s) {
			return d.reshaped(samples)
		}
	}
	return d
}

// reshaped returns d with the shapes that samples have now.
func (d *directory) reshaped(samples []*metric.Sample) *directory {
	next := *d
	next.entries, next.shapes = slices.Clone(d.entries), nil
	next.giveShapes(samples, d)
	return &next
}

// giveShapes finds each entry's shape and the place of its record. old, which
// may be nil or have the same entries as d, says what shapes were.
func (d *directory) giveShapes(samples []*metric.Sample, old *directory) {
	shapes := map[shape]uint32{}
	d.words = 0
	for i, s := range samples {
		var before *shape
		if at, ok := old.find(&s.Entity); ok {
			before = &old.shapes[old.entries[at].shape]
		}
		sh := shapeOf(s, before)
		n, ok := shapes[sh]
		if !ok {
			n = uint32(len(d.shapes))
			shapes[sh] = n
			d.shapes = append(d.shapes, sh)
		}
		d.entries[i].shape, d.entries[i].at = n, uint32(d.words)
		d.words += sh.size()
	}
	d.shapes = slices.Clip(d.shapes)
}

// index notes where kinds and namespaces begin.
func (d *directory) index() {
	kind := 0
	for i := range d.entries {
		e := &d.entries[i]
		of := e.what.Value().kind
		for ; kind <= int(of); kind++ {
			d.kinds[kind] = i
		}
		if !ofPod(of) {
			continue
		}
		if n := len(d.runs) - 1; n >= 0 && d.runs[n].kind == of && d.runs[n].namespace == e.ref().Namespace {
			d.runs[n].to = uint32(i + 1)
		} else {
			d.runs = append(d.runs, run{e.ref().Namespace, uint32(i), uint32(i + 1), of})
		}
	}
	for ; kind <= metric.NumKinds; kind++ {
		d.kinds[kind] = len(d.entries)
	}
	d.runs = slices.Clip(d.runs)
}

// find returns where e is, its node left aside. d may be nil.
func (d *directory) find(e *metric.Entity) (int, bool) {
	if d == nil {
		return 0, false
	}
	return sort.Find(len(d.entries), func(i int) int { return -d.entries[i].compareTo(e) })
}

// isPod reports whether entry i is a pod itself.
func (d *directory) isPod(i int) bool {
	return i >= d.kinds[metric.Pod] && i < d.kinds[metric.Pod+1] && d.entries[i].what.Value().part == ""
}

// after returns the entries of a pod's containers, given where those of pods
// before it end.
func (d *directory) after(at int, pod *podKey) (from, to int) {
	end := d.kinds[metric.Container+1]
	for at < end && comparePodKeys(d.entries[at].pod, pod) < 0 {
		at++
	}
	from = at
	for at < end && d.entries[at].pod == pod {
		at++
	}
	return from, at
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
	return int(d.runs[i].from), int(d.runs[i].to)
}

// ofPod returns the entries of one pod: of kind Pod or of kind Container.
func (d *directory) ofPod(kind metric.Kind, ref metric.PodRef) (from, to int) {
	from, to = d.within(kind, ref.Namespace)
	entries := d.entries[from:to]
	to = from + sort.Search(len(entries), func(i int) bool { return entries[i].pod.Name > ref.Name })
	from += sort.Search(len(entries), func(i int) bool { return entries[i].pod.Name >= ref.Name })
	return from, to
}

// pods returns the pods that have an entry, themselves or by a container,
// sorted. d may be nil.
func (d *directory) pods() []*podKey {
	if d == nil {
		return nil
	}
	var keys []*podKey
	for i := d.kinds[metric.Pod]; i < len(d.entries); i++ {
		key := d.entries[i].pod
		if n := len(keys); n == 0 || keys[n-1] != key {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, comparePodKeys)
	return slices.Compact(keys)
}

// podKey is a pod as directories, the history and homes know it. It is
// immutable and shared by them, so that a pod's names are kept once.
type podKey struct {
	metric.PodRef
	uid metric.PodUID
}

// what is the part of an entity's name that many share: "container app".
type what struct {
	kind metric.Kind
	name string
	part string
}

// inPod reports whether the name of e has a podKey.
func inPod(e *metric.Entity) bool { return ofPod(e.Kind) || e.Pod != "" || e.Namespace != "" }

// name is a metric.Entity without its node, in 16 bytes instead of 112.
type name struct {
	pod  *podKey // nil for what is in no pod
	what unique.Handle[what]
}

func whatOf(e *metric.Entity) unique.Handle[what] {
	return unique.Make(what{e.Kind, e.Name, e.Part})
}

// entity returns the entity of this name on a node.
func (n name) entity(node metric.NodeName) metric.Entity {
	w := n.what.Value()
	e := metric.Entity{Kind: w.kind, Node: node, Name: w.name, Part: w.part}
	if n.pod != nil {
		e.Namespace, e.Pod = n.pod.Namespace, n.pod.Name
	}
	return e
}

// ref returns the pod that n is or belongs to, or the zero PodRef.
func (n name) ref() metric.PodRef {
	if n.pod == nil {
		return metric.PodRef{}
	}
	return n.pod.PodRef
}

// of reports whether n is the name of e, whose node may be left empty.
func (n name) of(e *metric.Entity) bool {
	w := n.what.Value()
	if w.kind != e.Kind || w.name != e.Name || w.part != e.Part {
		return false
	}
	if n.pod == nil {
		return !inPod(e)
	}
	return n.pod.Name == e.Pod && n.pod.Namespace == e.Namespace
}

// compare orders the names of one node's entities as metric.Entity.Compare
// orders the entities.
func (n name) compare(o name) int {
	w, v := n.what.Value(), o.what.Value()
	if w.kind != v.kind {
		return int(w.kind) - int(v.kind)
	}
	if n.pod != o.pod {
		if c := comparePods(n.ref(), o.ref()); c != 0 {
			return c
		}
	}
	if n.what == o.what {
		return 0
	}
	return cmp.Or(strings.Compare(w.name, v.name), strings.Compare(w.part, v.part))
}

// compareTo compares n with the name of e.
func (n name) compareTo(e *metric.Entity) int {
	w := n.what.Value()
	if w.kind != e.Kind {
		return int(w.kind) - int(e.Kind)
	}
	if c := comparePods(n.ref(), e.PodRef()); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(w.name, e.Name), strings.Compare(w.part, e.Part))
}

// sameName compares two entities of one node. Whoever fills a batch may leave
// Node empty in its samples.
func sameName(a, b *metric.Entity) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Pod == b.Pod && a.Name == b.Name && a.Part == b.Part
}

// compareNames orders the entities of one node as metric.Entity.Compare does.
func compareNames(a, b *metric.Entity) int {
	if a.Kind != b.Kind {
		return int(a.Kind) - int(b.Kind)
	}
	if c := comparePods(a.PodRef(), b.PodRef()); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Part, b.Part))
}

func comparePodKeys(a, b *podKey) int {
	if a == b {
		return 0
	}
	return comparePods(a.PodRef, b.PodRef)
}

func comparePods(a, b metric.PodRef) int {
	if c := strings.Compare(string(a.Namespace), string(b.Namespace)); c != 0 {
		return c
	}
	return strings.Compare(string(a.Name), string(b.Name))
}
