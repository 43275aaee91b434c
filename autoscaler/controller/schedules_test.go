package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus/testutil"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ktesting "k8s.io/client-go/testing"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/gates"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

// written fails the test unless exactly these writes of scales were made.
func (s *stage) written(when string, want ...string) {
	s.t.Helper()
	cmptest.Equal(s.t, fmt.Sprintf("%s, written", when), want, s.fixture.written(), cmpopts.EquateEmpty())
}

// TestUnansweredWriteCounts checks that a write without an answer counts in policies, because it
// may have been made.
func TestUnansweredWriteCounts(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 8, 500)
		s.scaler("web", shrinks(0, 600))
		s.fixture.hangs = errors.New("context deadline exceeded")
		s.lead()
		s.pass(9 * time.Minute)
		s.written("within the period", "web 8 to 7")
		s.pass(2 * time.Minute)
		s.written("after it", "web 8 to 7", "web 7 to 6")
	})
}

// TestColdStartWithoutScale restarts both replicas, and the new one cannot read the scale at first.
// The changes in the status are not lost.
func TestColdStartWithoutScale(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 8, 500)
		s.scaler("web", shrinks(0, 600))
		a := s.lead()
		s.pass(time.Minute)
		s.written("before the end", "web 8 to 7")
		a.stop()
		s.fixture.now(func() { s.fixture.silent = errors.New("the API server is away") })
		s.lead()
		s.pass(2 * time.Minute)
		status := s.status("web")
		if got := condition(&status, autoscalingv2.AbleToScale); got != "False: FailedGetScale" || status.Memory == nil || len(status.Memory.Changes) != 1 || len(status.Decisions) != 1 {
			t.Errorf("got AbleToScale %q, the memory %+v and the decisions %+v; want the change of before", got, status.Memory, status.Decisions)
		}
		s.fixture.now(func() { s.fixture.silent = nil })
		s.pass(6 * time.Minute)
		s.written("within the period", "web 8 to 7")
		s.pass(3 * time.Minute)
		s.written("after it", "web 8 to 7", "web 7 to 6")
	})
}

// TestOutageHoldsForAWindow checks an outage of the API server that is longer than a window. After
// it nothing scales down before a whole window has passed, as after a restart, because the memory
// is no longer valid.
func TestOutageHoldsForAWindow(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 8, 4000)
		s.scaler("web", shrinks(300, 15))
		s.lead()
		s.pass(10 * time.Minute)
		s.fixture.now(func() { s.fixture.silent = errors.New("the API server is away") })
		s.pass(10 * time.Minute)
		s.fixture.now(func() { s.fixture.silent, s.fixture.load["web"] = nil, 500 })
		if got := s.shrunk(10 * time.Minute); got < 5*time.Minute-15*time.Second || got > 5*time.Minute+30*time.Second {
			t.Errorf("scaled down %v after the outage, want five minutes", got)
		}
	})
}

// TestAnotherTarget checks that the memory of one target is not used for another: nothing scales
// down before a whole window has passed, and the difference between the two counts is not a change.
// A new leader does the same before the status names the new target.
func TestAnotherTarget(t *testing.T) {
	for _, takesOver := range []bool{false, true} {
		t.Run(fmt.Sprintf("takesOver=%v", takesOver), func(t *testing.T) {
			staged(t, func(s *stage) {
				s.fixture.set("web", 2, 1000)
				s.fixture.set("api", 8, 500)
				s.scaler("web", shrinks(300, 600))
				a := s.lead()
				s.pass(10 * time.Minute)
				if takesOver {
					s.leader.Store(nil)
					a.stop()
				}
				s.edit("web", func(a *v1alpha1.Autoscaler) { a.Spec.ScaleTargetRef.Name = "api" })
				if takesOver {
					s.lead()
				}
				if got := s.shrunk(15 * time.Minute); got < 5*time.Minute || got > 5*time.Minute+30*time.Second {
					t.Errorf("scaled down after %v, want five minutes", got)
				}
				s.written("at last", "api 8 to 7")
				status := s.status("web")
				if got, want := status.Memory.Target, "deployments.apps api"; got != want {
					t.Errorf("the status remembers %q, want %q", got, want)
				}
				if got := status.Memory.Changes; len(got) != 1 || got[0].Replicas != -1 {
					t.Errorf("the status remembers the changes %+v, want the one", got)
				}
			})
		})
	}
}

