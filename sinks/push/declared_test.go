package push_test

import (
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/push"
)

// sentValues is a format that keeps what is sent of each metric, and the ends of series.
type sentValues struct {
	values map[metric.ID][]float64
	ends   map[metric.ID]int64 // in milliseconds since the Unix epoch
}

func (*sentValues) Describe(uid metric.PodUID, s *metric.Sample) (_ metric.PodUID, renamed bool) {
	return s.Instance.UID, uid != "" && uid != s.Instance.UID
}

func (v *sentValues) Add(p push.Point[metric.PodUID]) {
	if p.Ended {
		v.ends[p.Metric] = p.Time
	} else {
		v.values[p.Metric] = append(v.values[p.Metric], p.Value)
	}
}

func (*sentValues) Encode([]byte) []byte { return nil }

// A request that does not change is sent once a minute; at once if it changes, if it comes back and if
// the pod is replaced by one of the same name. What is measured is sent each time.
func TestDeclaredOnceAMinute(t *testing.T) {
	format := &sentValues{map[metric.ID][]float64{}, map[metric.ID]int64{}}
	s, err := push.New(push.Options{URL: "http://127.0.0.1:1/"}.WithDefaults(), "test", format)
	if err != nil {
		t.Fatal(err)
	}
	const interval = 15 * time.Second
	now := time.UnixMilli(1_800_000_000_000)
	// rounds writes n rounds of one pod. It returns how many times the memory request, the used share of
	// it and the memory in use were sent. A request of 0 means that the pod has none.
	rounds := func(n int, uid metric.PodUID, request float64) (times [3]int) {
		t.Helper()
		clear(format.values)
		for range n {
			now = now.Add(interval)
			b := &metric.Batch{Source: "kubelet", Node: "n1", Ended: now}
			pod := b.Add(metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: "web"})
			pod.Instance.UID = uid
			for _, g := range []metric.Group{metric.Memory, metric.Spec} {
				pod.Times[g], pod.Reasons[g] = now.UnixNano(), metric.Measured
			}
			pod.Values.Set(metric.MemoryWorkingSet, 1<<20)
			if pod.Values.Set(metric.MemoryUtilization, 0.5); request != 0 {
				pod.Values.Set(metric.MemoryRequest, request)
			}
			if err := s.Write(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		for i, id := range []metric.ID{metric.MemoryRequest, metric.MemoryUtilization, metric.MemoryWorkingSet} {
			times[i] = len(format.values[id])
		}
		return times
	}
	check := func(what string, got, want [3]int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: the request, the share that is used and the memory in use were sent %v times, want %v", what, got, want)
		}
	}
	check("the first round", rounds(1, "a", 2<<20), [3]int{1, 1, 1})
	check("ten minutes", rounds(40, "a", 2<<20), [3]int{10, 40, 40})
	check("another request", rounds(1, "a", 3<<20), [3]int{1, 1, 1})
	check("no request", rounds(1, "a", 0), [3]int{0, 1, 1})
	if at, want := format.ends[metric.MemoryRequest], now.UnixMilli()+1; at != want {
		t.Errorf("the series of the request ended at %d, want %d: not before a value that was read last", at, want)
	}
	check("the request is back", rounds(1, "a", 3<<20), [3]int{1, 1, 1})
	check("another pod", rounds(1, "b", 3<<20), [3]int{1, 1, 1})
}

// A metric that the only source of an entity no longer reports has ended. It does not matter that another source
// reported the entity once.
func TestMetricEndsAfterAnotherSourceHasGone(t *testing.T) {
	format := &sentValues{map[metric.ID][]float64{}, map[metric.ID]int64{}}
	s, err := push.New(push.Options{URL: "http://127.0.0.1:1/"}.WithDefaults(), "test", format)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_800_000_000_000)
	report := func(source string, reported ...metric.ID) {
		t.Helper()
		now = now.Add(time.Second)
		b := &metric.Batch{Source: source, Node: "n1", Ended: now}
		if len(reported) > 0 {
			pod := b.Add(metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: "web"})
			pod.Times[metric.Memory], pod.Reasons[metric.Memory] = now.UnixNano(), metric.Measured
			for _, id := range reported {
				pod.Values.Set(id, 1)
			}
		}
		if err := s.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	report("a", metric.MemoryWorkingSet, metric.MemoryCache)
	report("b", metric.MemoryWorkingSet)
	report("a", metric.MemoryWorkingSet)
	if len(format.ends) > 0 {
		t.Errorf("%v ended while two sources report the pod", format.ends)
	}
	report("b")
	report("a", metric.MemoryWorkingSet)
	if _, ended := format.ends[metric.MemoryCache]; !ended || len(format.ends) != 1 {
		t.Errorf("%v ended, want the cache only", format.ends)
	}
}
