package metric_test

import (
	"testing"

	"github.com/weir-metrics/weir/metric"
)

// Only reasons of rejected samples, and of numbers that should not be there, have severity
// None.
func TestSeverity(t *testing.T) {
	for r := range metric.Reason(metric.NumReasons) {
		got := r.Severity()
		switch layer := r.Layer(); {
		case layer == metric.LayerScrape && got != metric.Broken,
			layer == metric.LayerRate && got == metric.None,
			layer == metric.LayerLife && got == metric.Broken,
			layer == metric.LayerIdentity && r != metric.Ambiguous && got != metric.None:
			t.Errorf("%v of layer %d is %v", r, layer, got)
		}
	}
	for g, want := range map[metric.Severity]string{metric.None: "none", metric.Temporary: "temporary", metric.Broken: "broken"} {
		if got := g.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
