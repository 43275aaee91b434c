package push_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/push"
)

// running is a format that knows which pods have a series that has not ended.
type running map[metric.PodName]bool

func (running) Describe(struct{}, *metric.Sample) (_ struct{}, renamed bool) {
	return struct{}{}, false
}

func (r running) Add(p push.Point[struct{}]) {
	if r[p.Entity.Pod] = !p.Ended; p.Ended {
		delete(r, p.Entity.Pod)
	}
}

func (running) Encode([]byte) []byte { return nil }

// A series runs as long as one of two sources reports its pod, in whatever place, and also if the pod is rejected in
// other samples or comes twice.
func TestSeriesEndWithTheLastReport(t *testing.T) {
	r := running{}
	s, err := push.New(push.Options{URL: "http://127.0.0.1:1/"}, "test", r)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	last := [2]map[metric.PodName]bool{{}, {}}
	for round := range 2000 {
		k := random.IntN(len(last))
		b := &metric.Batch{Source: fmt.Sprint("s", k), Node: "n1", Ended: time.UnixMilli(int64(1000 * (round + 1)))}
		last[k] = map[metric.PodName]bool{}
		places := random.Perm(12)
		if random.IntN(2) == 0 {
			places = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
		}
		for _, place := range places {
			pod := metric.PodName(fmt.Sprint("p", place%10)) // two come twice
			if random.IntN(6) == 0 {
				continue
			}
			sample := b.Add(metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: pod})
			sample.Values.Set(metric.MemoryWorkingSet, 1)
			sample.Times[metric.Memory], sample.Reasons[metric.Memory] = b.Ended.UnixNano(), metric.Measured
			if random.IntN(8) == 0 {
				sample.Reject(metric.Discontinuous)
				continue
			}
			last[k][pod] = true
		}
		if err := s.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		want := maps.Clone(last[0])
		maps.Copy(want, last[1])
		if diff := cmp.Diff(want, map[metric.PodName]bool(r)); diff != "" || s.Remembered() != len(want) {
			t.Fatalf("round %d: %d entities, series that run (-want +got):\n%s", round, s.Remembered(), diff)
		}
	}
	for k := range last {
		s.Forget(fmt.Sprint("s", k), "n1")
	}
	if len(r) > 0 || s.Remembered() > 0 {
		t.Errorf("after the sources have gone, %v run, and %d entities are remembered", r, s.Remembered())
	}
}
