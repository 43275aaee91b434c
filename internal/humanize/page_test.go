package humanize

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Wrapping loses no word, and lines are no wider than the width unless a word is.
func FuzzWrap(f *testing.F) {
	f.Add("the node did not answer in time: größe", 20)
	f.Fuzz(func(t *testing.T, text string, width int) {
		if width < 0 || width > 200 {
			return
		}
		lines := wrap(text, width)
		if got, want := strings.Fields(strings.Join(lines, " ")), strings.Fields(text); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("wrap(%q, %d) has the words %q", text, width, got)
		}
		for _, l := range lines {
			if width > 0 && utf8.RuneCountInString(l) > width && len(strings.Fields(l)) > 1 {
				t.Errorf("wrap(%q, %d) has the line %q", text, width, l)
			}
		}
	})
}

func TestPrintable(t *testing.T) {
	for s, want := range map[string]string{
		"web-1": "web-1", "größe": "größe", "a\x1b[2Jb": `a\x1b[2Jb`, "a\nb\tc": "a b c", "\u202eabc": `\u202eabc`, "a\xff": "a\ufffd",
	} {
		if got := Printable(s); got != want {
			t.Errorf("Printable(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestPrintableLines(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "one": "one", "one\n\ttwo\n": "one\n\ttwo\n", "a\x1b\n\rb\xff\t": "a\\x1b\n b\ufffd\t",
	} {
		if got := PrintableLines(s); got != want {
			t.Errorf("PrintableLines(%q) = %q, want %q", s, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("a\x1b[2J\u0085")
	f.Fuzz(func(t *testing.T, s string) {
		got := Printable(s)
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Errorf("Printable(%q) leaves %q", s, r)
			}
		}
		if again := Printable(got); again != got {
			t.Errorf("Printable twice makes of %q %q", got, again)
		}
	})
}

func TestURL(t *testing.T) {
	for s, want := range map[string]string{
		"http://host:9090/api/v1/write":    "http://host:9090/api/v1/write",
		"https://me:secret@host/w":         "https://xxxxx@host/w",
		"https://secret@host/w":            "https://xxxxx@host/w",
		"https://me:se/cret@host/w":        "https://xxxxx@host/w",
		"https://me:12/secret@host/w":      "https://xxxxx@host/w",
		"https://me:12#secret@host/w":      "https://xxxxx@host/w",
		"https://me:sec?ret@host/w":        "https://xxxxx@host/w",
		"https://me:secret%zz@host/w":      "https://xxxxx@host/w",
		"http://host/w?key=secret&a=b@c":   "http://host/w?xxxxx",
		"prometheus:https://me:secret@h/w": "prometheus:https://xxxxx@h/w",
		"me:secret@host":                   "xxxxx@host",
		"http://ho\x1b[2Jst/?key=secret":   `http://ho\x1b[2Jst/?xxxxx`,
		"host:9090":                        "host:9090", "": "",
	} {
		if got := URL(s); got != want {
			t.Errorf("URL(%q) = %q, want %q", s, got, want)
		}
	}
}
