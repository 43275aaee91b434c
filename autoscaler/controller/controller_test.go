package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/autoscaler/watcher"
	"github.com/weir-metrics/weir/test/cmptest"
)

func TestActiveScales(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 2, 2000) // each pod uses a core; the target is half a core
		s.scaler("web", nil)
		r := s.lead()
		s.pass(time.Minute)
		s.written("written", "web 2 to 4")
		status := s.status("web")
		if status.CurrentReplicas != 4 || status.DesiredReplicas != 4 || status.LastScaleTime == nil || *status.ObservedGeneration != 1 {
			t.Errorf("got %d and %d replicas, last scaled at %v, generation %d; want 4 and 4, a time, 1", status.CurrentReplicas, status.DesiredReplicas, status.LastScaleTime, *status.ObservedGeneration)
		}
		s.hasCondition("web", v1alpha1.ConditionConflict, "False: TargetIsOwn")
		if got, want := status.Targets, "cpu: 50%/50%"; got != want {
			t.Errorf("targets: got %q, want %q", got, want)
		}
		if n := len(status.Decisions); n != 1 || !status.Decisions[0].Written || status.Decisions[0].Desired != 4 || *status.Decisions[0].Recommendation != 4 || status.Decisions[0].Reason == "" {
			t.Errorf("got the decisions %+v, want one that was written", status.Decisions)
		}
		want := []string{"web SuccessfulRescale: New size: 4; reason: cpu resource utilization (percentage of request) above target"}
		cmptest.Equal(t, "Events", want, s.events())
		if _, ok := r.Explain(v1alpha1.Kind, "shop", "web"); !ok {
			t.Error("Explain of shop/web: got no report, want one")
		}
		if _, ok := r.Explain(v1alpha1.Kind, "shop", "other"); ok {
			t.Error("Explain of shop/other: got a report, want none")
		}
		all := r.Summaries()
		if len(all) != 1 || all[0].Name != "web" || all[0].Current != 4 || all[0].Mode != decisionreport.Active || all[0].Summary == "" {
			t.Errorf("got the summaries %+v, want one of web, Active, with 4 replicas and a sentence", all)
		}
		memory, ok := r.Memory(v1alpha1.Kind, "shop", "web")
		if !ok || len(memory.Ups) != 0 || len(memory.Recommendations) < 4 || memory.Recommendations[0].Replicas != 2 {
			t.Errorf("got the memory %+v, want the first count and a recommendation for each decision", memory)
		}
		if _, ok := r.Memory(v1alpha1.Kind, "shop", "other"); ok {
			t.Error("Memory of shop/other: got one, want none")
		}
	})
}

// TestStatusIsWrittenRarely checks that a status in which only values changed is written at most
// once a minute, and an unchanged status not at all.
func TestStatusIsWrittenRarely(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 4, 2000)
		s.scaler("web", nil)
		s.lead()
		s.pass(time.Minute)
		if got := s.statusWrites(); got != 1 {
			t.Errorf("at first: got %d writes, want 1", got)
		}
		s.pass(10 * time.Minute)
		if got := s.statusWrites(); got != 1 {
			t.Errorf("while all stays the same: got %d writes, want no more", got)
		}
		for i := range 40 {
			s.fixture.use("web", 2000+int64(i%3)*20)
			s.pass(15 * time.Second)
		}
		if got := s.statusWrites(); got < 9 || got > 11 {
			t.Errorf("while a value changed for ten minutes: got %d writes, want one a minute", got)
		}
	})
}

func TestDryRunWritesNoScale(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 2, 2000)
		s.scaler("web", func(a *v1alpha1.Autoscaler) { a.Spec.Mode = v1alpha1.DryRun })
		// Another controller has the target, so a dry run is allowed.
		if err := s.client.Tracker().Add(&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: halfACore("web")}); err != nil {
			t.Fatal(err)
		}
		s.lead()
		s.pass(10 * time.Minute)
		if got := s.fixture.written(); got != nil {
			t.Errorf("a dry run wrote %v", got)
		}
		status := s.status("web")
		if status.CurrentReplicas != 2 || status.DesiredReplicas != 4 || status.LastScaleTime != nil || status.Decisions[0].Written {
			t.Errorf("got the status %+v, want that it would ask for 4", status)
		}
		s.hasCondition("web", v1alpha1.ConditionDryRun, "True: ModeIsDryRun")
		s.hasCondition("web", v1alpha1.ConditionConflict, "")
		if got := s.events(); got != nil {
			t.Errorf("got Events %v", got)
		}
	})
}

