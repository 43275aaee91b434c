package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Mistake is one mistake in a file.
type Mistake struct {
	File         string
	Line, Column int // from 1; 0 for the file as a whole
	// Text describes what is wrong and what to do.
	Text string
	// Wrong is an unknown name, and Known are the possible names. Both are empty for other
	// mistakes.
	Wrong string
	Known []string
	// InRule is set if the mistake concerns one rule, not the whole file.
	InRule bool
}

// String returns "FILE:LINE:COLUMN: TEXT".
func (m Mistake) String() string {
	if m.Line == 0 {
		return fmt.Sprintf("%s: %s", m.File, m.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, m.Text)
}

// Mistakes are all mistakes in a file, in their order.
type Mistakes []Mistake

// Error returns the mistakes, one on each line.
func (mi Mistakes) Error() string {
	lines := make([]string, len(mi))
	for i, m := range mi {
		lines[i] = m.String()
	}
	return strings.Join(lines, "\n")
}

func (mi Mistakes) sort() {
	slices.SortStableFunc(mi, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
