package humanize

import (
	"strconv"
	"strings"
	"unicode"
)

// Printable returns s with every character that a terminal could obey escaped, since s may come
// from anyone: the name of a cgroup, the error of a server. Line ends become spaces.
func Printable(s string) string {
	s = strings.ToValidUTF8(s, string(unicode.ReplacementChar))
	if strings.IndexFunc(s, notPrintable) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case notPrintable(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// PrintableLines is Printable for text with a layout: it keeps line ends and tabs.
func PrintableLines(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		end := strings.IndexAny(s, "\n\t")
		if end < 0 {
			end = len(s)
		}
		b.WriteString(Printable(s[:end]))
		b.WriteString(s[end:min(end+1, len(s))])
		s = s[min(end+1, len(s)):]
	}
	return b.String()
}

func notPrintable(r rune) bool { return !unicode.IsPrint(r) }
