package memory

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unique"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// entityTable is the data of a source that seldom changes from round to round: the entities of
// one source of one node, and all their data except numbers. It is immutable, and rounds share
// it.
type entityTable struct {
	node metric.NodeName
	// generation is unique in the Sink. Tables that differ only in layouts share it.
	generation uint64
	// entries are sorted as metric.Entity.Compare sorts, one for each entity.
	entries []entityEntry
	layouts []recordLayout
	// kinds shows where each kind begins: kind k is entries[kinds[k]:kinds[k+1]].
	kinds [metric.NumKinds + 1]int
	// namespaces are the ranges of pods and containers of each namespace, in order.
	namespaces []namespaceRange
}

// entityEntry is one entity of an entityTable.
type entityEntry struct {
	entityName
	// The fields of the entity's metric.Instance. The pod's UID is in its podIdentity.
	start   int64
	details *instanceDetails // nil for most
	change  *lineChange      // nil unless the entity has had another line here
	line    uint32
	layout  uint32 // index in layouts
	origin  metric.StartOrigin
}

// lineChange is when a source began to report another line of an entity: the last reading of the
// line before and the first of the line after it, by the node's clock.
type lineChange struct{ last, first int64 }

// instanceDetails is the fields of an instance that few sources report.
type instanceDetails struct {
	uid     metric.PodUID
	id      metric.ContainerID
	path    metric.CgroupPath
	inode   uint64
	sandbox metric.ContainerID
}

// instance returns the entry's instance. The number of processes changes with each round and
// is in the round's record.
func (e *entityEntry) instance() metric.Instance {
	i := metric.Instance{Start: e.start, Origin: e.origin, Line: e.line, Processes: -1}
	switch {
	case e.details != nil:
		i.UID, i.ID, i.Path, i.Inode, i.Sandbox = e.details.uid, e.details.id, e.details.path, e.details.inode, e.details.sandbox
	case e.pod != nil:
		i.UID = e.pod.uid
	}
	return i
}

