package reportbuilder

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/eviction/guard"
)

// FuzzOf makes a report of any summary. It checks that the report is the same after it is encoded
// and decoded, that its next pod is not a skipped one, and that New changes nothing.
func FuzzOf(f *testing.F) {
	f.Add([]byte(`{"node":{"memory":{"availableBytes":1,"workingSetBytes":1},"fs":{"availableBytes":5,"capacityBytes":0}}}`), 12.5)
	f.Add([]byte(`{"node":{"fs":{"availableBytes":18446744073709551615,"capacityBytes":18446744073709551615,"inodes":1,"inodesFree":9},"rlimit":{"maxpid":-1,"curproc":9}}}`), math.NaN())
	f.Add([]byte(`{"node":{"memory":{"time":"2100-01-01T00:00:00Z","availableBytes":1,"workingSetBytes":10000000000000000000}},"pods":[{"podRef":{"uid":"a"},"memory":{"workingSetBytes":18446744073709551615}}]}`), math.Inf(1))
	thresholds, err := eviction.Parse(&eviction.ThresholdConfig{
		EvictionHard: map[string]string{"memory.available": "10%", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "1Gi", "pid.available": "10%"},
		Pressure:     []string{"memory.pressure.some.avg10>20 until 10", "io.pressure.some.avg10>20"},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, summary []byte, stall float64) {
		s := &stats.Summary{}
		if json.Unmarshal(summary, s) != nil {
			return
		}
		psi := &stats.PSIStats{Some: stats.PSIData{Avg10: stall}}
		if s.Node.Memory == nil {
			s.Node.Memory = &stats.MemoryStats{}
		}
		s.Node.Memory.PSI, s.Node.IO = psi, &stats.IOStats{PSI: psi}
		in := &eviction.Input{
			Now: noon, Settings: &eviction.Settings{Thresholds: thresholds, LocalLimits: true}, Summary: s,
		}
		for _, name := range []string{"a", "b", "c"} {
			pod := &corev1.Pod{}
			pod.Namespace, pod.Name, pod.UID = "shop", name, types.UID(name)
			in.Pods = append(in.Pods, pod)
		}
		round := &guard.Round{Input: in, Decision: eviction.Decide(in), ReadAt: noon, DecidedAt: noon}
		c := Options{Node: "n1", Mode: "kill", Now: noon}
		r := New(round, nil, c)
		again(t, r)
		if diff := cmp.Diff(r, New(round, nil, c)); diff != "" {
			t.Errorf("told again it is another (-first +second):\n%s", diff)
		}
		for _, s := range r.Signals {
			if s.Ranking == nil {
				continue
			}
			for _, p := range s.Ranking.Pods {
				if p.String() == s.Ranking.Next && p.Skipped != "" {
					t.Errorf("%s: %s is next, and passed over: %s", s.Name, p.String(), p.Message)
				}
			}
		}
		var out bytes.Buffer
		if err := r.WriteText(&out, evictionreport.TextOptions{All: true}); err != nil || !strings.HasPrefix(out.String(), r.Summary) {
			t.Errorf("%v\n%s", err, &out)
		}
	})
}
