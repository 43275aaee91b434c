package humanize

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
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

// URL returns an address for logs, errors and pages, with "xxxxx" in the place of its user name and
// password and of its query, as any of them may be a secret. It masks them in a text that is not a
// valid URL, too, and makes the text Printable.
func URL(s string) string {
	if u, err := url.Parse(s); err == nil && u.Host != "" && u.RawQuery != "" {
		u.RawQuery = "xxxxx"
		s = u.String()
	}
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		scheme := ""
		if i := strings.Index(s[:at], "://"); i >= 0 {
			scheme = s[:i+len("://")]
		}
		s = scheme + "xxxxx" + s[at:]
	}
	if before, query, _ := strings.Cut(s, "?"); query != "" {
		s = before + "?xxxxx"
	}
	return Printable(s)
}

// Excerpt returns a text of anyone on one line, Printable, with at most limit bytes before "...".
func Excerpt(s string, limit int) string {
	cut := len(s) > 4*limit
	s = Printable(strings.Join(strings.Fields(s[:min(len(s), 4*limit)]), " "))
	if !cut && len(s) <= limit {
		return s
	}
	s = s[:min(len(s), limit)]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "..."
}