// isInstance reports whether i is the entry's instance. It ignores the number of processes.
func (e *entityEntry) isInstance(i *metric.Instance) bool {
	if e.start != i.Start || e.line != i.Line || e.origin != i.Origin {
		return false
	}
	if m := e.details; m != nil {
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

// setInstance sets the entry's instance to i.
func (e *entityEntry) setInstance(i *metric.Instance) {
	e.start, e.origin, e.line = i.Start, i.Origin, i.Line
	if !e.isInstance(i) {
		e.details = &instanceDetails{i.UID, i.ID, i.Path, i.Inode, i.Sandbox}
	}
}

// namespaceRange is the entries of one kind in one namespace.
type namespaceRange struct {
	namespace metric.Namespace
	from, to  uint32
	kind      metric.Kind
}

// matchesEntities reports whether the entries are those of sorted samples. t may be nil.
func (t *entityTable) matchesEntities(sorted []*metric.Sample) bool {
	if t == nil || len(t.entries) != len(sorted) {
		return false
	}
	for i, s := range sorted {
		if e := &t.entries[i]; e.compareEntity(&s.Entity) != 0 || !e.isInstance(&s.Instance) {
			return false
		}
	}
	return true
}

// newEntityTable returns the table of sorted samples of one node. before is the previous round of
// the source, or empty; its table shares names with the new one.
func newEntityTable(node metric.NodeName, generation uint64, samples []*metric.Sample, before round) *entityTable {
	old := before.table
	d := &entityTable{node: node, generation: generation, entries: make([]entityEntry, len(samples))}
	pods := podIdentities(samples, old)
	for i, s := range samples {
		e := &d.entries[i]
		if at, ok := old.find(&s.Entity); ok {
			earlier := &old.entries[at]
			e.local, e.change = earlier.local, earlier.change
			if i := earlier.instance(); i.Line != s.Instance.Line && run.Compare(&i, &s.Instance) != run.Same {
				e.change = &lineChange{before.readAt(at), cmp.Or(s.Times[metric.CPU], s.Times[metric.Memory])}
			}
		} else {
			e.local = unique.Make(localName{s.Entity.Kind, s.Entity.Name, s.Entity.Part})
		}
		if hasPodIdentity(&s.Entity) {
			e.pod = pods[s.Entity.PodRef()]
		}
		e.setInstance(&s.Instance)
	}
	d.assignLayouts(samples, old)
	d.indexKinds()
	return d
}

// podIdentities returns the identities of the pods of samples. It reuses those of old.
func podIdentities(samples []*metric.Sample, old *entityTable) map[metric.PodRef]*podIdentity {
	keys := map[metric.PodRef]*podIdentity{}
	for _, s := range samples {
		if !hasPodIdentity(&s.Entity) {
			continue
		}
		ref := s.Entity.PodRef()
		if keys[ref] == nil {
			keys[ref] = old.podIdentity(ref)
		}
		k, uid := keys[ref], s.Instance.UID
		if k == nil || uid != "" && (k.uid == "" || k.uid != uid && s.Entity.Kind == metric.Pod && s.Entity.Part == "") {
			keys[ref] = &podIdentity{ref, uid}
		}
	}
	return keys
}

// podIdentity returns the identity of a pod, or nil. t may be nil.
func (t *entityTable) podIdentity(ref metric.PodRef) *podIdentity {
	if t == nil {
		return nil
	}
	for _, kind := range [...]metric.Kind{metric.Pod, metric.Container} {
		if from, to := t.rangeOfPod(kind, ref); from < to {
			return t.entries[from].pod
		}
	}
	return nil
}

// withLayouts returns t, or a table of the same entries with the layouts of samples if they
// changed.
func (t *entityTable) withLayouts(samples []*metric.Sample) *entityTable {
	for i, s := range samples {
		if !t.layouts[t.entries[i].layout].matches(s) {
			next := *t
			next.entries, next.layouts = slices.Clone(t.entries), nil
			next.assignLayouts(samples, t)
			return &next
		}
	}
	return t
}

// assignLayouts sets each entry's layout. old has the previous layouts; it may be nil.
func (t *entityTable) assignLayouts(samples []*metric.Sample, old *entityTable) {
	shapes := map[recordLayout]uint32{}
	for i, s := range samples {
		var before *recordLayout
		if at, ok := old.find(&s.Entity); ok {
			before = &old.layouts[old.entries[at].layout]
		}
		sh := layoutOf(s, before)
		n, ok := shapes[sh]
		if !ok {
			n = uint32(len(t.layouts))
			shapes[sh] = n
			t.layouts = append(t.layouts, sh)
		}
		t.entries[i].layout = n
	}
	t.layouts = slices.Clip(t.layouts)
}

// indexKinds records where kinds and namespaces begin.
func (t *entityTable) indexKinds() {
	kind := 0
	for i := range t.entries {
		e := &t.entries[i]
		entryKind := e.local.Value().kind
		for ; kind <= int(entryKind); kind++ {
			t.kinds[kind] = i
		}
		if !isPodKind(entryKind) {
			continue
		}
		if n := len(t.namespaces) - 1; n >= 0 && t.namespaces[n].kind == entryKind && t.namespaces[n].namespace == e.podRef().Namespace {
			t.namespaces[n].to = uint32(i + 1)
		} else {
			t.namespaces = append(t.namespaces, namespaceRange{e.podRef().Namespace, uint32(i), uint32(i + 1), entryKind})
		}
	}
	for ; kind <= metric.NumKinds; kind++ {
		t.kinds[kind] = len(t.entries)
	}
	t.namespaces = slices.Clip(t.namespaces)
}

// find returns the index of e, whatever its node. t may be nil.
func (t *entityTable) find(e *metric.Entity) (int, bool) {
	if t == nil {
		return 0, false
	}
	return sort.Find(len(t.entries), func(i int) int { return -t.entries[i].compareEntity(e) })
}

// isPod reports whether entry i is a pod and not a part of one.
func (t *entityTable) isPod(i int) bool {
	return i >= t.kinds[metric.Pod] && i < t.kinds[metric.Pod+1] && t.entries[i].local.Value().part == ""
}

// containersAfter returns the entries of a pod's containers. at is where the containers of the
// previous pod end.
func (t *entityTable) containersAfter(at int, pod *podIdentity) (from, to int) {
	end := t.kinds[metric.Container+1]
	for at < end && comparePodIdentities(t.entries[at].pod, pod) < 0 {
		at++
	}
	from = at
	for at < end && t.entries[at].pod == pod {
		at++
	}
	return from, at
}

// rangeIn returns the entries of a kind and, for pods and containers, of a namespace. Even an empty
// range is among the entries of the kind.
func (t *entityTable) rangeIn(kind metric.Kind, namespace metric.Namespace) (from, to int) {
	if kind != metric.Pod && kind != metric.Container {
		return t.kinds[kind], t.kinds[kind+1]
	}
	i, ok := sort.Find(len(t.namespaces), func(i int) int {
		r := &t.namespaces[i]
		if r.kind != kind {
			return int(kind) - int(r.kind)
		}
		return strings.Compare(string(namespace), string(r.namespace))
	})
	if !ok {
		return t.kinds[kind+1], t.kinds[kind+1]
	}
	return int(t.namespaces[i].from), int(t.namespaces[i].to)
}

// rangeOfPod returns the entries of one pod: of kind Pod or of kind Container.
func (t *entityTable) rangeOfPod(kind metric.Kind, ref metric.PodRef) (from, to int) {
	return equalRange(len(t.entries), func(i int) int { return t.entries[i].comparePod(kind, ref) })
}

// pods returns the pods that have an entry, or a container with one, sorted. t may be nil.
func (t *entityTable) pods() []*podIdentity {
	if t == nil {
		return nil
	}
	var keys []*podIdentity
	for i := t.kinds[metric.Pod]; i < len(t.entries); i++ {
		key := t.entries[i].pod
		if n := len(keys); n == 0 || keys[n-1] != key {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, comparePodIdentities)
	return slices.Compact(keys)
}

// podIdentity is the names and UID of a pod. It is immutable. Tables, the history and
// nodesByPod share it, so that a pod's names are stored once.
type podIdentity struct {
	metric.PodRef
	uid metric.PodUID
}

// localName is the part of an entity's name that many entities share: "container app".
type localName struct {
	kind metric.Kind
	name string
	part string
}

// hasPodIdentity reports whether the name of e has a podIdentity.
func hasPodIdentity(e *metric.Entity) bool {
	return isPodKind(e.Kind) || e.Pod != "" || e.Namespace != ""
}

// entityName is a metric.Entity without its node, in 16 bytes instead of 112.
type entityName struct {
	pod   *podIdentity // nil for an entity of no pod
	local unique.Handle[localName]
}

// entity returns the entity of this name on a node.
func (n entityName) entity(node metric.NodeName) metric.Entity {
	w := n.local.Value()
	e := metric.Entity{Kind: w.kind, Node: node, Name: w.name, Part: w.part}
	if n.pod != nil {
		e.Namespace, e.Pod = n.pod.Namespace, n.pod.Name
	}
	return e
}

// podRef returns the pod that n is or belongs to, or the zero PodRef.
func (n entityName) podRef() metric.PodRef {
	if n.pod == nil {
		return metric.PodRef{}
	}
	return n.pod.PodRef
}

// compare orders the names of one node's entities like metric.Entity.Compare.
func (n entityName) compare(o entityName) int {
	w, v := n.local.Value(), o.local.Value()
	if w.kind != v.kind {
		return int(w.kind) - int(v.kind)
	}
	if n.pod != o.pod {
		if c := comparePods(n.podRef(), o.podRef()); c != 0 {
			return c
		}
	}
	if n.local == o.local {
		return 0
	}
	return cmp.Or(strings.Compare(w.name, v.name), strings.Compare(w.part, v.part))
}

// comparePod compares n with the names of a kind in a pod.
func (n entityName) comparePod(kind metric.Kind, ref metric.PodRef) int {
	if w := n.local.Value(); w.kind != kind {
		return int(w.kind) - int(kind)
	}
	return comparePods(n.podRef(), ref)
}

// compareEntity compares n with the name of e, whatever its node.
func (n entityName) compareEntity(e *metric.Entity) int {
	if c := n.comparePod(e.Kind, e.PodRef()); c != 0 {
		return c
	}
	w := n.local.Value()
	return cmp.Or(strings.Compare(w.name, e.Name), strings.Compare(w.part, e.Part))
}

// equalRange returns the range of the sorted elements below n for which compare returns 0.
func equalRange(n int, compare func(i int) int) (from, to int) {
	from = sort.Search(n, func(i int) bool { return compare(i) >= 0 })
	for to = from; to < n && compare(to) == 0; {
		to++
	}
	return from, to
}

// compareEntities orders the entities of one node as metric.Entity.Compare does. A source may
// leave Node empty in its samples.
func compareEntities(a, b *metric.Entity) int {
	if a.Kind != b.Kind {
		return int(a.Kind) - int(b.Kind)
	}
	if c := comparePods(a.PodRef(), b.PodRef()); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Part, b.Part))
}

func comparePodIdentities(a, b *podIdentity) int {
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
