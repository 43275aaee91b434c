package metric

import "sync/atomic"

// podTable holds the pods of one namespace by name: a hash table whose buckets of
// about eight pods lie on pages of 64. A table never changes; a change makes a new
// one that shares all pages but those it touched, so it costs the same whether the
// namespace has a thousand pods or a million.
type podTable struct {
	n     int
	pages []podPage // together a power of two of buckets
	// list is every pod in one slice, made when somebody first asks for it.
	list atomic.Pointer[[]*PodFacts]
}

type podPage [][]*PodFacts

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
	t := &podTable{pages: make([]podPage, max(1, buckets/pageBuckets))}
	all := make([][]*PodFacts, buckets)
	for i := range t.pages {
		size := min(buckets, pageBuckets)
		t.pages[i] = all[i*size : (i+1)*size : (i+1)*size]
	}
	return t
}

// place returns where a name belongs.
func (t *podTable) place(name PodName) (page, bucket int) {
	size := len(t.pages[0])
	i := int(hashOf(name)) & (len(t.pages)*size - 1)
	return i / size, i % size
}

func (t *podTable) get(name PodName) *PodFacts {
	if t == nil {
		return nil
	}
	page, bucket := t.place(name)
	for _, p := range t.pages[page][bucket] {
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
func (t *podTable) each(do func(*PodFacts) bool) bool {
	if t == nil {
		return true
	}
	for _, page := range t.pages {
		for _, bucket := range page {
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
func (t *podTable) all() []*PodFacts {
	if t == nil {
		return nil
	}
	if list := t.list.Load(); list != nil {
		return *list
	}
	list := make([]*PodFacts, 0, t.n)
	t.each(func(p *PodFacts) bool { list = append(list, p); return true })
	t.list.Store(&list)
	return list
}

// with returns a table after changes: pods by name, nil for those that are gone. It
// is nil if no pod is left. t may be nil.
func (t *podTable) with(changes map[PodName]*PodFacts) *podTable {
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
	if t == nil || 4*len(changes) > t.n || n > t.room() || 8*n < t.room() {
		return t.rebuilt(n, changes)
	}
	next := &podTable{n: n, pages: append([]podPage(nil), t.pages...)}
	for name, p := range changes {
		page, bucket := t.place(name)
		if &next.pages[page][0] == &t.pages[page][0] {
			next.pages[page] = append(podPage(nil), t.pages[page]...)
		}
		next.pages[page][bucket] = replaced(next.pages[page][bucket], name, p)
	}
	return next
}

// room returns how many pods the table is made for: a bucket may hold twice its
// average before all is moved to a larger table.
func (t *podTable) room() int { return 2 * bucketPods * len(t.pages) * len(t.pages[0]) }

// replaced returns a copy of bucket in which p, which may be nil, has the place of the
// pod of that name.
func replaced(bucket []*PodFacts, name PodName, p *PodFacts) []*PodFacts {
	next := make([]*PodFacts, 0, len(bucket)+1)
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
func (t *podTable) rebuilt(n int, changes map[PodName]*PodFacts) *podTable {
	next := newPodTable(n)
	next.n = n
	kept := make([]*PodFacts, 0, n)
	t.each(func(p *PodFacts) bool {
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
	size := len(next.pages[0])
	begin := make([]int, len(next.pages)*size+1)
	for _, p := range kept {
		page, bucket := next.place(p.Name)
		begin[page*size+bucket+1]++
	}
	for i := 1; i < len(begin); i++ {
		begin[i] += begin[i-1]
	}
	array := make([]*PodFacts, n)
	for i := range len(begin) - 1 {
		next.pages[i/size][i%size] = array[begin[i]:begin[i]:begin[i+1]]
	}
	for _, p := range kept {
		page, bucket := next.place(p.Name)
		next.pages[page][bucket] = append(next.pages[page][bucket], p)
	}
	return next
}

// since calls put for each pod of t that old has not, or has otherwise, and gone for
// each of old's names that t has not. Pages that both share are passed over.
func (t *podTable) since(old *podTable, put func(*PodFacts), gone func(*PodFacts)) {
	alike := t != nil && old != nil && len(t.pages) == len(old.pages) && len(t.pages[0]) == len(old.pages[0])
	differing(t, old, alike, func(p *PodFacts) {
		if old.get(p.Name) != p {
			put(p)
		}
	})
	differing(old, t, alike, func(p *PodFacts) {
		if t.get(p.Name) == nil {
			gone(p)
		}
	})
}

// differing calls do for the pods of t on pages that other does not share. alike says
// that their pages correspond.
func differing(t, other *podTable, alike bool, do func(*PodFacts)) {
	if t == nil {
		return
	}
	for i, page := range t.pages {
		if alike && &page[0] == &other.pages[i][0] {
			continue
		}
		for _, bucket := range page {
			for _, p := range bucket {
				do(p)
			}
		}
	}
}
