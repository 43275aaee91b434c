package resourcemetrics

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/resourceusage"
	"github.com/weir-metrics/weir/metric"
)

// objectMeta is the name and labels of a node or pod.
type objectMeta struct {
	namespace  metric.Namespace // of a pod; empty for a node
	name       string
	labels     *labelSet
	plainNames bool // both names need no escape in JSON
}

func newObjectMeta(namespace metric.Namespace, name string, labels *labelSet) objectMeta {
	return objectMeta{namespace, name, labels, isPlainJSON(string(namespace)) && isPlainJSON(name)}
}

// usageItem is the usage of one node or pod.
type usageItem struct {
	window metric.Window // the time over which it was measured
	// from and to are its range in itemStore.usages: one usage of a node, or one for each
	// container of a pod.
	from, to int32
	meta     int32 // index in usageList.metas
	swap     bool  // its node has swap space, so that its usages are served with swap, also with 0
}

// usageList is the result of a LIST, in a few slices instead of many small objects.
type usageList struct {
	metas []objectMeta // ownMetas, or those of a podOrder, which is immutable
	itemStore
	pod       resourceusage.PodUsage // memory for UsageReader.PodUsage
	ownMetas  []objectMeta
	labelSets labelSets
	texts     []usageText // of the object that is being written
	// Memory for reorder.
	spare itemStore
	order []int32
}

// itemStore is items and their usages.
type itemStore struct {
	items  []usageItem
	usages []resourceusage.Usage
}

// usageLists reuses the memory of a usageList for the next LIST.
var usageLists = sync.Pool{New: func() any { return &usageList{} }}

// release puts r back for the next LIST. r and its content must not be used afterwards.
func (l *usageList) release() {
	clear(l.ownMetas) // so that r keeps no facts in memory
	clear(l.labelSets.byKey)
	clear(l.texts[:cap(l.texts)])
	l.itemStore.clear()
	l.spare.clear()
	l.metas, l.ownMetas = nil, l.ownMetas[:0]
	l.pod = resourceusage.PodUsage{Containers: l.pod.Containers[:0], Runs: l.pod.Runs[:0]}
	usageLists.Put(l)
}

func (s *itemStore) clear() {
	clear(s.usages)
	s.items, s.usages = s.items[:0], s.usages[:0]
}

// grow makes room for this many pods with two containers each.
func (l *usageList) grow(pods int) {
	l.items, l.usages = slices.Grow(l.items, pods), slices.Grow(l.usages, 2*pods)
}

// addPod appends a pod. meta is its index in metas, and swap reports that its node has swap space.
func (l *usageList) addPod(u *resourceusage.PodUsage, meta int32, swap bool) {
	from := int32(len(l.usages))
	l.usages = append(l.usages, u.Containers...)
	l.items = append(l.items, usageItem{window: u.Window, from: from, to: int32(len(l.usages)), meta: meta, swap: swap || usesSwap(u.Containers)})
}

// addNode appends a node. swap reports that it has swap space.
func (l *usageList) addNode(s objectMeta, u resourceusage.Usage, over metric.Window, swap bool) {
	from := int32(len(l.usages))
	l.usages = append(l.usages, u)
	l.items = append(l.items, usageItem{window: over, from: from, to: from + 1, meta: l.addMeta(s), swap: swap || usesSwap(l.usages[from:])})
}

// usesSwap reports whether swap is in use. Then the node has swap space, also if the API server does
// not report that: before Kubernetes 1.34 it never does.
func usesSwap(usages []resourceusage.Usage) bool {
	for i := range usages {
		if usages[i].Swap > 0 {
			return true
		}
	}
	return false
}

// addMeta appends s to r's own metas and returns its index.
func (l *usageList) addMeta(s objectMeta) int32 {
	l.ownMetas = append(l.ownMetas, s)
	l.metas = l.ownMetas
	return int32(len(l.ownMetas) - 1)
}

// metaOf returns the name and labels of an item.
func (l *usageList) metaOf(o *usageItem) *objectMeta { return &l.metas[o.meta] }

