package ui

import (
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	for s, want := range map[string]string{
		"web-1": "web-1", "größe": "größe", "a\x1b[2J": `"a\x1b[2J"`, "a\xff": `"a\xff"`, "\u202ea": `"\u202ea"`,
		strings.Repeat("a", maxText): strings.Repeat("a", maxText),
		// An error of one megabyte from a server, cut in the middle of a character.
		strings.Repeat("a", maxText-1) + strings.Repeat("ü", 1<<19): strings.Repeat("a", maxText-1) + "... (1,048,575 bytes more)",
	} {
		if got := printable(s); got != want {
			t.Errorf("clean(%.20q) = %.40q of %d bytes, want %.40q of %d", s, got, len(got), want, len(want))
		}
	}
}
