package cgroupfs_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/test/cmptest"
)

func TestParseUint(t *testing.T) {
	for text, want := range map[string]uint64{"0\n": 0, "987654321\n": 987654321, "max\n": math.MaxUint64, "9223372036854771712": 9223372036854771712} {
		if got, err := cgroupfs.ParseUint([]byte(text)); got != want || err != nil {
			t.Errorf("ParseUint(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "many\n", "-1\n", "1 2\n", "99999999999999999999\n"} {
		if got, err := cgroupfs.ParseUint([]byte(bad)); err == nil {
			t.Errorf("ParseUint(%q) = %d, want an error", bad, got)
		}
	}
}

func pairs(data string) map[string]uint64 {
	m := map[string]uint64{}
	for name, value := range cgroupfs.Pairs([]byte(data)) {
		m[string(name)] = value
	}
	return m
}

func TestPairs(t *testing.T) {
	got := pairs("MemTotal:       16 kB\nInactive(file):   1024 kB\nHugePages_Total:       3\npgfault 7\n\n" +
		"torn\nnegative -1\nfar 99999999999999999999\nfar_kB 18446744073709551615 kB\nodd 7 MB\nlong 7 kB and more\nlast 9")
	want := map[string]uint64{"MemTotal": 16384, "Inactive(file)": 1 << 20, "HugePages_Total": 3, "pgfault": 7, "last": 9}
	cmptest.Equal(t, "Pairs", want, got)
	for name := range cgroupfs.Pairs([]byte("a 1\nb 2\n")) {
		if string(name) != "a" {
			t.Errorf("%q came after the loop was left", name)
		}
		break
	}
}

func TestParseCPUTime(t *testing.T) {
	if v, err := cgroupfs.V2.ParseCPUTime([]byte("nr_periods 0\nusage_usec 1234567\nuser_usec 1\n")); v != 1234567000 || err != nil {
		t.Errorf("cpu.stat = %d, %v, want 1234567000", v, err)
	}
	for _, bad := range []string{"", "usage_usec x\n", "usage_usec 99999999999999999999\n", "usage_usec 18446744073709551615\n"} {
		if v, err := cgroupfs.V2.ParseCPUTime([]byte(bad)); err == nil {
			t.Errorf("cpu.stat %q = %d, want an error", bad, v)
		}
	}
}

func TestParseThreads(t *testing.T) {
	if got, err := cgroupfs.ParseThreads([]byte("1.36 3.49 4.53 2/3518 3715089\n")); got != 3518 || err != nil {
		t.Errorf("ParseThreads = %d, %v, want 3518", got, err)
	}
	for _, bad := range []string{"", "1.36 3.49 4.53 2/3518", "1.36 3.49 4.53 3518 3715089", "0 0 0 1/-5 3", "0 0 0 1/x 3"} {
		if got, err := cgroupfs.ParseThreads([]byte(bad)); err == nil {
			t.Errorf("ParseThreads(%q) = %d, want an error", bad, got)
		}
	}
}

func TestParsePressure(t *testing.T) {
	got, err := cgroupfs.ParsePressure([]byte("some avg10=0.08 avg60=1.09 avg300=33.03 total=1596581\nfull avg10=0.07 avg60=0.06 avg300=100.00 total=1120195\n"))
	want := stats.PSIStats{
		Some: stats.PSIData{Avg10: 0.08, Avg60: 1.09, Avg300: 33.03, Total: 1596581},
		Full: stats.PSIData{Avg10: 0.07, Avg60: 0.06, Avg300: 100, Total: 1120195},
	}
	if got != want || err != nil {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if got, err := cgroupfs.ParsePressure([]byte("some avg10=1.00 avg60=0.00 avg300=0.00 total=5\n")); err != nil || got.Full != (stats.PSIData{}) || got.Some.Total != 5 {
		t.Errorf("without a line for full: %+v, %v", got, err)
	}
	for _, bad := range []string{
		"", "full avg10=0.00 avg60=0.00 avg300=0.00 total=1\n", "some total=1\n", "some avg10=0.00 avg60=0.00 avg300=0.00\n",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=-1\n", "some avg10=NaN avg60=0.00 avg300=0.00 total=1\n",
		"some avg10=100.01 avg60=0.00 avg300=0.00 total=1\n", "some avg10=-1 avg60=0.00 avg300=0.00 total=1\n",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=18446744073709551615\n", // the total does not fit in nanoseconds
	} {
		if got, err := cgroupfs.ParsePressure([]byte(bad)); err == nil {
			t.Errorf("ParsePressure(%q) = %+v, want an error", bad, got)
		}
	}
}

func FuzzParseUint(f *testing.F) {
	f.Add("12\n")
	f.Add("max\n")
	f.Fuzz(func(t *testing.T, data string) {
		v, err := cgroupfs.ParseUint([]byte(data))
		if err != nil || strings.TrimSpace(data) == "max" {
			return
		}
		if again, err := cgroupfs.ParseUint(fmt.Appendln(nil, v)); again != v || err != nil {
			t.Errorf("ParseUint(%q) = %d, written again %d, %v", data, v, again, err)
		}
	})
}

// FuzzPairs checks that Pairs returns the same for a file in its plain form, and never returns a
// line twice.
func FuzzPairs(f *testing.F) {
	f.Add("MemTotal:       16384 kB\nHugePages_Total:       3\n")
	f.Add("cache 4096\ntotal_inactive_file 0\n")
	f.Fuzz(func(t *testing.T, data string) {
		got := pairs(data)
		if lines := strings.Count(data, "\n") + 1; len(got) > lines {
			t.Fatalf("%d pairs in %d lines", len(got), lines)
		}
		var plain strings.Builder
		for name, value := range got {
			fmt.Fprintf(&plain, "%s: %d\n", name, value)
		}
		cmptest.Equal(t, fmt.Sprintf("written plainly %q", plain.String()), got, pairs(plain.String()))
	})
}

func FuzzParseThreads(f *testing.F) {
	f.Add("1.36 3.49 4.53 2/3518 3715089\n")
	f.Fuzz(func(t *testing.T, data string) {
		n, err := cgroupfs.ParseThreads([]byte(data))
		if err != nil {
			return
		}
		if again, err := cgroupfs.ParseThreads(fmt.Appendf(nil, "0 0 0 1/%d 1\n", n)); n < 0 || again != n || err != nil {
			t.Errorf("ParseThreads(%q) = %d, written again %d, %v", data, n, again, err)
		}
	})
}

func FuzzParsePressure(f *testing.F) {
	f.Add("some avg10=0.00 avg60=0.21 avg300=0.77 total=58128358\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
	f.Fuzz(func(t *testing.T, data string) {
		p, err := cgroupfs.ParsePressure([]byte(data))
		if err != nil {
			return
		}
		var again strings.Builder
		for kind, s := range map[string]stats.PSIData{"some": p.Some, "full": p.Full} {
			for _, avg := range []float64{s.Avg10, s.Avg60, s.Avg300} {
				if !(avg >= 0 && avg <= 100) {
					t.Errorf("%q: %v is no percentage", data, avg)
				}
			}
			fmt.Fprintf(&again, "%s avg10=%v avg60=%v avg300=%v total=%d\n", kind, s.Avg10, s.Avg60, s.Avg300, s.Total)
		}
		if q, err := cgroupfs.ParsePressure([]byte(again.String())); q != p || err != nil {
			t.Errorf("ParsePressure(%q) = %+v, written again %+v, %v", data, p, q, err)
		}
	})
}
