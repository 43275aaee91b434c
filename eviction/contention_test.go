package eviction

import (
	"math"
	"strings"
	"testing"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// TestContention follows the conditions of KEP-5394 through a rise and fall of the stalls.
func TestContention(t *testing.T) {
	settings := &Settings{
		Thresholds: []Threshold{{Signal: MemoryAvailable}},
		Contention: []ContentionThreshold{{NodeSystemMemoryContention, 40}, {NodeSystemDiskContention, 20}},
	}
	var state DecisionState
	f := func(when string, avg60, avg10 float64, reported bool, trend string) {
		t.Helper()
		s := &stats.Summary{}
		if avg60 >= 0 {
			s.Node.Memory = &stats.MemoryStats{PSI: &stats.PSIStats{Some: stats.PSIData{Avg10: avg10, Avg60: avg60}}}
		}
		d := Decide(&Input{Settings: settings, Summary: s, State: state})
		state = d.State
		if len(d.Contention) != 2 {
			t.Fatalf("%s: got %+v, want two conditions", when, d.Contention)
		}
		if c := d.Contention[0]; c.Reported != reported || c.Trend() != trend || c.Unknown != (avg60 < 0 || math.IsNaN(avg60)) {
			t.Errorf("%s: got %+v (%s), want %v, %s", when, c, c.Trend(), reported, trend)
		}
		if c := d.Contention[1]; c.Reported || !c.Unknown {
			t.Errorf("%s: got %+v without figures of I/O", when, c)
		}
	}
	f("at rest", 0, 0, false, "low")
	f("a short stall", 10, 90, false, "rising")
	f("a minute that is over", 50, 39.9, false, "falling")
	f("a minute that goes on", 40, 40, true, "high")
	f("falling", 45, 5, true, "falling")
	f("figures are missing", -1, 0, true, "falling")
	f("a figure cannot be right", math.NaN(), 0, true, "falling")
	f("over", 39.9, 80, false, "rising")
	f("again a minute that is over", 60, 10, false, "falling")
}

func TestParseContention(t *testing.T) {
	got, err := ParseContention(map[string]string{"memory": "40", "io": "12.5"})
	if err != nil || len(got) != 2 || got[0] != (ContentionThreshold{NodeSystemDiskContention, 12.5}) || got[1] != (ContentionThreshold{NodeSystemMemoryContention, 40}) {
		t.Errorf("got %v, %v", got, err)
	}
	bad := func(of, percent, want string) {
		t.Helper()
		if list, err := ParseContention(map[string]string{of: percent}); len(list) > 0 || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s=%s: got %v, %v, want an error with %q", of, percent, list, err, want)
		}
	}
	bad("cpu", "40", `"cpu" is neither memory nor io`)
	for _, percent := range []string{"0", "-1", "101", "NaN", "", "40%"} {
		bad("memory", percent, "not a percentage")
	}
}
