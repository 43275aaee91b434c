package identity_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/identity"
)

// later returns the time d after t, of which the wall clock shows step more. Only the fields of a
// time.Time can hold that: no function of package time steps a clock.
func later(t time.Time, d, step time.Duration) time.Time {
	t = t.Add(d + step)
	fields := (*struct {
		wall uint64
		ext  int64 // of a time with a monotonic reading: that reading
		loc  *time.Location
	})(unsafe.Pointer(&t))
	fields.ext -= int64(step)
	return t
}

// A pod that began seconds ago is not one that the API server would know, also if our wall clock, by
// which the facts have their time, stepped since the first answer.
func TestOurClockSteps(t *testing.T) {
	web := cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: "web-0"}, UID: "old", Node: "n1", Phase: cluster.Running}
	for _, step := range []time.Duration{0, time.Hour, -time.Hour} {
		epoch := time.Now()
		if got := later(epoch, time.Minute, step); got.Sub(epoch) != time.Minute || got.Round(0).Sub(epoch.Round(0)) != time.Minute+step {
			t.Fatal("later does not know the fields of a time.Time")
		}
		s := identity.New()
		read := func(d, step time.Duration, uid metric.PodUID, began time.Duration) *metric.Sample {
			now := later(epoch, d, step)
			known := web
			known.KnownAt, known.Started = epoch.Add(-time.Hour), epoch.Add(-time.Hour)
			facts := (*cluster.Facts)(nil).With(cluster.FactsChange{Synced: true, At: now, Nodes: []*cluster.Node{{Name: "n1", Ready: true}}, Pods: []*cluster.Pod{&known}})
			node := epoch.Add(d).UnixNano() // its clock does not step
			b := &metric.Batch{Node: "n1", Interval: 15 * time.Second, Resolution: time.Millisecond, Began: now, Ended: now, NodeTime: node}
			sample := b.Add(metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: "web-0"})
			sample.Instance.UID, sample.Instance.Start, sample.Instance.Origin = uid, epoch.Add(began).UnixNano(), metric.StartReported
			sample.Values.Set(metric.CPUUsage, 1e9+float64(d))
			sample.Times[metric.CPU] = node
			s.Process(facts, b, now)
			return &b.Samples[0]
		}
		read(0, 0, "old", -time.Hour)
		if got := read(5*time.Minute, step, "new", 5*time.Minute-8*time.Second); got.Rejected() {
			t.Errorf("a step of %v: a pod that began 8 s ago is rejected: %v", step, got.Reasons[metric.CPU])
		}
		if got := read(10*time.Minute, step, "new", 5*time.Minute-8*time.Second); got.Reasons[metric.CPU] != metric.OldPod {
			t.Errorf("a step of %v: five minutes later it is %v, want OldPod", step, got.Reasons[metric.CPU])
		}
	}
}
