package ui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// How many rows a list has: on a page with other content, and on its own page.
const (
	page25  = 25
	page100 = 100
)

// table is a list as the page shows it.
type table struct {
	Title   string // empty on a page that has only this list
	What    string // the header of the column of names
	Rows    []row
	Cut     listRange
	None    string // the text if there are no rows
	Counted bool   // rows have counts of pods
	Trends  bool   // rows have lines of the last fifteen minutes
	Asked   bool   // rows have requests and limits
	ShareOf string // what the shares of rows are of; empty if rows have none
	Missing int    // how many of all items lack numbers
	Filter  *podFilter
	// CPUScale and MemoryScale are the upper ends of the scales of the lines; empty if all are zero.
	CPUScale, MemoryScale string
	Sorts                 map[sorting]anchor

	lastReason string // the reason of the last row that has one
}

// add adds a row. If its reason equals that of the row above, sameReason replaces it: all pods of a
// failing node have the same reason.
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

// sameReason replaces a repeated reason.
const sameReason = "for the same reason"

// Count returns the number of items as text.
func (t table) Count() string { return humanize.Number(t.Cut.Of) }

// Sorted reports whether the table is sorted this way.
func (t table) Sorted(order sorting) bool { return t.Sorts[order].Here }

// Header returns the header of a column: a link that sorts by it, if the list can be sorted.
func (t table) Header(order sorting, text string) anchor {
	return anchor{Text: text, Href: t.Sorts[order].Href}
}

// Columns returns the number of columns.
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
	if t.ShareOf == "" {
		n -= 2
	}
	return n
}

// row is one line of a table.
type row struct {
	Name, Href string
	Full       string // the full name, if Name is only a part of it
	Note       string // shown beside the name
	Depth      int    // depth in the tree
	State      state
	Pods       string // "28 of 30"
	CPU        resourceUse
	Memory     resourceUse
	Why        string
}

// sorts returns the links that sort a list and show its first page.
func (p *page) sorts() map[sorting]anchor {
	all := map[sorting]anchor{}
	for order := range orders {
		q := p.query
		q.sort, q.from = order, 0
		all[order] = anchor{Href: q.link(), Here: p.query.sort == order}
	}
	return all
}

// addRows sorts items and adds a row for each that the page shows. whole is the query of the page
// with the complete list.
func (p *page) addRows(t *table, items []listItem, most int, whole query, draw func(*listItem) row) {
	items = sortAndFilter(items, &p.query)
	for i := range items {
		if items[i].rank == missing {
			t.Missing++
		}
	}
	t.Sorts, t.Cut = p.sorts(), p.paginate(len(items), most, whole)
	for i := t.Cut.From; i < t.Cut.To; i++ {
		r := draw(&items[i])
		r.Name = printable(items[i].name)
		t.add(r)
	}
	t.writeColumns()
}

// writeColumns writes the CPU and the memory of the rows, each in one unit and with one scale for the lines.
func (t *table) writeColumns() {
	var cpu, memory []*resourceUse
	for i := range t.Rows {
		cpu, memory = append(cpu, &t.Rows[i].CPU), append(memory, &t.Rows[i].Memory)
	}
	t.CPUScale, t.MemoryScale = resources.cpu.writeColumn(cpu), resources.memory.writeColumn(memory)
}

// rank sorts items: the smallest rank needs attention most.
type rank uint8

// The ranks.
const (
	missing  rank = iota // it should have numbers, and some are missing
	waiting              // a started pod without a running container, as after a crash
	doubtful             // some numbers are in doubt or stale
	partial              // a pod whose numbers are those of some containers, because one does not run
	measured
	idle // it has nothing to measure
)