// usagesOf returns the usages of an item.
func (l *usageList) usagesOf(o *usageItem) []resourceusage.Usage { return l.usages[o.from:o.to] }

// sortByName sorts the items by name. Item i must have meta i.
func (l *usageList) sortByName() {
	l.order = sortedByName(l.metas, l.order[:0])
	l.reorder()
}

// sortByMeta sorts the items by their metas, which are sorted by name.
func (l *usageList) sortByMeta() {
	l.order = slices.Grow(l.order[:0], len(l.metas))[:len(l.metas)]
	if len(l.items) < len(l.metas) {
		for i := range l.order {
			l.order[i] = -1
		}
	}
	for i := range l.items {
		l.order[l.items[i].meta] = int32(i)
	}
	if len(l.items) < len(l.metas) {
		l.order = slices.DeleteFunc(l.order, func(i int32) bool { return i < 0 })
	}
	l.reorder()
}

// reorder sorts items and usages by r.order, so that they are later read in the order of
// memory. The copies here are faster than random reads during encoding, because the processor
// waits for many of them at once.
func (l *usageList) reorder() {
	to := &l.spare
	to.items, to.usages = slices.Grow(to.items, len(l.items)), slices.Grow(to.usages, len(l.usages))
	for _, i := range l.order {
		to.items = append(to.items, l.items[i])
	}
	for i := range to.items {
		o := &to.items[i]
		from := int32(len(to.usages))
		to.usages = append(to.usages, l.usages[o.from:o.to]...)
		o.from, o.to = from, int32(len(to.usages))
	}
	l.itemStore, l.spare = l.spare, l.itemStore
}

// compare orders metas as the API server lists objects.
func (m *objectMeta) compare(o *objectMeta) int {
	return cmp.Or(cmp.Compare(m.namespace, o.namespace), strings.Compare(m.name, o.name))
}

// sortedByName appends the indexes of metas, sorted by name.
func sortedByName(metas []objectMeta, order []int32) []int32 {
	for i := range metas {
		order = append(order, int32(i))
	}
	slices.SortFunc(order, func(a, b int32) int { return metas[a].compare(&metas[b]) })
	return order
}

// labelSet is the labels of an object, also in their encoded forms. It is immutable.
type labelSet struct {
	all            map[string]string
	key            string // cluster.AppendLabelKey
	json, protobuf []byte
}

// label is one label of a labelSet.
type label struct{ key, value string }

func newLabelSet(all map[string]string, key string) *labelSet {
	sorted, size := make([]label, 0, len(all)), 0
	for k, v := range all {
		sorted = append(sorted, label{k, v})
		size += len(k) + len(v) + len(`"":"",`) // protobuf needs about as much
	}
	slices.SortFunc(sorted, func(a, b label) int { return cmp.Compare(a.key, b.key) })
	text := appendLabels(make([]byte, 0, 2*size+len(`,"labels":{}`)), sorted)
	n := len(text)
	text = appendLabelFields(text, sorted)
	return &labelSet{all: all, key: key, json: text[:n:n], protobuf: text[n:]}
}

// noLabels is the labelSet without labels.
var noLabels = &labelSet{}

// labelSets has the labelSets seen so far: the pods of a ReplicaSet share one.
type labelSets struct {
	byKey map[string]*labelSet
	key   []byte // scratch
}

// setOf returns the labelSet of labels, which must not be changed.
func (l *labelSets) setOf(labels map[string]string) *labelSet {
	if len(labels) == 0 {
		return noLabels
	}
	l.key = cluster.AppendLabelKey(l.key[:0], labels)
	set := l.byKey[string(l.key)]
	if set == nil {
		set = newLabelSet(labels, string(l.key))
		l.add(set)
	}
	return set
}

// add adds a set.
func (l *labelSets) add(set *labelSet) {
	if l.byKey == nil {
		l.byKey = map[string]*labelSet{}
	}
	l.byKey[set.key] = set
}
