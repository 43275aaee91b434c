package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

func TestDocuments(t *testing.T) {
	body := map[string]any{"a": "<b> & \x1b[2J\u009b2J\u202e\U000e0001ü\xff", "n": 1}
	for format, want := range map[string]string{
		"json": "{\n  \"a\": \"<b> & \\u001b[2J\\u009b2J\\u202e\\udb40\\udc01ü\\ufffd\",\n  \"n\": 1\n}\n",
		"yaml": "a: \"<b> & \\e[2J\\x9B2J\u202e\\U000E0001ü\ufffd\"\n\"n\": 1\n",
	} {
		var out strings.Builder
		if err := WriteDocument(&out, format, body); err != nil || out.String() != want {
			t.Errorf("%s: got %q, %v, want %q", format, &out, err, want)
		}
	}
	if err := WriteDocument(new(strings.Builder), "json", func() {}); err == nil || !strings.HasPrefix(err.Error(), "write json: ") {
		t.Errorf("of a function: %v, want an error", err)
	}
}

// Whatever a string contains, the JSON has the same string and no control characters of terminals.
func FuzzDocument(f *testing.F) {
	f.Add("a\x1b[2J\u0085\U000e0001")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		var out strings.Builder
		if err := WriteDocument(&out, "json", s); err != nil {
			t.Fatal(err)
		}
		for _, r := range strings.TrimSuffix(out.String(), "\n") {
			if !unicode.IsPrint(r) {
				t.Errorf("%q leaves %q", s, r)
			}
		}
		var yes strings.Builder
		if err := WriteDocument(&yes, "yaml", s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		var got string
		if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got != s {
			t.Errorf("got %q, %v, want %q", got, err, s)
		}
	})
}
