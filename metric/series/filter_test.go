package series_test

import (
	"testing"

	"github.com/weir-metrics/weir/metric/series"
)

func TestMatch(t *testing.T) {
	for pattern, cases := range map[string]map[string]bool{
		"cpu_*": {"cpu_x": true, "cpu_": true, "xcpu_": false},
		"*":     {"": true, "a/b": true},
		"a*b*c": {"abc": true, "aXbYbZc": true, "aXbY": false},
		"a?c":   {"abc": true, "ac": false},
		"":      {"": true, "a": false},
	} {
		for s, want := range cases {
			if got := series.Match(pattern, s); got != want {
				t.Errorf("Match(%q, %q): got %v", pattern, s, got)
			}
		}
	}
}
