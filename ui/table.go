package ui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/humanize"
	"github.com/weir-metrics/weir/metric"
)

// How many rows a list has: on a page among other things, and on one of its own.
const (
	page25  = 25
	page100 = 100
)

// table is a list as it is drawn.
type table struct {
	Title string
	What  string // heads the column of names
	Rows  []row
	Cut   listRange
	None  string // said in place of no rows
	// Counted says that rows have a column of pods.
	Counted bool
	Trends  bool // rows have lines
	Asked   bool // rows have requests and limits
	Sorts   map[sorting]anchor

	lastReason string // why, of the last row that told it
}

// add adds a row. Why is said once of rows that follow one another for one reason,
// as those of the pods of a node that fails.
func (t *table) add(r row) {
	switch {
	case r.Why == "":
	case r.Why == t.lastReason:
		r.Why = sameReason
	default:
		t.lastReason = r.Why
	}
	t.Rows = append(t.Rows, r)
}

// sameReason is said in place of a reason that has just been told.
const sameReason = "for the same reason"

// Count says how many there are.
func (t table) Count() string { return humanize.Number(t.Cut.Of) }

// Sorted reports whether the table is ordered so.
func (t table) Sorted(by sorting) bool { return t.Sorts[by].Here }

// Header returns the head of a column: a link that orders by it, where lists can
// be ordered.
func (t table) Header(by sorting, text string) anchor {
	return anchor{Text: text, Href: t.Sorts[by].Href}
}

// Columns is how many columns the table has.
func (t table) Columns() int {
	n := 6
	if t.Counted {
		n++
	}
	if t.Trends {
		n += 2
	}
	if t.Asked {
		n += 4
	}
	return n
}

// row is one line of a table.
type row struct {
	Name, Href string
	Full       string // the name in full, where Name is a part of it
	Note       string // beside the name
	Depth      int    // in a tree
	State      state
	Pods       string // "28 of 30"
	CPU        resourceUse
	Memory     resourceUse
	Why        string
}

// sorts returns the links that order a list, which begin it anew.
func (p *page) sorts() map[sorting]anchor {
	all := map[sorting]anchor{}
	for _, by := range []sorting{byWorst, byCPU, byMemory, byName} {
		q := p.query
		q.sort, q.from = by, 0
		all[by] = anchor{Href: q.link(), Here: p.query.sort == by}
	}
	return all
}

// listQuery returns the query where it pages through the list of a view, and else one
// that begins it.
func (p *page) listQuery(v view) query {
	q := p.query
	if q.view != v {
		q.from = 0
	}
	return q
}

// rank is how badly something wants to be seen: the smallest first.
type rank uint8

// The ranks.
const (
	missing  rank = iota // it should have numbers and lacks some
	doubtful             // it has some that are in doubt, or stand in for missed ones
	measured
	idle // it should have none
)

// listItem is one line of a list before it is drawn: enough to order it by.
type listItem[T any] struct {
	of          T
	name        string
	rank        rank
	cpu, memory float64 // negative if there is none
	share       float64 // of what it may use, the larger of the two; negative if unknown
}

// measure takes from a sample, which may be nil, what an item is ordered by.
func (it *listItem[T]) measure(s *metric.Sample) {
	it.cpu, it.memory, it.share = value(s, metric.CPUUsageRate), value(s, metric.MemoryWorkingSet), -1
	switch {
	case it.cpu < 0 || it.memory < 0:
		it.rank = missing
	case s.Reasons[metric.CPU] == metric.Ambiguous || s.Reasons[metric.Memory] == metric.Ambiguous || s.LastKnown&(1<<metric.CPU|1<<metric.Memory) != 0:
		it.rank = doubtful
	default:
		it.rank = measured
	}
}

// measureKnown is measure for something that is known to be idle or in doubt unless it has
// numbers.
func (it *listItem[T]) measureKnown(s *metric.Sample) {
	was := it.rank
	if it.measure(s); it.rank == missing {
		it.rank = was
	}
}

// sortAndFilter orders items, and leaves only those whose name holds the filter.
func sortAndFilter[T any](items []listItem[T], q *query) []listItem[T] {
	if q.filter != "" {
		items = slices.DeleteFunc(items, func(it listItem[T]) bool { return !containsFold(it.name, q.filter) })
	}
	slices.SortFunc(items, func(a, b listItem[T]) int {
		var first int
		switch q.sort {
		case byCPU:
			first = cmp.Compare(b.cpu, a.cpu)
		case byMemory:
			first = cmp.Compare(b.memory, a.memory)
		case byName:
			first = strings.Compare(a.name, b.name)
		default:
			first = cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.share, a.share))
		}
		return cmp.Or(first, cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.memory, a.memory), strings.Compare(a.name, b.name))
	})
	return items
}

// containsFold reports whether a name contains text, in small letters or capitals.
func containsFold(name, text string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(text))
}

// listRange is the part of a list that fits on a page.
type listRange struct {
	From, To, Of int
	// More is where the list goes on, Back where it begins; empty if there is no
	// such place.
	More, Back string
}

// Left is how many come after it.
func (c listRange) Left() string { return humanize.Number(c.Of - c.To) }

// paginate returns which of n items a page shows: most of them from q.from on. Whole is
// the page that shows the list at length; on itself the list goes on there.
func paginate(n, most int, q, whole query) listRange {
	c := listRange{Of: n}
	if q.from > 0 {
		c.From = min(q.from, max(0, n-1)/most*most)
	}
	c.To = min(c.From+most, n)
	whole.filter, whole.sort, whole.noRefresh = q.filter, q.sort, q.noRefresh
	if c.To < n {
		whole.from = c.To
		c.More = whole.link()
	}
	if c.From > 0 {
		whole.from = max(0, c.From-most)
		c.Back = whole.link()
	}
	return c
}
