package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/autoscaler"
)

// rescales does what Kubernetes' controller does: it writes the scale first, then the status.
func (s *stage) rescales(name string, to int32) {
	s.t.Helper()
	hpas := s.client.AutoscalingV2().HorizontalPodAutoscalers("shop")
	h, err := hpas.Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	from := s.fixture.count(name)
	s.fixture.mu.Lock()
	s.fixture.replicas[name], s.fixture.grown[name] = to, growth{from, time.Now().Add(time.Second)}
	s.fixture.mu.Unlock()
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	h.Status.CurrentReplicas, h.Status.DesiredReplicas, h.Status.LastScaleTime = from, to, &now
	if _, err := hpas.UpdateStatus(s.t.Context(), h, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// hpaOfFour returns the HorizontalPodAutoscaler of web, which has four replicas.
func hpaOfFour() *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}, Spec: halfACore("web")}
	h.Status.DesiredReplicas, h.Status.CurrentReplicas = 4, 4
	return h
}

func TestShadow(t *testing.T) {
	staged(t, func(s *stage) {
		s.options = Options{Shadow: true}
		s.fixture.set("web", 4, 2000)
		h := hpaOfFour()
		hpas := s.client.AutoscalingV2().HorizontalPodAutoscalers("shop")
		if _, err := hpas.Create(t.Context(), h, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		r := s.lead()
		s.pass(6 * time.Minute)
		// The load doubles, and the controller is the first to decide.
		s.fixture.use("web", 4000)
		s.rescales("web", 8)
		s.pass(time.Minute)
		report, ok := r.Explain(hpaKind, "shop", "web")
		if !ok || report.OtherController == nil || !report.OtherController.Agrees || report.OtherController.Desired != 8 || report.Mode != "Shadow" {
			t.Fatalf("got %+v, want that the two agree on 8", report)
		}
		if got := testutil.ToFloat64(r.metrics.agreements.WithLabelValues("rescale")); got != 1 {
			t.Errorf("got %v agreements, want 1", got)
		}
		// The controller changes to a count that no metric requires.
		s.rescales("web", 12)
		s.pass(time.Minute)
		report, _ = r.Explain(hpaKind, "shop", "web")
		if report.OtherController.Agrees || !strings.Contains(report.OtherController.Difference, "differed: 12 to 12, weir 8, NotFollowed") {
			t.Errorf("got %+v, want that weir would go back to 8", report.OtherController)
		}
		if !slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, "differed: 8 to 12, weir 8, NoChange") }) {
			t.Errorf("got the notes %q, want that weir would have held 8", report.Notes)
		}
		if got := testutil.ToFloat64(r.metrics.differences.WithLabelValues(reasonNoChange)); got != 1 {
			t.Errorf("got %v differences, want 1", got)
		}
		if got := s.logged.FilterMessage("weir would have scaled otherwise").Len(); got != 2 {
			t.Errorf("got %d lines of it in the log, want one for each", got)
		}
		// Nothing was written.
		if s.fixture.written() != nil || s.events() != nil {
			t.Errorf("written: %v, Events: %v", s.fixture.written(), s.events())
		}
		for _, a := range s.client.Actions() {
			if a.GetSubresource() == "" && !slices.Contains([]string{"list", "watch", "create", "get"}, a.GetVerb()) {
				t.Errorf("weir did %s %s", a.GetVerb(), a.GetResource().Resource)
			}
		}
	})
}

// TestPendingChangesAreBounded checks that the changes of a controller are kept while the scale cannot be
// read, but only those that a window or a comparison still uses.
func TestPendingChangesAreBounded(t *testing.T) {
	staged(t, func(s *stage) {
		s.options = Options{Shadow: true}
		s.fixture.set("web", 4, 2000)
		h := hpaOfFour()
		if _, err := s.client.AutoscalingV2().HorizontalPodAutoscalers("shop").Create(t.Context(), h, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		r := s.lead()
		s.pass(time.Minute)
		s.fixture.now(func() { s.fixture.silent = errors.New("the API server is away") })
		for i := range int32(60) { // a change a minute; the longest window has five minutes
			s.rescales("web", 5+i%2)
			s.pass(time.Minute)
		}
		kept := r.mu.entries[objectKey{hpaKind, "shop", "web"}].pendingChanges
		if n := len(kept); n != 5 && n != 6 || time.Since(kept[0].At) > 7*time.Minute {
			t.Errorf("%d changes are kept, want those of the last five minutes: %+v", n, kept)
		}
	})
}

// TestShadowsWindowEndsLater checks that it is not a difference if a window ends a little later for
// weir than for the controller. By then the pods that the controller removed are gone, and the
// other pods have their load.
func TestShadowsWindowEndsLater(t *testing.T) {
	staged(t, func(s *stage) {
		s.options = Options{Shadow: true}
		s.fixture.set("web", 8, 4000)
		window := int32(60)
		spec := halfACore("web")
		spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &window}}
		autoscaler.Default(&spec)
		h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}, Spec: spec}
		h.Status.DesiredReplicas, h.Status.CurrentReplicas = 8, 8
		if _, err := s.client.AutoscalingV2().HorizontalPodAutoscalers("shop").Create(t.Context(), h, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		r := s.lead()
		s.pass(3 * time.Minute)
		report, ok := r.Explain(hpaKind, "shop", "web")
		if !ok || report.Desired != 8 {
			t.Fatalf("got %+v, want 8 desired", report)
		}
		s.fixture.use("web", 2000)
		s.pass(50*time.Second - time.Since(report.At)) // weir still remembers that 8 was recommended
		if report, _ = r.Explain(hpaKind, "shop", "web"); report.Desired != 8 || *report.Metrics[0].Proposal != 4 {
			t.Fatalf("got %+v, want that the window holds 8", report)
		}
		s.rescales("web", 4)
		s.pass(time.Minute)
		report, _ = r.Explain(hpaKind, "shop", "web")
		if !report.OtherController.Agrees || !slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, "agreed: 8 to 4, weir 4") }) {
			t.Errorf("got %+v, notes %q; want that the two agree on 4", report.OtherController, report.Notes)
		}
	})
}

func TestAsBefore(t *testing.T) {
	early, late := at(-100), at(5)
	earlier := []autoscaler.PodInput{{Name: "a", Started: early}, {Name: "b", Started: early, Terminating: true}, {Name: "d"}}
	now := []autoscaler.PodInput{
		{Name: "a", Started: early, Terminating: true}, {Name: "b", Started: early, Terminating: true},
		{Name: "c", Started: late}, {Name: "d"}, {Name: "e"}, {Name: "f", Started: early},
	}
	want := []autoscaler.PodInput{{Name: "a", Started: early}, {Name: "b", Started: early, Terminating: true}, {Name: "d"}, {Name: "f", Started: early}}
	if diff := cmp.Diff(want, podsBefore(now, earlier, at(0))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