// TestAnotherTargetAtZero checks that only a target that the autoscaler itself scaled to zero is
// scaled up from zero. A target that a person scaled to zero is not, even if the autoscaler scaled
// another target to zero before.
func TestAnotherTargetAtZero(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.outside = []int64{2000}
		s.fixture.set("web", 0, 0)
		s.fixture.set("api", 0, 0)
		s.scaler("web", func(a *v1alpha1.Autoscaler) {
			a.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: resource.NewQuantity(1, resource.DecimalSI)},
			}}}
			a.Status.ObservedGeneration = new(int64(1))
			a.Status.Memory = &v1alpha1.Memory{Target: "deployments.apps web"}
			a.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScaledToZero, Status: "True"}}
			a.Spec.ScaleTargetRef.Name = "api"
		})
		r := s.lead()
		s.pass(time.Minute)
		s.written("to the other")
		s.edit("web", func(a *v1alpha1.Autoscaler) {
			a.Status.Memory.Target = "deployments.apps web"
			a.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScaledToZero, Status: "True"}}
			a.Spec.ScaleTargetRef.Name = "web"
		})
		r.stop()
		s.lead()
		s.pass(time.Minute)
		if got := s.fixture.written(); len(got) == 0 || got[0] != "web 0 to 2" {
			t.Errorf("written to its own: %v, want at first web 0 to 2", got)
		}
	})
}

// TestRecreated checks that an object that is deleted and created again is a new object.
func TestRecreated(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 8, 500)
		s.scaler("web", shrinks(300, 15))
		s.lead()
		s.pass(4*time.Minute + 30*time.Second)
		s.remove("web")
		s.scaler("web", func(a *v1alpha1.Autoscaler) {
			shrinks(300, 15)(a)
			a.UID = "another"
		})
		if got := s.shrunk(10 * time.Minute); got < 5*time.Minute || got > 5*time.Minute+30*time.Second {
			t.Errorf("scaled down after %v, want five minutes", got)
		}
	})
}

// TestDeletedLeavesNothing checks that objects of both kinds are known by the pods that they scale, and
// that nothing is kept of a deleted object.
func TestDeletedLeavesNothing(t *testing.T) {
	staged(t, func(s *stage) {
		s.options.Shadow = true
		r := s.lead()
		hpas := s.client.AutoscalingV2().HorizontalPodAutoscalers("shop")
		for n := range 10 {
			name := fmt.Sprintf("web%d", n)
			s.fixture.set(name, 2, 2000)
			if n%2 == 0 {
				s.scaler(name, nil)
				continue
			}
			h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: halfACore(name)}
			if _, err := hpas.Create(t.Context(), h, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		s.pass(time.Minute)
		if got := len(r.Summaries()); got != 10 {
			t.Fatalf("got %d decisions, want one on each of 10 objects", got)
		}
		for name, want := range map[string][]string{"web0": {"autoscaler/shop/web0"}, "web1": {"shop/web1"}, "unscaled": nil} {
			pod := &cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: "a"}, Labels: map[string]string{"app": name}}
			if got := r.Autoscalers(pod); !slices.Equal(got, want) {
				t.Errorf("the pod of %s is scaled by %v, want %v", name, got, want)
			}
		}
		for n := range 10 {
			name := fmt.Sprintf("web%d", n)
			if n%2 == 0 {
				s.remove(name)
			} else if err := hpas.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		s.pass(time.Minute)
		if n := len(r.mu.entries) + len(r.catalog.mu.objects) + len(r.catalog.mu.byTarget) + len(r.catalog.mu.changes) + r.selectors.Len(); n != 0 {
			t.Errorf("%d things are kept of what is gone", n)
		}
	})
}

