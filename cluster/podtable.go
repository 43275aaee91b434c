package cluster

import (
	"sync/atomic"

	"github.com/weir-metrics/weir/metric"
)

// podTable holds the pods of one namespace by name: a hash table whose buckets of
// about eight pods lie on pages of 64. A table never changes; a change makes a new
// one that shares all pages but those it touched, so it costs the same whether the
// namespace has a thousand pods or a million.
type podTable struct {
	n     int
	pages []*podPage // together a power of two of buckets
	// list is every pod in one slice, made when somebody first asks for it.
	list atomic.Pointer[[]*Pod]
}

// podPage is some of a table's buckets. It never changes: tables that have the same
// *podPage share it.
type podPage struct{ buckets [][]*Pod }

const (
	pageBuckets = 64
	bucketPods  = 8 // on average, when the table is full
)

// newPodTable returns a table for n pods that has none yet.
func newPodTable(n int) *podTable {
	buckets := 1
	for buckets*bucketPods < n {
		buckets *= 2
	}
	t := &podTable{pages: make([]*podPage, max(1, buckets/pageBuckets))}
	all := make([][]*Pod, buckets)
	for i := range t.pages {
		size := min(buckets, pageBuckets)
		t.pages[i] = &podPage{all[i*size : (i+1)*size : (i+1)*size]}
	}
	return t
}

// pageSize returns how many buckets a page has.
func (t *podTable) pageSize() int { return len(t.pages[0].buckets) }

// locate returns the page and bucket that a name belongs to.
func (t *podTable) locate(name metric.PodName) (page, bucket int) {
	size := t.pageSize()
	i := int(hashOf(name)) & (len(t.pages)*size - 1)
	return i / size, i % size
}

func (t *podTable) get(name metric.PodName) *Pod {
	if t == nil {
		return nil
	}
	page, bucket := t.locate(name)
	for _, p := range t.pages[page].buckets[bucket] {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func (t *podTable) len() int {
	if t == nil {
		return 0
	}
	return t.n
}

// each calls do for every pod until it returns false, and reports whether it never did.
func (t *podTable) each(do func(*Pod) bool) bool {
	if t == nil {
		return true
	}
	for _, page := range t.pages {
		for _, bucket := range page.buckets {
			for _, p := range bucket {
				if !do(p) {
					return false
				}
			}
		}
	}
	return true
}

// all returns every pod. The slice must not be changed.
func (t *podTable) all() []*Pod {
	if t == nil {
		return nil
	}
	if list := t.list.Load(); list != nil {
		return *list
	}
	list := make([]*Pod, 0, t.n)
	t.each(func(p *Pod) bool { list = append(list, p); return true })
	t.list.Store(&list)
	return list
}

// with returns a table after changes: pods by name, nil for those that are gone. It
// is nil if no pod is left. t may be nil.
func (t *podTable) with(changes map[metric.PodName]*Pod) *podTable {
	n := t.len()
	for name, p := range changes {
		switch is := t.get(name) != nil; {
		case is && p == nil:
			n--
		case !is && p != nil:
			n++
		}
	}
	if n == 0 {
		return nil
	}
	// Slow path: where much changes, or the table has become too small or far too
	// large, all is put into a new one.
	if t == nil || 4*len(changes) > t.n || n > t.capacity() || 8*n < t.capacity() {
		return t.rebuilt(n, changes)
	}
	next := &podTable{n: n, pages: append([]*podPage(nil), t.pages...)}
	for name, p := range changes {
		page, bucket := t.locate(name)
		if next.pages[page] == t.pages[page] {
			next.pages[page] = &podPage{append([][]*Pod(nil), t.pages[page].buckets...)}
		}
		next.pages[page].buckets[bucket] = replaced(next.pages[page].buckets[bucket], name, p)
	}
	return next
}

// capacity returns how many pods the table is made for: a bucket may hold twice its
// average before all is moved to a larger table.
func (t *podTable) capacity() int { return 2 * bucketPods * len(t.pages) * t.pageSize() }

// replaced returns a copy of bucket in which p, which may be nil, has the place of the
// pod of that name.
func replaced(bucket []*Pod, name metric.PodName, p *Pod) []*Pod {
	next := make([]*Pod, 0, len(bucket)+1)
	for _, old := range bucket {
		if old.Name != name {
			next = append(next, old)
		}
	}
	if p != nil {
		next = append(next, p)
	}
	return next
}

// rebuilt returns a new table of n pods: those of t, after changes.
func (t *podTable) rebuilt(n int, changes map[metric.PodName]*Pod) *podTable {
	next := newPodTable(n)
	next.n = n
	kept := make([]*Pod, 0, n)
	t.each(func(p *Pod) bool {
		if _, changed := changes[p.Name]; !changed {
			kept = append(kept, p)
		}
		return true
	})
	for _, p := range changes {
		if p != nil {
			kept = append(kept, p)
		}
	}
	// The buckets are cut from one array: first their sizes, then what is in them.
	size := next.pageSize()
	begin := make([]int, len(next.pages)*size+1)
	for _, p := range kept {
		page, bucket := next.locate(p.Name)
		begin[page*size+bucket+1]++
	}
	for i := 1; i < len(begin); i++ {
		begin[i] += begin[i-1]
	}
	array := make([]*Pod, n)
	for i := range len(begin) - 1 {
		next.pages[i/size].buckets[i%size] = array[begin[i]:begin[i]:begin[i+1]]
	}
	for _, p := range kept {
		page, bucket := next.locate(p.Name)
		next.pages[page].buckets[bucket] = append(next.pages[page].buckets[bucket], p)
	}
	return next
}

// since calls put for each pod of t that old has not, or has otherwise, and gone for
// each of old's names that t has not. Pages that both share are passed over.
func (t *podTable) since(old *podTable, put func(*Pod), gone func(*Pod)) {
	alike := t != nil && old != nil && len(t.pages) == len(old.pages) && t.pageSize() == old.pageSize()
	differing(t, old, alike, func(p *Pod) {
		if old.get(p.Name) != p {
			put(p)
		}
	})
	differing(old, t, alike, func(p *Pod) {
		if t.get(p.Name) == nil {
			gone(p)
		}
	})
}

// differing calls do for the pods of t on pages that other does not share. alike says
// that their pages correspond.
func differing(t, other *podTable, alike bool, do func(*Pod)) {
	if t == nil {
		return
	}
	for i, page := range t.pages {
		if alike && page == other.pages[i] {
			continue
		}
		for _, bucket := range page.buckets {
			for _, p := range bucket {
				do(p)
			}
		}
	}
}
