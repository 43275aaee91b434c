package ui

import (
	"iter"
	"testing"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
)

// noon is the end of the lines.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// points yields values at these numbers of seconds before noon.
func points(at ...float64) iter.Seq2[time.Time, float64] {
	return func(yield func(time.Time, float64) bool) {
		for i := 0; i < len(at); i += 2 {
			if !yield(noon.Add(-time.Duration(at[i]*float64(time.Second))), at[i+1]) {
				return
			}
		}
	}
}

// Fifteen minutes are sixty columns of 15 s, two apart. The highest number is at 2, and zero is at
// 78.
func TestDraw(t *testing.T) {
	for _, test := range []struct {
		name   string
		points iter.Seq2[time.Time, float64]
		want   trend
	}{
		{"none", points(), trend{Path: "", Title: "CPU: no number in the last 15m"}},
		{"one is a dot", points(450, 2e9), trend{Path: "M60 2h0", Title: "CPU in the last 15m: lowest 2000m, highest 2000m, newest 2000m; no number for 7m30s"}},
		{"zero lies at the foot", points(30, 0, 15, 0), trend{Path: "M116 78l2+0", Title: "CPU in the last 15m: lowest 0m, highest 0m, newest 0m"}},
		{"half is half way", points(45, 1e9, 30, 2e9, 15, 0), trend{Path: "M114 40l2-38l2+76", Title: "CPU in the last 15m: lowest 0m, highest 2000m, newest 0m"}},
		{"a missed read is no gap", points(75, 1e9, 60, 1e9, 30, 1e9, 15, 1e9), trend{Path: "M110 2l2+0l4+0l2+0", Title: "CPU in the last 15m: lowest 1000m, highest 1000m, newest 1000m"}},
		{"an outage is one", points(300, 1e9, 285, 1e9, 30, 1e9, 15, 1e9),
			trend{Path: "M80 2l2+0M116 2l2+0", Title: "CPU in the last 15m: lowest 1000m, highest 1000m, newest 1000m; no number for 4m15s"}},
		{"points of one column are one", points(14, 1e9, 9, 3e9, 4, 2e9), trend{Path: "M118 27h0", Title: "CPU in the last 15m: lowest 1000m, highest 3000m, newest 2000m"}},
		{"what is older is left out", points(901, 9e9, 15, 1e9), trend{Path: "M118 2h0", Title: "CPU in the last 15m: lowest 1000m, highest 1000m, newest 1000m"}},
		{"a clock ahead of ours ends at the edge", points(15, 1e9, -40, 1e9), trend{Path: "M118 2l2+0", Title: "CPU in the last 15m: lowest 1000m, highest 1000m, newest 1000m"}},
	} {
		line := newTimeline(test.points, noon, shortestSpan, 60, time.Minute)
		got := trend{line: line}
		got.draw("CPU", humanize.Cores, line.high)
		if got.Path != test.want.Path || got.Title != test.want.Title {
			t.Errorf("%s\n got: %q %q\nwant: %q %q", test.name, got.Path, got.Title, test.want.Path, test.want.Title)
		}
	}
}

func TestFormats(t *testing.T) {
	for _, test := range [][2]string{
		{relativeTime(noon.Add(-61*time.Second), noon).Text, "1m1s ago"}, {relativeTime(noon.Add(9*time.Second), noon).Text, "in 9s"},
		{relativeTime(noon, noon).Text, "just now"}, {relativeTime(time.Time{}, noon).Text, ""}, {dueTime(noon.Add(-time.Hour), noon).Text, "now"},
		{printable("a b"), "a b"}, {printable("a\xffb"), `"a\xffb"`}, {printable("a\nb"), `"a\nb"`}, {printable("a\u202eb"), `"a\u202eb"`},
	} {
		if got, want := test[0], test[1]; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