// TestKindIsMissing checks a cluster without the kind Autoscaler: weir acts on nothing and logs one
// line, and shadowing continues. When the kind is installed, weir begins to act.
func TestKindIsMissing(t *testing.T) {
	staged(t, func(s *stage) {
		s.options.Shadow = true
		s.fixture.set("web", 2, 2000)
		s.fixture.set("theirs", 2, 2000)
		s.scaler("web", nil)
		h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "theirs"}, Spec: halfACore("theirs")}
		if _, err := s.client.AutoscalingV2().HorizontalPodAutoscalers("shop").Create(t.Context(), h, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		missing := true
		s.scalers.fake.PrependReactor("list", v1alpha1.Resource, func(ktesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			return missing, nil, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.Group, Resource: v1alpha1.Resource}, "")
		})
		r := s.lead()
		s.pass(10 * time.Minute)
		s.written("without the kind")
		if got := s.logged.FilterMessageSnippet("Autoscalers cannot be read; until they can, weir does not scale").Len(); got != 1 {
			t.Errorf("got %d lines of it in the log, want 1", got)
		}
		want := "Autoscalers cannot be read: weir needs the kind Autoscaler and the rights list and watch on it (deploy/kustomize/components/autoscaler). weir's log has the error."
		if got := r.watcher.Unread(); got != want {
			t.Errorf("without the kind: got %q, want %q", got, want)
		}
		if _, ok := r.Explain(hpaKind, "shop", "theirs"); !ok {
			t.Error("the HorizontalPodAutoscaler is not shadowed meanwhile")
		}
		mu.Lock()
		missing = false
		mu.Unlock()
		s.pass(2 * time.Minute) // reflectors wait at most a minute
		s.written("with it", "web 2 to 4")
		if got := r.watcher.Unread(); got != "" {
			t.Errorf("with it: got %q, want nothing", got)
		}
		if got := s.logged.FilterMessage("Autoscalers can be read again").Len(); got != 1 {
			t.Errorf("got %d lines of that in the log, want 1", got)
		}
	})
}

// TestConflictComesAndGoes checks that an Autoscaler stops at once when a HorizontalPodAutoscaler
// takes its target. It continues when the HorizontalPodAutoscaler is deleted, with the changes made
// in between in its memory.
func TestConflictComesAndGoes(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 8, 500)
		s.scaler("web", shrinks(0, 600))
		s.lead()
		s.pass(time.Minute)
		s.written("alone", "web 8 to 7")
		h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "theirs"}, Spec: halfACore("web")}
		hpas := s.client.AutoscalingV2().HorizontalPodAutoscalers("shop")
		if _, err := hpas.Create(t.Context(), h, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.pass(15 * time.Minute)
		s.written("beside the other", "web 8 to 7")
		s.hasCondition("web", v1alpha1.ConditionConflict, "True: TargetIsTaken")
		s.fixture.now(func() { s.fixture.replicas["web"] = 6 }) // a change of the HorizontalPodAutoscaler
		s.pass(time.Minute)
		s.fixture.now(func() { s.fixture.blind = true }) // the end of the conflict does not depend on metrics
		if err := hpas.Delete(t.Context(), "theirs", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.pass(time.Minute)
		s.hasCondition("web", v1alpha1.ConditionConflict, "False: TargetIsOwn")
		s.fixture.now(func() { s.fixture.blind = false })
		s.pass(7 * time.Minute)
		s.written("within the period of the other's change", "web 8 to 7")
		s.pass(3 * time.Minute)
		s.written("after it", "web 8 to 7", "web 6 to 5")
	})
}

// TestTwins checks that, of two Autoscalers created in the same second, every replica prefers the
// first by name.
func TestTwins(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 2, 2000)
		for _, name := range []string{"c", "b", "a"} {
			s.scaler(name, func(a *v1alpha1.Autoscaler) { a.Spec.ScaleTargetRef.Name = "web" })
		}
		s.lead()
		s.pass(time.Minute)
		s.written("", "web 2 to 4")
		for name, want := range map[string]string{"a": "False: TargetIsOwn", "b": "True: TargetIsTaken", "c": "True: TargetIsTaken"} {
			s.hasCondition(name, v1alpha1.ConditionConflict, want)
		}
	})
}

// TestDeposedUnnoticed lets another replica lead, scale and end between two rounds of this one,
// which does not notice it. A policy counts the other replica's change.
func TestDeposedUnnoticed(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 8, 4000)
		s.scaler("web", shrinks(0, 600))
		a := s.lead()
		s.pass(5 * time.Minute)
		report, ok := a.Explain(v1alpha1.Kind, "shop", "web")
		if !ok {
			t.Fatal("no decision")
		}
		s.pass(time.Second - time.Since(report.At)%time.Second)
		s.fixture.use("web", 500)
		b := s.lead() // its first round begins at once
		s.pass(time.Second)
		s.written("by the other", "web 8 to 7")
		b.stop()
		s.leader.Store(a)
		s.pass(8 * time.Minute)
		s.written("within the period", "web 8 to 7")
	})
}

