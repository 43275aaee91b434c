package humanize_test

import (
	"slices"
	"testing"

	"github.com/weir-metrics/weir/internal/humanize"
)

func TestTable(t *testing.T) {
	cell := func(text string) humanize.Cell { return humanize.Cell{Text: text} }
	table := humanize.Table{
		{{Text: "NAME", Tint: humanize.Bold}, {Text: "CPU", Tint: humanize.Bold}, cell("WHY")},
		{cell("größe"), cell(""), cell("a long sentence")},
		{cell("a last cell may be wider than its column")},
		{cell("b"), {Text: "1m", Tint: humanize.Red}, cell("")},
		{},
	}
	f := func(width int, colour bool, want ...string) {
		t.Helper()
		if got := table.Lines(width, colour); !slices.Equal(got, want) {
			t.Errorf("width %d, colour %t: got\n%q\nwant\n%q", width, colour, got, want)
		}
	}
	f(0, false, "NAME    CPU   WHY", "größe         a long sentence", "a last cell may be wider than its column", "b       1m", "")
	f(9, false, "NAME    C", "größe", "a last ce", "b       1", "")
	f(10, true, "\x1b[1mNAME\x1b[0m    \x1b[1mCP\x1b[0m", "größe", "a last cel", "b       \x1b[31m1m\x1b[0m", "")

	var page humanize.Page
	page.Table([][]string{{"a\nb", "c"}, {"d\x1b", ""}})
	if got, want := page.String(), "a b     c\nd\\x1b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
