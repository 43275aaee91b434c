package death_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/cluster/eventlog/event"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/metric"
)

// kubelet writes Events on a container as a kubelet does: by client-go, which drops most of them if there are many.
type kubelet struct {
	clock      *testclock.FakeClock
	correlator *record.EventCorrelator
	events     map[string]event.Event // by message, as the API server has them
	dropped    int
}

func (k *kubelet) write(t *testing.T, reason, message string) {
	t.Helper()
	now := k.clock.Now()
	result, err := k.correlator.EventCorrelate(&corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-1", UID: "u1", FieldPath: "spec.containers{app}"},
		Reason:         reason, Message: message, Type: corev1.EventTypeNormal, Count: 1,
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now), Source: corev1.EventSource{Component: "kubelet", Host: "n1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if result.Skip {
		k.dropped++
		return
	}
	e := result.Event
	k.correlator.UpdateState(e)
	seen := append(k.events[message].Seen, now)
	k.events[message] = event.Event{
		Source: "kubelet", Part: "app", ObjectUID: "u1", Reason: e.Reason, Message: e.Message, Count: int(e.Count), First: e.FirstTimestamp.Time, Last: e.LastTimestamp.Time, Seen: seen,
	}
}

// TestDroppedEvents checks the answers about a container whose liveness probe fails for two hours, and about one that
// ends by itself as often. The kubelet drops most of their Events.
func TestDroppedEvents(t *testing.T) {
	for _, want := range []struct {
		stopped bool
		cause   death.Cause
	}{{true, death.LivenessProbe}, {false, death.Completed}} {
		clock := testclock.NewFakeClock(noon)
		k := &kubelet{clock: clock, correlator: record.NewEventCorrelator(clock), events: map[string]event.Event{}}
		backOff, runs := 10*time.Second, 0
		for clock.Since(noon) < 2*time.Hour {
			k.write(t, "Pulled", "Container image already present on machine")
			k.write(t, "Created", "Container created")
			k.write(t, "Started", "Container started")
			began := clock.Now()
			clock.Step(40 * time.Second)
			if want.stopped {
				k.write(t, "Killing", "Container app failed liveness probe, will be restarted")
			}
			clock.Step(time.Second)

			facts := death.Facts{
				End: &endlog.End{
					Pod: &cluster.Pod{
						PodRef: metric.PodRef{Namespace: "shop", Name: "web-1"}, UID: "u1", Node: "n1", Phase: cluster.Running,
						Containers: []cluster.Container{{Name: "app", State: cluster.StateWaiting}},
					},
					Container: "app", At: clock.Now(), Seen: clock.Now(), Node: endlog.NodeState{Known: true, Ready: true},
					Run: endlog.Run{ID: "c1", Started: began, Ended: clock.Now(), Reason: "Completed"},
				},
				EventsSince: clock.Now().Add(-time.Hour),
			}
			for _, e := range k.events {
				if e.Last.After(facts.EventsSince) {
					facts.Events = append(facts.Events, e)
				}
			}
			slices.SortFunc(facts.Events, func(a, b event.Event) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Message, b.Message)) })
			runs++
			if got := death.Decide(facts); got.Cause != want.cause || got.Confidence == death.Certain && k.dropped > 0 && !want.stopped {
				t.Errorf("run %d, after %v: got %s, %s, want %s: %v", runs, clock.Since(noon), got.Cause, got.Confidence, want.cause, got.Evidence)
			}
			clock.Step(backOff)
			backOff = min(2*backOff, 5*time.Minute)
		}
		if runs < 20 || k.dropped < runs {
			t.Errorf("%d runs and %d dropped Events, want more", runs, k.dropped)
		}
	}
}
