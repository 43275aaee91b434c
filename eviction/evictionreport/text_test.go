package evictionreport

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-metrics/weir/internal/humanize"
)

// TestFormat checks the formats of amounts.
func TestFormat(t *testing.T) {
	f := func(u Unit, v float64, want string) {
		t.Helper()
		if got := u.Format(v); got != want {
			t.Errorf("%v %s: got %q, want %q", v, u, got, want)
		}
	}
	f(Bytes, 0, "0")
	f(Bytes, 1023, "1023")
	f(Bytes, 1024, "1Ki")
	f(Bytes, 93<<20, "93Mi")
	f(Bytes, 1900<<20, "1.86Gi")
	f(Bytes, 1<<30-1, "1Gi") // not 1024Mi
	f(Bytes, -1536<<20, "-1.5Gi")
	f(Bytes, 1<<62, "4Ei")
	f(Inodes, 4672320, "4,672,320")
	f(Processes, 12, "12")
	f(Cores, 1.25, "1250m")
	f(Percent, 12.46, "12.5%")
	f(Percent, 0.01, "<0.1%")
	f(Percent, 0, "0%")
	f(Percent, -0.01, "0%")
}

// TestTextIsSafe checks that control characters in names and errors do not reach the text, and that
// a line stays one line.
func TestTextIsSafe(t *testing.T) {
	ill := "\x1b[2J\nroot# \x07\u202e\xff"
	number := func(v float64) *float64 { return &v }
	r := &EvictionReport{
		Node: ill, Mode: ill, State: Evicting, Summary: ill, WokenBy: ill, ReadError: ill, Warnings: []string{ill}, Unwatched: []string{ill},
		Signals: []Signal{{
			Name: ill, Value: number(1), Doubt: ill, ReclaimsFirst: []string{ill},
			Thresholds: []Threshold{{Text: ill, Message: ill, State: InForce}},
			Ranking:    &Ranking{Next: ill, Message: ill, Pods: []RankedPod{{Namespace: ill, Name: ill, Message: ill, BeforeNextBy: ill, Skipped: ill}}},
		}},
		Exceeded: []ExceededLimit{{Message: ill}}, Conditions: []Condition{{Type: ill, Message: ill}}, Admission: &Admission{Message: ill},
		Actions: []Action{{Result: ill, Message: ill, WokenBy: ill}}, Watches: []Watch{{Message: ill}},
	}
	for _, o := range []TextOptions{{}, {All: true}, {All: true, Colour: true}} {
		var out bytes.Buffer
		if err := r.WriteText(&out, o); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		for _, tint := range []string{string(humanize.Bold), string(humanize.Amber), string(humanize.Red), string(humanize.Dim), "\x1b[0m"} {
			if o.Colour {
				text = strings.ReplaceAll(text, tint, "")
			}
		}
		if strings.ContainsAny(text, "\x1b\x07\u202e\t") || !utf8.ValidString(text) || strings.Contains(text, "\nroot#") {
			t.Errorf("%+v: a terminal would obey %q", o, text)
		}
	}
}

// TestActsAreCut checks that the actions are cut unless TextOptions.All is set.
func TestActsAreCut(t *testing.T) {
	r := &EvictionReport{State: Normal, Actions: slices.Repeat([]Action{{At: time.Unix(0, 0)}}, 12)}
	f := func(all bool, lines int, more string) {
		t.Helper()
		var out bytes.Buffer
		if err := r.WriteText(&out, TextOptions{All: all}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "1970-01-01"); got != lines || more != "" && !strings.Contains(out.String(), more) {
			t.Errorf("all=%v: %d acts, want %d and %q:\n%s", all, got, lines, more, &out)
		}
	}
	f(false, 5, "and 7 more: --all shows them")
	f(true, 12, "")
}