// listItem is an item of a list with its sort keys.
type listItem struct {
	entity      metric.Entity
	name        string
	sample      *metric.Sample // nil for a pod, and if there are no numbers
	pod         *cluster.Pod   // nil for other kinds, and if the API server does not know the pod
	workload    cluster.Owner  // only of a workload; entity has its namespace
	rank        rank
	tone        tone    // of a missing number; only known if the list is sorted by what is worst
	risk        state   // of a node that is measured and at risk
	atRisk      string  // why it is
	cpu, memory float64 // negative if there is no number
	pods        int     // how many it has; only known if the list is sorted by it
	cpuShare    float64 // of what the row shows; negative if unknown
	memoryShare float64
	share       float64 // the larger share of a limit, of CPU and memory; negative if unknown
}

// measure sets the sort keys from a sample, which may be nil.
func (it *listItem) measure(s *metric.Sample) {
	it.cpu, it.memory, it.share = value(s, metric.CPUUsageRate), value(s, metric.MemoryWorkingSet), -1
	it.cpuShare, it.memoryShare = resources.cpu.shareOf(s, nil), resources.memory.shareOf(s, nil)
	switch {
	case it.cpu < 0 || it.memory < 0:
		it.rank = missing
	case s.Reasons[metric.CPU] == metric.Ambiguous || s.Reasons[metric.Memory] == metric.Ambiguous || s.LastKnown&(1<<metric.CPU|1<<metric.Memory) != 0:
		it.rank = doubtful
	default:
		it.rank = measured
	}
}

// measureKnown sets the sort keys from a sample and keeps the rank if the sample has no
// numbers.
func (it *listItem) measureKnown(s *metric.Sample) {
	before := it.rank
	it.measure(s)
	switch {
	case it.rank == missing:
		it.rank = before
	case it.rank == measured && it.pod != nil:
		if _, ok := it.pod.Partial(); ok {
			it.rank = partial
		}
	}
}

// sortAndFilter sorts items and removes those with names that do not contain the filter.
func sortAndFilter(items []listItem, q *query) []listItem {
	if q.filter != "" {
		items = slices.DeleteFunc(items, func(it listItem) bool { return !containsFold(it.name, q.filter) })
	}
	compare := orders[q.sort]
	slices.SortFunc(items, func(a, b listItem) int {
		return cmp.Or(compare(a, b), cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.memory, a.memory), strings.Compare(a.name, b.name))
	})
	return items
}

// orders compare two items.
var orders = map[sorting]func(a, b listItem) int{
	byWorst: func(a, b listItem) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(urgency[a.tone], urgency[b.tone]), cmp.Compare(b.share, a.share))
	},
	byCPU:         func(a, b listItem) int { return cmp.Compare(b.cpu, a.cpu) },
	byMemory:      func(a, b listItem) int { return cmp.Compare(b.memory, a.memory) },
	byName:        func(a, b listItem) int { return strings.Compare(a.name, b.name) },
	byPods:        func(a, b listItem) int { return cmp.Compare(b.pods, a.pods) },
	byCPUShare:    func(a, b listItem) int { return cmp.Compare(b.cpuShare, a.cpuShare) },
	byMemoryShare: func(a, b listItem) int { return cmp.Compare(b.memoryShare, a.memoryShare) },
}

// containsFold reports whether a name contains text, ignoring case.
func containsFold(name, text string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(text))
}

// listRange is the part of a list that a page shows.
type listRange struct {
	From, To, Of int
	// More is the address of the next part, and Back that of the previous one. They are empty if
	// there is none.
	More, Back string
}

// Left returns the number of items after the part as text.
func (r listRange) Left() string { return humanize.Number(r.Of - r.To) }

// paginate returns which of n items a page shows, at most most. whole is the query of the page with
// the complete list. On that page the query shows where to begin.
func (p *page) paginate(n, most int, whole query) listRange {
	c := listRange{Of: n}
	if p.query.view == whole.view {
		c.From = min(p.query.from, max(0, n-1)/most*most)
	}
	c.To = min(c.From+most, n)
	own := p.query
	own.view, own.node, own.pod, own.container, own.workload, own.list, own.from = whole.view, whole.node, whole.pod, whole.container, whole.workload, whole.list, 0
	whole = own
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
