// Package terminal tells what can be done with an output: on a terminal there are
// colours and a width, anywhere else there is only text.
package terminal

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// Terminal is what an output is capable of. The zero Terminal is any other output.
type Terminal struct {
	// Colour says that escape sequences are welcome.
	Colour bool
	// Size returns the columns and lines; nil if it is no terminal.
	Size func() (width, height int, err error)
}

// Of returns what w is capable of. The environment's NO_COLOR is honoured.
func Of(w io.Writer) Terminal {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Terminal{}
	}
	return Terminal{
		Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Size:   func() (int, int, error) { return term.GetSize(int(f.Fd())) },
	}
}

// Safe returns s with whatever a terminal might obey written out, for s may come
// from anyone: a cgroup's name, a server's error. Line ends become spaces.
func Safe(s string) string {
	s = strings.ToValidUTF8(s, string(unicode.ReplacementChar))
	if strings.IndexFunc(s, unsafe) < 0 {
		return s // Fast path
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case unsafe(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// SafeLines is Safe for text that was laid out: it keeps line ends and tabs.
func SafeLines(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		end := strings.IndexAny(s, "\n\t")
		if end < 0 {
			end = len(s)
		}
		b.WriteString(Safe(s[:end]))
		b.WriteString(s[end:min(end+1, len(s))])
		s = s[min(end+1, len(s)):]
	}
	return b.String()
}

func unsafe(r rune) bool { return !unicode.IsPrint(r) }