func TestConflict(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 2, 2000)
		s.fixture.set("api", 2, 2000)
		s.scaler("web", nil)
		s.pass(time.Second)
		s.scaler("api", nil)
		s.pass(time.Second)
		s.scaler("younger", func(a *v1alpha1.Autoscaler) { a.Spec.ScaleTargetRef.Name = "api" })
		hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "theirs", CreationTimestamp: metav1.Now()}, Spec: halfACore("web")}
		hpa.Spec.ScaleTargetRef.APIVersion = "apps/v1beta2" // the same kind in another API version
		hpas := s.client.AutoscalingV2().HorizontalPodAutoscalers("shop")
		if _, err := hpas.Create(t.Context(), hpa, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.lead()
		s.pass(time.Minute)
		s.written("written", "api 2 to 4")
		for name, want := range map[string]string{"web": "True: TargetIsTaken", "api": "False: TargetIsOwn", "younger": "True: TargetIsTaken"} {
			s.hasCondition(name, v1alpha1.ConditionConflict, want)
		}
		want := []string{
			"api SuccessfulRescale: New size: 4; reason: cpu resource utilization (percentage of request) above target",
			"web Conflict: HorizontalPodAutoscaler theirs scales deployments.apps shop/web. Delete it, and this Autoscaler takes over; or set mode: DryRun.",
			"younger Conflict: Autoscaler api, which is older, scales deployments.apps shop/api. Delete one of the two, or set mode: DryRun in one.",
		}
		cmptest.Equal(t, "Events", want, s.events())
		if err := hpas.Delete(t.Context(), "theirs", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.pass(time.Minute)
		s.written("written after the HorizontalPodAutoscaler was deleted", "api 2 to 4", "web 2 to 4")
	})
}

// shrinks makes behavior scale down after a window, by at most one pod in a period.
func shrinks(window, period int32) func(*v1alpha1.Autoscaler) {
	return func(a *v1alpha1.Autoscaler) {
		a.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{
			StabilizationWindowSeconds: &window,
			Policies:                   []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: period}},
		}}
	}
}

// shrunk waits for the first write and returns the time until it.
func (s *stage) shrunk(limit time.Duration) time.Duration {
	began, before := time.Now(), len(s.fixture.written())
	for time.Since(began) < limit {
		s.pass(time.Second)
		if len(s.fixture.written()) > before {
			return time.Since(began)
		}
	}
	return limit
}

// TestStandbyTakesOver ends the leader while a stabilization window delays a change. The new leader
// has the same memory, and scales down at the same time as the old one would have.
func TestStandbyTakesOver(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 8, 4000)
		s.scaler("web", shrinks(300, 15))
		a, b := s.lead(), s.start()
		s.pass(10 * time.Minute)
		s.fixture.use("web", 500)
		s.pass(2 * time.Minute)
		s.leader.Store(nil)
		a.stop()
		s.pass(15 * time.Second)
		s.leader.Store(b)
		got := s.shrunk(10 * time.Minute)
		// The window ends five minutes after the last high recommendation. 2m15s have already passed.
		if least, most := 150*time.Second, 165*time.Second+15*time.Second; got < least || got > most {
			t.Errorf("the standby scaled down after %v, want %v to %v", got, least, most)
		}
		if got, want := s.fixture.written()[0], "web 8 to 7"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestColdStartHoldsForAWindow restarts all replicas within a window. Nothing scales down before
// the new replica has observed a whole window.
func TestColdStartHoldsForAWindow(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 8, 4000)
		s.scaler("web", shrinks(300, 15))
		a := s.lead()
		s.pass(10 * time.Minute)
		s.fixture.use("web", 500)
		s.pass(4 * time.Minute)
		a.stop()
		s.lead()
		if got := s.shrunk(10 * time.Minute); got < 5*time.Minute || got > 5*time.Minute+30*time.Second {
			t.Errorf("the new replica scaled down after %v, want five minutes", got)
		}
	})
}

