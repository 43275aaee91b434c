package controller

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/test/cmptest"
	"github.com/weir-metrics/weir/test/transcript"
)

// TestNotedIsNeverBolder checks that the memory in a status never allows more than the memory
// itself. At every later time, the recommendations of any window and the sum of the changes in any
// period limit at least as much.
func TestNotedIsNeverBolder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	settings := autoscaler.DefaultSettings()
	for n := range 300 {
		down, up, period := int32(rnd.IntN(3600)), int32(rnd.IntN(600)), int32(1+rnd.IntN(1800))
		policies := []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: period}}
		spec := &autoscalingv2.HorizontalPodAutoscalerSpec{Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleUp:   &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &up, Policies: policies},
			ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &down, Policies: policies},
		}}
		now := transcript.Epoch
		var m autoscaler.Memory
		for ago := 3700.0; ago > 0; ago -= 5 + 20*rnd.Float64() {
			when := now.Add(-time.Duration(ago * float64(time.Second)))
			m.Recommendations = append(m.Recommendations, autoscaler.ReplicaRecommendation{Replicas: int32(rnd.IntN(50)), At: when})
			switch rnd.IntN(4) {
			case 0:
				m.Ups = append(m.Ups, autoscaler.ReplicaChange{Replicas: 1 + int32(rnd.IntN(4)), At: when})
			case 1:
				m.Downs = append(m.Downs, autoscaler.ReplicaChange{Replicas: 1 + int32(rnd.IntN(4)), At: when})
			}
		}
		status := statusMemory(m, spec, &settings, now)
		if len(status.Recommendations) > maxSlices || len(status.Changes) > maxChanges {
			t.Fatalf("seed %d: got %d slices and %d changes", n, len(status.Recommendations), len(status.Changes))
		}
		got := memoryFromStatus(status, now)
		for later := 0; later < 3600; later += 37 {
			then := now.Add(time.Duration(later) * time.Second)
			for _, w := range []int32{down, up} {
				low, high, any := extremes(m, then, w)
				gotLow, gotHigh, _ := extremes(got, then, w)
				if any && (gotLow > low || gotHigh < high) {
					t.Fatalf("seed %d, %ds later, window %ds: got %d to %d, want at least %d to %d", n, later, w, gotLow, gotHigh, low, high)
				}
			}
			if got, want := sum(got.Ups, then, period), sum(m.Ups, then, period); got < want {
				t.Fatalf("seed %d, %ds later: got %d replicas added in %ds, want at least %d", n, later, got, period, want)
			}
			if got, want := sum(got.Downs, then, period), sum(m.Downs, then, period); got < want {
				t.Fatalf("seed %d, %ds later: got %d replicas removed in %ds, want at least %d", n, later, got, period, want)
			}
		}
	}
}

func extremes(m autoscaler.Memory, now time.Time, window int32) (low, high int32, any bool) {
	for _, r := range m.Recommendations {
		if now.Sub(r.At) > time.Duration(window)*time.Second {
			continue
		}
		if !any {
			low, high = r.Replicas, r.Replicas
		}
		low, high, any = min(low, r.Replicas), max(high, r.Replicas), true
	}
	return low, high, any
}

func sum(all []autoscaler.ReplicaChange, now time.Time, period int32) (n int32) {
	for _, c := range all {
		if now.Sub(c.At) < time.Duration(period)*time.Second {
			n += c.Replicas
		}
	}
	return n
}

func TestNoted(t *testing.T) {
	settings := autoscaler.DefaultSettings()
	spec := &autoscalingv2.HorizontalPodAutoscalerSpec{}
	cmptest.Equal(t, "of nothing", &v1alpha1.Memory{}, statusMemory(autoscaler.Memory{}, spec, &settings, at(0)))
	cmptest.Equal(t, "nothing recalled", autoscaler.Memory{}, memoryFromStatus(nil, at(0)))
	m := autoscaler.Memory{Recommendations: []autoscaler.ReplicaRecommendation{
		{Replicas: 9, At: at(31)}, {Replicas: 3, At: at(1)}, {Replicas: 5, At: at(16).Add(time.Millisecond)}, {Replicas: 7, At: at(-400)},
	}}
	want := &v1alpha1.Memory{Recommendations: []v1alpha1.Recommendations{
		{Time: metav1.NewTime(at(17)), Min: 3, Max: 5}, {Time: metav1.NewTime(at(31)), Min: 9, Max: 9},
	}}
	cmptest.Equal(t, "noted", want, statusMemory(m, spec, &settings, at(40)))
}

// TestFutureIsNow checks that a clock that was a year ahead does not delay changes for a year.
func TestFutureIsNow(t *testing.T) {
	year := metav1.NewTime(at(365 * 24 * 3600))
	got := memoryFromStatus(&v1alpha1.Memory{
		Recommendations: []v1alpha1.Recommendations{{Time: metav1.NewTime(at(-5)), Min: 3, Max: 3}, {Time: year, Min: 4, Max: 5}},
		Changes:         []v1alpha1.Change{{Time: year, Replicas: 2}, {Time: metav1.NewTime(at(-7)), Replicas: -1}},
	}, at(0))
	want := autoscaler.Memory{
		Recommendations: []autoscaler.ReplicaRecommendation{{Replicas: 3, At: at(-5)}, {Replicas: 5, At: at(0)}, {Replicas: 4, At: at(0)}},
		Ups:             []autoscaler.ReplicaChange{{Replicas: 2, At: at(0)}},
		Downs:           []autoscaler.ReplicaChange{{Replicas: 1, At: at(-7)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWait(t *testing.T) {
	c := &Controller{opts: Options{Period: 15 * time.Second}}
	var sum time.Duration
	for n := range 1000 {
		k := objectKey{v1alpha1.Kind, "shop", string(rune('a'+n%26)) + string(rune('a'+n/26%26)) + string(rune('a'+n/676))}
		first := c.untilNext(k, at(0))
		if first <= 0 || first > 15*time.Second {
			t.Fatalf("%v: got %v, want within a period", k, first)
		}
		if again := c.untilNext(k, at(0).Add(first)); again != 15*time.Second {
			t.Fatalf("%v: got %v after its moment, want a period", k, again)
		}
		sum += first
	}
	if mean := sum / 1000; mean < 7*time.Second || mean > 8*time.Second {
		t.Errorf("got a mean of %v, want half a period", mean)
	}
}
