package ui

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
	Cut   cut
	None  string // said in place of no rows
	// Counted says that rows have a column of pods.
	Counted bool
	Trends  bool // rows have lines
	Asked   bool // rows have requests and limits
	Sorts   map[sorting]anchor

	said string // why, of the last row that told it
}

// add adds a row. Why is said once of rows that follow one another for one reason,
// as those of the pods of a node that fails.
func (t *table) add(r row) {
	switch {
	case r.Why == "":
	case r.Why == t.said:
		r.Why = alike
	default:
		t.said = r.Why
	}
	t.Rows = append(t.Rows, r)
}

// alike is said in place of a reason that has just been told.
const alike = "for the same reason"

// Count says how many there are.
func (t table) Count() string { return grouped(t.Cut.Of) }

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
	CPU        use
	Memory     use
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

// from returns the query where it pages through the list of a view, and else one
// that begins it.
func (p *page) from(v view) query {
	q := p.query
	if q.view != v {
		q.from = 0
	}
	return q
}
