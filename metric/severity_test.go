package metric

import "testing"

// Only reasons of rejected samples, and of numbers that should not be there, have severity
// None.
func TestSeverity(t *testing.T) {
	for r := range Reason(NumReasons) {
		got := r.Severity()
		switch layer := r.Layer(); {
		case layer == LayerScrape && got != Broken,
			layer == LayerRate && got == None,
			layer == LayerLife && got == Broken,
			layer == LayerIdentity && r != Ambiguous && got != None:
			t.Errorf("%v of layer %d is %v", r, layer, got)
		}
	}
	for g, want := range map[Severity]string{None: "none", Temporary: "temporary", Broken: "broken"} {
		if got := g.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
