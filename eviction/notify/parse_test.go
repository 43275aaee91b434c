package notify

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

func TestInactiveFile(t *testing.T) {
	for in, want := range map[string]int64{
		"cache 1\ninactive_file 4096\nhierarchical_memory_limit 9\ntotal_inactive_file 8192\n": 8192, // version 1
		"anon 0\ninactive_file 4096\n":         4096, // version 2
		"inactive_file 7":                      7,
		"total_inactive_file 0\n":              0,
		"":                                     -1,
		"xinactive_file 4096\n":                -1,
		"inactive_file -1\n":                   -1,
		"inactive_file\n":                      -1,
		"inactive_file 99999999999999999999\n": -1,
	} {
		got, err := parseInactiveFile([]byte(in))
		if want < 0 && err == nil || want >= 0 && (got != want || err != nil) {
			t.Errorf("%q: got %d, %v, want %d", in, got, err, want)
		}
	}
}

func TestChanges(t *testing.T) {
	was, err := parseCounters([]byte("low 0\nhigh 3\nmax 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	is, err := parseCounters([]byte("low 0\nhigh 5\nmax 1\noom 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]CounterChange{{"high", 3, 5}, {"oom", 0, 2}}, changedCounters(was, is)); d != "" {
		t.Errorf("-want +got:\n%s", d)
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

// FuzzParseCounters checks that printed counters are parsed to the same counters, and that there is
// no change between equal counters.
func FuzzParseCounters(f *testing.F) {
	f.Add([]byte("low 0\nhigh 3\nmax 1\noom 0\noom_kill 0\noom_group_kill 0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parseCounters(b)
		if err != nil {
			return
		}
		var out []byte
		for name, value := range list {
			out = fmt.Appendf(out, "%s %d\n", name, value)
		}
		again, err := parseCounters(out)
		if err != nil || !maps.Equal(list, again) {
			t.Errorf("%v became %v, %v", list, again, err)
		}
	})
}

// FuzzInactiveFile checks that the total takes precedence over the cgroup's own value, in any order
// of the lines.
func FuzzInactiveFile(f *testing.F) {
	f.Add([]byte("cache 1\ninactive_file 4096\ntotal_inactive_file 8192\n"), int64(5))
	f.Fuzz(func(t *testing.T, b []byte, n int64) {
		if got, err := parseInactiveFile(b); err == nil && got < 0 {
			t.Errorf("%d bytes", got)
		}
		if n < 0 || bytes.Contains(b, []byte("total_inactive_file")) {
			return
		}
		with := fmt.Appendf(nil, "%s\ntotal_inactive_file %d\nx 1", b, n)
		if got, err := parseInactiveFile(with); got != n || err != nil {
			t.Errorf("got %d, %v, want %d", got, err, n)
		}
	})
}
