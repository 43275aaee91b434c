package terminal

import (
	"bytes"
	"testing"
	"unicode"
)

func TestOnlyTerminalsAreTerminals(t *testing.T) {
	if got := Of(new(bytes.Buffer)); got.Colour || got.Size != nil {
		t.Errorf("a buffer is taken for a terminal: %+v", got)
	}
}

func TestSafe(t *testing.T) {
	for s, want := range map[string]string{
		"web-1": "web-1", "größe": "größe", "a\x1b[2Jb": `a\x1b[2Jb`, "a\nb\tc": "a b c", "\u202eabc": `\u202eabc`, "a\xff": "a\ufffd",
	} {
		if got := Safe(s); got != want {
			t.Errorf("Safe(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestSafeLines(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "one": "one", "one\n\ttwo\n": "one\n\ttwo\n", "a\x1b\n\rb\xff\t": "a\\x1b\n b\ufffd\t",
	} {
		if got := SafeLines(s); got != want {
			t.Errorf("SafeLines(%q) = %q, want %q", s, got, want)
		}
	}
}

func FuzzSafe(f *testing.F) {
	f.Add("a\x1b[2J\u0085")
	f.Fuzz(func(t *testing.T, s string) {
		got := Safe(s)
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Errorf("Safe(%q) leaves %q", s, r)
			}
		}
		if again := Safe(got); again != got {
			t.Errorf("Safe twice makes of %q %q", got, again)
		}
	})
}