// TestPoliciesOutliveTheLeader checks that a policy counts a change of a leader that has ended:
// with and without a running standby, and with and without the change in the status.
func TestPoliciesOutliveTheLeader(t *testing.T) {
	for _, warm := range []bool{true, false} {
		for _, mute := range []bool{true, false} {
			t.Run(fmt.Sprintf("warm=%v mute=%v", warm, mute), func(t *testing.T) {
				staged(t, func(s *stage) {
					s.fixture.set("web", 8, 4000)
					s.scaler("web", shrinks(0, 600))
					a := s.lead()
					var b *replica
					if warm {
						b = s.start()
					}
					s.pass(5 * time.Minute)
					s.fixture.use("web", 500)
					if mute {
						// The leader ends between the two writes.
						s.leader.Store(nil)
						a.stop()
						if err := s.fixture.Update(t.Context(), mustHandle(t, s), 7); err != nil {
							t.Fatal(err)
						}
					} else {
						s.pass(30 * time.Second)
						s.leader.Store(nil)
						a.stop()
					}
					s.written("before the end", "web 8 to 7")
					if !warm {
						b = s.start()
					}
					s.leader.Store(b)
					s.pass(9 * time.Minute)
					s.written("within the period", "web 8 to 7")
					s.pass(2 * time.Minute)
					s.written("after it", "web 8 to 7", "web 7 to 6")
				})
			})
		}
	}
}

// TestPoliciesOutliveALeaderWithoutStatus checks that a standby counts the change that it saw, if the
// leader could write no status.
func TestPoliciesOutliveALeaderWithoutStatus(t *testing.T) {
	staged(t, func(s *stage) {
		s.scalers.fake.PrependReactor("update", v1alpha1.Resource, func(ktesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("the API server refuses")
		})
		s.fixture.set("web", 8, 4000)
		s.scaler("web", shrinks(0, 600))
		a, b := s.lead(), s.start()
		s.pass(5 * time.Minute)
		s.fixture.use("web", 500)
		s.pass(time.Minute)
		s.leader.Store(b)
		a.stop()
		s.pass(8 * time.Minute)
		s.written("within the period", "web 8 to 7")
		s.pass(2 * time.Minute)
		s.written("after it", "web 8 to 7", "web 7 to 6")
	})
}

// TestFollowersWriteNothing checks that a replica that is not the leader writes nothing.
func TestFollowersWriteNothing(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 2, 2000)
		s.scaler("web", nil)
		r := s.start()
		s.pass(5 * time.Minute)
		if got := s.fixture.written(); got != nil || s.statusWrites() != 0 || s.events() != nil {
			t.Errorf("a follower wrote %v, %d statuses and the Events %v", got, s.statusWrites(), s.events())
		}
		if report, ok := r.Explain(v1alpha1.Kind, "shop", "web"); !ok || report.Desired != 4 {
			t.Errorf("it explains %v, want that 4 are needed", report)
		}
	})
}

// TestFailures checks that failures are reported and tried again.
func TestFailures(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 2, 2000)
		s.fixture.refuse = errors.New("the API server is full")
		s.scaler("web", nil)
		s.lead()
		s.pass(20 * time.Second)
		s.hasCondition("web", autoscalingv2.AbleToScale, "False: FailedUpdateScale")
		if got := s.events(); !slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, "web FailedRescale: New size: 4; ") }) {
			t.Errorf("got the Events %v", got)
		}
		s.fixture.now(func() { s.fixture.refuse, s.fixture.blind = nil, true })
		s.pass(20 * time.Second)
		s.hasCondition("web", autoscalingv2.ScalingActive, "False: FailedGetResourceMetric")
		s.fixture.now(func() { s.fixture.blind, s.fixture.silent = false, errors.New("the API server is away") })
		s.pass(20 * time.Second)
		s.hasCondition("web", autoscalingv2.AbleToScale, "False: FailedGetScale")
		s.fixture.now(func() { s.fixture.silent = nil })
		s.pass(20 * time.Second)
		s.written("in the end", "web 2 to 4")
	})
}

func TestOptions(t *testing.T) {
	f := func(o Options, want string) {
		t.Helper()
		if _, err := New(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	w := newFixture()
	watch, err := watcher.New(watcher.Options{Client: fake.NewClientset()})
	if err != nil {
		t.Fatal(err)
	}
	f(Options{Act: true}, "autoscaling needs a watcher, a client, scales and metrics")
	f(Options{Watcher: watch, Client: fake.NewClientset(), Scales: w, Metrics: w}, "autoscaling has nothing to do: neither to act on Autoscalers nor to shadow HorizontalPodAutoscalers")
	f(Options{Act: true, Watcher: watch, Client: fake.NewClientset(), Scales: w, Metrics: w}, "autoscaling needs a client of Autoscalers")
}
