package notify

import (
	"slices"
	"testing"
	"time"
)

func TestParseStallTotals(t *testing.T) {
	got, err := parseStallTotals([]byte("some avg10=11.60 avg60=15.13 avg300=25.71 total=10395622797\nfull avg10=0.00 avg60=0.50 avg300=0.00 total=7\n"))
	if want := (stallTotals{10395622797 * time.Microsecond, 7 * time.Microsecond, true}); got != want || err != nil {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "full avg10=0.00\n", "some total=-1", "some total=", "some total=18446744073709551615"} {
		if got, err := parseStallTotals([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, got)
		}
	}
}

// FuzzParseStallTotals checks that no total is negative, and that an additional line at the end
// changes no total.
func FuzzParseStallTotals(f *testing.F) {
	f.Add([]byte("some avg10=11.60 avg60=15.13 avg300=25.71 total=10395622797\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"))
	f.Add([]byte("some total=1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parseStallTotals(b)
		if err != nil {
			if got != (stallTotals{}) {
				t.Errorf("an error and %+v", got)
			}
			return
		}
		if got.some < 0 || got.full < 0 {
			t.Errorf("negative total: %+v", got)
		}
		if more, err := parseStallTotals(append(slices.Clone(b), "\nirq total=x\n"...)); err != nil || more != got {
			t.Errorf("with another line: %+v, %v, want %+v", more, err, got)
		}
	})
}
