package eviction

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// captured returns a summary of a real kubelet, for a node with a dozen pods.
func captured(t testing.TB) []byte {
	t.Helper()
	f, err := os.Open("testdata/summary.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// eager returns an input with thresholds that are met very easily, for a node with pods u0 to u3.
func eager(t testing.TB) *Input {
	t.Helper()
	in := &Input{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Settings: &Settings{}}
	var err error
	if in.Settings.Thresholds, err = Parse(&ThresholdConfig{
		EvictionHard: map[string]string{"memory.available": "100.0%", "nodefs.available": "100.0%", "nodefs.inodesFree": "100.0%", "pid.available": "99%"},
		Pressure:     []string{"cpu.pressure.some.avg10>1"},
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		name := "u" + strconv.Itoa(i)
		in.Pods = append(in.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}})
	}
	return in
}

// Valid figures, by signal, that evict u1.
const (
	lowMemory = `{"node":{"memory":{"availableBytes":1,"workingSetBytes":9}},"pods":[{"podRef":{"uid":"u1"},"memory":{"workingSetBytes":5}}]}`
	lowDisk   = `{"node":{"fs":{"capacityBytes":10,"availableBytes":1}},"pods":[{"podRef":{"uid":"u1"},"containers":[{"name":"app","rootfs":{"usedBytes":1}}]}]}`
	lowPIDs   = `{"node":{"rlimit":{"maxpid":10,"curproc":9}},"pods":[{"podRef":{"uid":"u1"},"process_stats":{"process_count":5}}]}`
	busyCPU   = `{"node":{"cpu":{"psi":{"some":{"avg10":2}}}},"pods":[{"podRef":{"uid":"u1"},"cpu":{"usageNanoCores":5}}]}`
)

func TestSoundFiguresEvict(t *testing.T) {
	for signal, summary := range map[string]string{"memory.available": lowMemory, "nodefs.available": lowDisk, "pid.available": lowPIDs, "cpu.pressure.some.avg10": busyCPU} {
		var s stats.Summary
		if err := json.Unmarshal([]byte(summary), &s); err != nil {
			t.Fatal(err)
		}
		in := eager(t)
		in.Summary = &s
		kills := Decide(in).AfterReclaim(in.Summary, nil).Kills
		if len(kills) != 1 || kills[0].Pod.UID != "u1" || kills[0].Signal != signal || !kills[0].Hard {
			t.Errorf("%s: kills %+v, want u1", signal, kills)
			continue
		}
		sound(t, &s, &kills[0], in.Now)
	}
}

// FuzzStats decides on any summary: no pod is evicted unless the node's figure and the pod's own
// figure exist and can be right.
func FuzzStats(f *testing.F) {
	f.Add(captured(f))
	for _, summary := range []string{lowMemory, lowDisk, lowPIDs, busyCPU} {
		f.Add([]byte(summary))
	}
	f.Add([]byte(`{"node":{"memory":{"time":"2030-01-01T00:00:00Z","availableBytes":1,"workingSetBytes":9}},"pods":[{"podRef":{"uid":"u0"},"memory":{"workingSetBytes":5}}]}`))
	f.Add([]byte(`{"node":{"rlimit":{"maxpid":10,"curproc":9}},"pods":[{"podRef":{"uid":"u1"},"process_stats":{"process_count":18446744073709551615}}]}`))
	f.Add([]byte(`{"node":{"fs":{"capacityBytes":0,"availableBytes":0}},"pods":[{"podRef":{"uid":"u2"},"containers":[{"name":"app","rootfs":{"usedBytes":1}}]}]}`))
	in := eager(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var s stats.Summary
		if json.Unmarshal(b, &s) != nil {
			t.Skip()
		}
		in := *in
		in.Summary = &s
		d := Decide(&in)
		follows(t, &in, d)
		for _, k := range d.AfterReclaim(in.Summary, nil).Kills {
			sound(t, &s, &k, in.Now)
		}
	})
}

// sound checks that the figures for a kill exist and are possible, in the summary itself.
func sound(t *testing.T, s *stats.Summary, k *Kill, now time.Time) {
	t.Helper()
	var pod *stats.PodStats
	for i := range s.Pods {
		if s.Pods[i].PodRef.UID == k.Pod.UID {
			pod = &s.Pods[i]
		}
	}
	if pod == nil {
		t.Fatalf("kills %v, of which nothing is known", k.Pod)
	}
	amount := func(what string, list ...*uint64) {
		for _, n := range list {
			if n == nil || *n > math.MaxInt64 {
				t.Errorf("kills %v for %s, and %s is missing or absurd", k.Pod, k.Signal, what)
			}
		}
	}
	whole := func(available, capacity *uint64, at metav1.Time) {
		amount("the node's figure", available, capacity)
		if !t.Failed() && (*capacity == 0 || *available > *capacity) || at.Sub(now) > time.Second {
			t.Errorf("kills %v for %s of a node with %d of %d, at %v", k.Pod, k.Signal, *available, *capacity, at)
		}
	}
	switch n := &s.Node; Signal(k.Signal) {
	case MemoryAvailable:
		amount("the node's working set", n.Memory.WorkingSetBytes)
		whole(n.Memory.AvailableBytes, new(*n.Memory.AvailableBytes+*n.Memory.WorkingSetBytes), n.Memory.Time)
		amount("its working set", pod.Memory.WorkingSetBytes)
	case NodeFsAvailable:
		whole(n.Fs.AvailableBytes, n.Fs.CapacityBytes, n.Fs.Time)
	case NodeFsInodesFree:
		whole(n.Fs.InodesFree, n.Fs.Inodes, n.Fs.Time)
	case PIDAvailable:
		if *n.Rlimit.MaxPID <= 0 || *n.Rlimit.NumOfRunningProcesses < 0 || *n.Rlimit.NumOfRunningProcesses > *n.Rlimit.MaxPID {
			t.Errorf("kills %v for %+v", k.Pod, *n.Rlimit)
		}
		amount("its number of processes", pod.ProcessStats.ProcessCount)
	case "cpu.pressure.some.avg10":
		if stall := n.CPU.PSI.Some.Avg10; !(stall > 1 && stall <= 100) {
			t.Errorf("kills %v for a stall of %v", k.Pod, stall)
		}
		amount("its use of processors", pod.CPU.UsageNanoCores)
	}
}
