//go:build e2e

package guard

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/notify"
	"github.com/weir-metrics/weir/sources/host/vitals"
	"github.com/weir-metrics/weir/test/background"
	"github.com/weir-metrics/weir/test/memoryload"
)

const crossings = 200

var most = flag.Duration("most", 10*time.Millisecond, "how long half of the decisions may take; an emulated machine needs more")

// TestFromCrossingToDecision lets a process grow past a threshold two hundred times, in a memory
// cgroup that represents a node of 64 MiB. Each time the whole machine is read, and the decision
// names the pod to evict. The child begins to fill memory at any moment between two polls, as fast as it can. The test checks the median, because on a busy machine the slowest
// results only show the wait for a processor.
func TestFromCrossingToDecision(t *testing.T) {
	const capacity, figure = 64 * mib, 24 * mib
	dir := memoryload.MemoryCgroup(t)
	h := memoryload.Start(t, dir)
	machine, err := vitals.New(vitals.Options{Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := machine.Close(); err != nil {
			t.Error(err)
		}
	}()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "hog", UID: "uid-hog"}}
	read := func(ctx context.Context) (*stats.Summary, error) {
		s, err := machine.Read(ctx, vitals.Pods)
		if s == nil {
			return nil, err
		}
		s.Node.Memory = memoryOf(t, dir, capacity)
		s.Pods = append(s.Pods, stats.PodStats{PodRef: stats.PodReference{Namespace: "web", Name: "hog", UID: "uid-hog"}, Memory: s.Node.Memory})
		return s, nil
	}
	usage, err := os.Open(filepath.Join(dir, memoryload.Version().MemoryUsage))
	if err != nil {
		t.Fatal(err)
	}
	defer usage.Close()
	workingSet := func(eviction.Signal) (int64, error) {
		var buf [32]byte
		n, err := usage.ReadAt(buf[:], 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		return strconv.ParseInt(string(bytes.TrimSpace(buf[:n])), 10, 64)
	}
	thresholds, err := eviction.Parse(&eviction.ThresholdConfig{EvictionHard: map[string]string{"memory.available": strconv.Itoa(capacity - figure)}})
	if err != nil {
		t.Fatal(err)
	}
	observer, err := execute.New(execute.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Options{
		NodeReader: NodeReader{Read: read, WorkingSet: workingSet}, Executor: observer, Settings: &eviction.Settings{Thresholds: thresholds},
		Pods:   func() ([]*corev1.Pod, error) { return []*corev1.Pod{pod}, nil },
		Notify: notify.Options{MaxInterval: time.Hour, MinInterval: time.Microsecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	background.Run(t, g.Run)

	noneInForce := func(r *Round) bool { return r.Decision.Outcome == eviction.OutcomeNoneInForce }
	evicts := func(r *Round) bool { return r.Decision.Outcome == eviction.OutcomeEvict }
	if r := await(t, g, noneInForce); len(r.Watching) != 1 || len(r.Unwatched) > 0 {
		t.Fatalf("watching %v, not %v", r.Watching, r.Unwatched)
	}
	var all, reads []time.Duration
	began := time.Now()
	for range crossings {
		crossed := h.CrossFigure(dir, figure)
		r := await(t, g, evicts)
		if len(r.Decision.Kills) != 1 || r.Decision.Kills[0].Pod.Name != "hog" || !slices.ContainsFunc(r.Notice.Sources, func(s notify.NoticeSource) bool { return s.Crossing != nil }) {
			t.Fatalf("decided %+v on notice of %v, want the pod to go for a crossing", r.Decision.Kills, r.Notice)
		}
		all = append(all, memoryload.Clock()-time.Since(r.DecidedAt)-crossed)
		reads = append(reads, r.DecidedAt.Sub(r.Notice.At))
		h.Command("free")
		await(t, g, noneInForce)
	}
	slices.Sort(all)
	slices.Sort(reads)
	p50, p99 := all[crossings/2], all[crossings*99/100]
	polls := testutil.ToFloat64(g.metrics.polls)
	t.Logf("%.0f polls in %s", polls, time.Since(began).Round(time.Millisecond))
	t.Logf("%d crossings: to the decision p50 %s p99 %s, of which from the notice on p50 %s p99 %s", crossings, p50, p99, reads[crossings/2], reads[crossings*99/100])
	if p50 > *most {
		t.Errorf("p50 is %s, want %s at most", p50, *most)
	}
}

// memoryOf returns the usage of a cgroup as the memory of a node with that capacity.
func memoryOf(t *testing.T, dir string, capacity uint64) *stats.MemoryStats {
	b, err := os.ReadFile(filepath.Join(dir, memoryload.Version().MemoryUsage))
	if err != nil {
		t.Error(err)
		return nil
	}
	usage, err := strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil {
		t.Error(err)
		return nil
	}
	available := capacity - usage // the cgroup has no page cache
	return &stats.MemoryStats{Time: metav1.Now(), UsageBytes: &usage, WorkingSetBytes: &usage, AvailableBytes: &available}
}

// await returns the newest round as soon as wanted accepts it.
func await(t *testing.T, g *Guard, wanted func(*Round) bool) *Round {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); time.Now().Before(late); time.Sleep(50 * time.Microsecond) {
		if r := g.Last(); r != nil && !r.EndedAt.IsZero() && wanted(r) {
			return r
		}
	}
	r := g.Last()
	if r == nil {
		t.Fatal("no round")
	}
	t.Fatalf("the last round, on notice of %v, came to %v: %v, %+v", r.Notice, r.Decision.Outcome, r.Decision.Err, r.Decision.Observations[:1])
	return nil
}