// TestStatusCannotBeWritten checks that a failed write of the status is logged once, and that the
// status is written as soon as possible.
func TestStatusCannotBeWritten(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 2, 2000)
		s.scaler("web", nil)
		var mu sync.Mutex
		conflicts, forbidden := 0, true
		s.scalers.fake.PrependReactor("update", v1alpha1.Resource, func(ktesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			resource := schema.GroupResource{Group: v1alpha1.Group, Resource: v1alpha1.Resource}
			if conflicts > 0 {
				conflicts--
				return true, nil, apierrors.NewConflict(resource, "web", errors.New("it was changed"))
			}
			return forbidden, nil, apierrors.NewForbidden(resource, "web", errors.New("no rights"))
		})
		r := s.lead()
		s.pass(5 * time.Minute)
		s.written("without a status", "web 2 to 4")
		if got := s.logged.FilterMessageSnippet("status cannot be written").Len(); got != 1 {
			t.Errorf("got %d lines of it in the log, want 1", got)
		}
		if got := testutil.ToFloat64(r.metrics.errors.WithLabelValues(failedStatus)); got < 10 {
			t.Errorf("got %v errors counted, want one a round", got)
		}
		mu.Lock()
		conflicts, forbidden = 2, false
		mu.Unlock()
		s.pass(15 * time.Second)
		status := s.status("web")
		if len(status.Decisions) != 1 || !status.Decisions[0].Written || status.LastScaleTime == nil || status.DesiredReplicas != 4 {
			t.Errorf("got the status %+v, want the change of five minutes ago in it", status)
		}
	})
}

// TestZeroIsOne checks that nothing is scaled to zero if weir cannot scale it up again.
func TestZeroIsOne(t *testing.T) {
	staged(t, func(s *stage) {
		settings := autoscaler.DefaultSettings()
		settings.ScaleToZero = false
		s.options.Settings = func() (*autoscaler.Settings, *gates.Gates) { return &settings, nil }
		s.fixture.set("web", 2, 0)
		s.scaler("web", func(a *v1alpha1.Autoscaler) {
			shrinks(0, 15)(a)
			a.Spec.MinReplicas = new(int32(0))
		})
		r := s.lead()
		s.pass(5 * time.Minute)
		s.written("", "web 2 to 1")
		report, _ := r.Explain(v1alpha1.Kind, "shop", "web")
		if !slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, "--autoscaler-scale-to-zero") }) {
			t.Errorf("got the notes %q, want one that says why not to 0", report.Notes)
		}
	})
}

// TestAverageOverZero checks that the status of a target at zero has no average: there is nothing to divide
// by. It has one again with the first replica.
func TestAverageOverZero(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.outside = []int64{0}
		s.fixture.set("web", 1, 0)
		spec := halfACore("web")
		spec.MinReplicas = new(int32(0))
		spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "queue"},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewQuantity(1, resource.DecimalSI)},
		}}}
		s.scaler("web", func(a *v1alpha1.Autoscaler) { a.Spec.HorizontalPodAutoscalerSpec = spec })
		s.lead()
		s.pass(6 * time.Minute)
		s.written("without load", "web 1 to 0")
		status := s.status("web")
		if got := status.CurrentMetrics[0].External.Current.AverageValue; got != nil || status.Targets != "queue: <unknown>/1 (avg)" {
			t.Errorf("at zero: got the average %v and the targets %q, want none", got, status.Targets)
		}
		s.fixture.now(func() { s.fixture.outside = []int64{1000} })
		s.pass(time.Minute)
		if got := s.status("web").Targets; got != "queue: 1/1 (avg)" {
			t.Errorf("with a replica: got the targets %q, want the average", got)
		}
	})
}

