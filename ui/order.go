package ui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// rank is how badly something wants to be seen: the smallest first.
type rank uint8

// The ranks.
const (
	missing  rank = iota // it should have numbers and lacks some
	doubtful             // it has some that are in doubt, or stand in for missed ones
	measured
	idle // it should have none
)

// item is one line of a list before it is drawn: enough to order it by.
type item[T any] struct {
	of          T
	name        string
	rank        rank
	cpu, memory float64 // negative if there is none
	share       float64 // of what it may use, the larger of the two; negative if unknown
}

// measure takes from a sample, which may be nil, what an item is ordered by.
func (it *item[T]) measure(s *metric.Sample) {
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

// take is measure for something that is known to be idle or in doubt unless it has
// numbers.
func (it *item[T]) take(s *metric.Sample) {
	was := it.rank
	if it.measure(s); it.rank == missing {
		it.rank = was
	}
}

// arrange orders items, and leaves only those whose name holds the filter.
func arrange[T any](items []item[T], q *query) []item[T] {
	if q.filter != "" {
		items = slices.DeleteFunc(items, func(it item[T]) bool { return !holds(it.name, q.filter) })
	}
	slices.SortFunc(items, func(a, b item[T]) int {
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

// holds reports whether a name contains text, in small letters or capitals.
func holds(name, text string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(text))
}

// cut is the part of a list that fits on a page.
type cut struct {
	From, To, Of int
	// More is where the list goes on, Back where it begins; empty if there is no
	// such place.
	More, Back string
}

// Left is how many come after it.
func (c cut) Left() string { return grouped(c.Of - c.To) }

// fit returns which of n items a page shows: most of them from q.from on. Whole is
// the page that shows the list at length; on itself the list goes on there.
func fit(n, most int, q, whole query) cut {
	c := cut{Of: n}
	if q.from > 0 {
		c.From = min(q.from, max(0, n-1)/most*most)
	}
	c.To = min(c.From+most, n)
	whole.filter, whole.sort, whole.still = q.filter, q.sort, q.still
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
