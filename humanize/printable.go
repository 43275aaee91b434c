package humanize

import (
	"strconv"
	"strings"
	"unicode"
)

var lineEnds = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ")

// Printable returns s with all control characters escaped, because s may come from anyone: the name
// of a cgroup, the error of a server. Line ends become spaces.
func Printable[S ~string](s S) string { return PrintableLines(lineEnds.Replace(string(s))) }

// PrintableLines is Printable for text with a layout: it keeps line ends and tabs.
func PrintableLines(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, string(unicode.ReplacementChar)) {
		switch {
		case r == '\r':
			b.WriteByte(' ')
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}