// TestPanicIsSurvived checks that a panic fails one round but does not end the process.
func TestPanicIsSurvived(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 2, 2000)
		s.scaler("web", nil)
		s.fixture.confuse = true
		r := s.lead()
		s.pass(time.Minute)
		if got := testutil.ToFloat64(r.metrics.errors.WithLabelValues(failedPanic)); got < 4 || got > 5 {
			t.Errorf("got %v panics, want one a round", got)
		}
		s.fixture.now(func() { s.fixture.confuse = false })
		s.pass(15 * time.Second)
		s.written("afterwards", "web 2 to 4")
	})
}

// TestGoneTargetIsNoConflict checks that an autoscaler without a target does not own pods that the
// selector of another now matches.
func TestGoneTargetIsNoConflict(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("old", 2, 2000)
		s.scaler("old", nil)
		r := s.lead()
		s.pass(time.Minute)
		if n := r.selectors.Len(); n != 1 {
			t.Fatalf("got %d selectors, want one", n)
		}
		s.fixture.now(func() { delete(s.fixture.replicas, "old") })
		s.pass(time.Minute)
		if n := r.selectors.Len(); n != 0 {
			t.Errorf("got %d selectors, want none", n)
		}
	})
}

// TestStatusIsBounded checks that a status stays small, even with a long error.
func TestStatusIsBounded(t *testing.T) {
	staged(t, func(s *stage) {
		s.fixture.set("web", 2, 2000)
		s.scaler("web", nil)
		s.fixture.silent = errors.New(strings.Repeat("away, ", 100_000))
		s.lead()
		s.pass(time.Minute)
		for _, c := range s.status("web").Conditions {
			if len(c.Message) > maxSentence {
				t.Errorf("condition %s has a message of %d bytes, want %d at most", c.Type, len(c.Message), maxSentence)
			}
		}
		for _, e := range s.events() {
			if len(e) > maxSentence+100 {
				t.Errorf("an Event has %d bytes", len(e))
			}
		}
	})
}

// TestRecord checks the records of a target: its count at first, after each change and at
// intervals, its autoscaler, and its end.
func TestRecord(t *testing.T) {
	staged(t, func(s *stage) {
		var mu sync.Mutex
		var lines []string
		s.options.Shadow = true
		s.options.RecordTarget = func(r *recording.ScaleTarget, _ time.Time) {
			mu.Lock()
			defer mu.Unlock()
			line := fmt.Sprintf("%s.%s %s/%s", r.Resource, r.Group, r.Namespace, r.Name)
			if r.Gone {
				line += " gone"
			} else {
				line += fmt.Sprintf(" %d of %d %s, %s: %t", r.Current, r.Replicas, r.Selector, r.HPA, strings.Contains(string(r.Spec), `"maxReplicas":20`))
			}
			lines = append(lines, line)
		}
		recorded := func(when string, want ...string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			cmptest.Equal(t, when, want, lines, cmpopts.EquateEmpty())
			lines = nil
		}
		s.fixture.set("web", 4, 2000)
		s.scaler("dry", func(a *v1alpha1.Autoscaler) {
			a.Spec.Mode, a.Spec.ScaleTargetRef.Name = v1alpha1.DryRun, "web"
		})
		s.lead()
		s.pass(time.Minute)
		recorded("nobody scales it", "deployments.apps shop/web 4 of 4 app=web, : false")
		hpas := s.client.AutoscalingV2().HorizontalPodAutoscalers("shop")
		h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "theirs"}, Spec: halfACore("web")}
		if _, err := hpas.Create(t.Context(), h, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.pass(time.Minute)
		recorded("an HPA does", "deployments.apps shop/web 4 of 4 app=web, theirs: true")
		s.fixture.set("web", 5, 2000)
		s.pass(time.Minute)
		recorded("another count", "deployments.apps shop/web 5 of 5 app=web, theirs: true")
		s.pass(5 * time.Minute)
		recorded("some time later", "deployments.apps shop/web 5 of 5 app=web, theirs: true")
		if err := hpas.Delete(t.Context(), "theirs", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.pass(time.Minute)
		recorded("the HPA is gone", "deployments.apps shop/web gone", "deployments.apps shop/web 5 of 5 app=web, : false")
		s.fixture.now(func() { delete(s.fixture.replicas, "web") })
		s.pass(time.Minute)
		recorded("so is the Deployment", "deployments.apps shop/web gone")
	})
}
