package simulator

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is when the fleets of these tests start.
var start = time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)

// newFleet returns a small fleet with faults, each in the fault language.
func newFleet(t testing.TB, o Options, faults ...string) *Fleet {
	t.Helper()
	for _, text := range faults {
		f, err := Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q): %v", text, err)
		}
		o.Faults = append(o.Faults, f)
	}
	o.Start = start
	if o.Seed == 0 {
		o.Seed = 1
	}
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
