package hpaevents

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	core "github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/autoscaler/watcher"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/background"
	"github.com/weir-metrics/weir/test/cmptest"
)

// hpa returns an autoscaler for CPU of the Deployment with the same name.
func hpa(name string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "1"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU},
			}},
		},
	}
}

// workloads implements Scales with a map: "Deployment shop/web": "app=web".
type workloads struct {
	selectors sync.Map
	asked     atomic.Int64
}

func (w *workloads) Get(_ context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (core.Scale, *scaleclient.Handle, error) {
	w.asked.Add(1)
	text, ok := w.selectors.Load(ref.Kind + " " + namespace + "/" + ref.Name)
	if !ok {
		return core.Scale{}, nil, apierrors.NewNotFound(schema.GroupResource{Resource: ref.Kind}, ref.Name)
	}
	return core.Scale{Selector: text.(string)}, nil, nil
}

// stage is a running Reporter with its surroundings.
type stage struct {
	*Reporter
	*fixture
	client   *fake.Clientset
	scales   *workloads
	leads    *atomic.Bool
	refuses  *atomic.Bool // the API server refuses Events
	registry *prometheus.Registry
	logged   *observer.ObservedLogs
}

// running runs a Reporter in a synctest bubble, calls do, and waits until the Reporter has ended.
func running(t *testing.T, do func(t *testing.T, s *stage), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.InfoLevel)
		s := &stage{
			fixture: newFixture(t), client: fake.NewClientset(objects...), registry: prometheus.NewRegistry(), logged: logged, leads: new(atomic.Bool),
			scales: &workloads{}, refuses: new(atomic.Bool),
		}
		s.leads.Store(true)
		s.scales.selectors.Store("Deployment shop/web", "app=web")
		s.client.PrependReactor("create", "events", func(ktesting.Action) (bool, runtime.Object, error) {
			return s.refuses.Load(), nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", fmt.Errorf("no"))
		})
		w, err := watcher.New(watcher.Options{Client: s.client, Logger: zap.New(core)})
		if err != nil {
			t.Fatal(err)
		}
		s.Reporter, err = New(Options{
			Watcher: w, Client: s.client, Scales: s.scales, Explainer: s.now, IsLeader: s.leads.Load, Instance: "weir-0",
			Registerer: s.registry, Logger: zap.New(core),
		})
		if err != nil {
			t.Fatal(err)
		}
		background.Run(t, w.Run)
		background.Run(t, s.Run)
		do(t, s)
	})
}

// pass lets time pass. Every pod is read every 15 s with the same result.
func (s *stage) pass(d time.Duration, reads map[metric.PodName]metric.Reason) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(15 * time.Second) { // the time of the bubble
		for pod, r := range reads {
			s.read(pod, r)
		}
		synctest.Wait()
	}
	synctest.Wait()
}

func (s *stage) events(t *testing.T) []eventsv1.Event {
	t.Helper()
	list, err := s.client.EventsV1().Events("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return list.Items
}

func TestEvents(t *testing.T) {
	running(t, func(t *testing.T, s *stage) {
		s.runs("web-1", "web-2")
		s.pass(2*time.Minute, map[metric.PodName]metric.Reason{"web-1": metric.Measured, "web-2": metric.Measured})
		if got := s.events(t); len(got) != 0 {
			t.Fatalf("while all is well: got %v", got)
		}

		began := time.Now()
		// The last known values are still served for a while after a failed read.
		s.pass(4*time.Minute, map[metric.PodName]metric.Reason{"web-1": metric.Measured, "web-2": metric.NodeTimeout})
		got := s.events(t)
		if len(got) != 1 {
			t.Fatalf("got %d Events, want one: %v", len(got), got)
		}
		first := got[0]
		if late := first.EventTime.Sub(began); late < 30*time.Second || late > 2*time.Minute {
			t.Errorf("the Event came after %v, want half a minute to two", late)
		}
		want := eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: eventName("web", first.EventTime.Time)},
			EventTime:  first.EventTime, ReportingController: "weir.dev/hpa-events", ReportingInstance: "weir-0",
			Action: "MeasurePods", Type: "Warning", Reason: MetricsMissing,
			Regarding: corev1.ObjectReference{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler", Namespace: "shop", Name: "web", UID: "1"},
			Note:      "1 of 2 pods has no CPU or memory. NodeTimeout (the node did not answer in time): web-2. Run: kubectl weir explain namespace shop",
		}
		got[0].TypeMeta, got[0].ManagedFields = metav1.TypeMeta{}, nil
		cmptest.Equal(t, "the Event", want, got[0])

		// The same text again increases the count.
		s.pass(5*time.Minute, map[metric.PodName]metric.Reason{"web-1": metric.Measured, "web-2": metric.NodeTimeout})
		if got = s.events(t); len(got) != 1 || got[0].Series == nil || got[0].Series.Count != 2 {
			t.Fatalf("said again: got %+v, want one Event with a count of 2", got)
		}
		if again := got[0].Series.LastObservedTime.Sub(first.EventTime.Time); again < 5*time.Minute || again > 6*time.Minute {
			t.Errorf("it was said again after %v, want five to six minutes", again)
		}

		// If the Event was deleted, a new one is created.
		if err := s.client.EventsV1().Events("shop").Delete(t.Context(), first.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.pass(6*time.Minute, map[metric.PodName]metric.Reason{"web-1": metric.Measured, "web-2": metric.NodeTimeout})
		if got = s.events(t); len(got) != 1 || got[0].Note != first.Note || got[0].Name == first.Name {
			t.Errorf("after it expired: got %v, want another of the same words", got)
		}

		s.pass(2*time.Minute, map[metric.PodName]metric.Reason{"web-1": metric.Measured, "web-2": metric.Measured})
		got = s.events(t)
		if len(got) != 2 || got[1].Reason != MetricsComplete || got[1].Type != "Normal" || got[1].Note != "All 2 pods have CPU and memory again." {
			t.Errorf("after it ended: got %v", got)
		}
		err := testutil.GatherAndCompare(s.registry, strings.NewReader(`
# HELP weir_hpa_events_failed_total Events that could not be written; they are tried again.
# TYPE weir_hpa_events_failed_total counter
weir_hpa_events_failed_total 0
# HELP weir_hpa_events_total Events written on HorizontalPodAutoscalers, by reason.
# TYPE weir_hpa_events_total counter
weir_hpa_events_total{reason="MetricsComplete"} 1
weir_hpa_events_total{reason="MetricsMissing"} 3
# HELP weir_hpa_lookups_failed_total Failed lookups of the pods of workloads that HorizontalPodAutoscalers scale.
# TYPE weir_hpa_lookups_failed_total counter
weir_hpa_lookups_failed_total 0
# HELP weir_hpa_watched HorizontalPodAutoscalers that are watched.
# TYPE weir_hpa_watched gauge
weir_hpa_watched 1
`))
		if err != nil {
			t.Error(err)
		}
	}, hpa("web"))
}

// TestOnlyTheLeaderSpeaks checks that only the leader writes Events, and that a new leader can
// write one at once.
func TestOnlyTheLeaderSpeaks(t *testing.T) {
	running(t, func(t *testing.T, s *stage) {
		s.leads.Store(false)
		s.runs("web-1")
		s.pass(10*time.Minute, map[metric.PodName]metric.Reason{"web-1": metric.NodeUnauthorized})
		if got := s.events(t); len(got) != 0 {
			t.Errorf("of a follower: got %v", got)
		}
		s.leads.Store(true)
		s.pass(15*time.Second, map[metric.PodName]metric.Reason{"web-1": metric.NodeUnauthorized})
		if got := s.events(t); len(got) != 1 {
			t.Errorf("of the new leader: got %v, want one Event", got)
		}
	}, hpa("web"))
}

// TestRefusedEvents checks that a failed write is repeated, and that the log has one line about it.
func TestRefusedEvents(t *testing.T) {
	running(t, func(t *testing.T, s *stage) {
		s.refuses.Store(true)
		s.runs("web-1")
		s.pass(5*time.Minute, map[metric.PodName]metric.Reason{"web-1": metric.NodeTimeout})
		failures := testutil.ToFloat64(s.writesFailed)
		if failures < 3 || failures > 5 || s.logged.Len() != 1 {
			t.Errorf("got %v failures and %v, want about one a minute and one line", failures, s.logged.All())
		}
		s.refuses.Store(false)
		s.pass(90*time.Second, map[metric.PodName]metric.Reason{"web-1": metric.NodeTimeout})
		if got := s.events(t); len(got) != 1 || got[0].Series != nil {
			t.Errorf("when it may be written: got %v, want one Event", got)
		}
	}, hpa("web"))
}

func TestAutoscalers(t *testing.T) {
	running(t, func(t *testing.T, s *stage) {
		pod := &cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: "web-1"}, Labels: map[string]string{"app": "web", "tier": "front"}}
		want := func(when string, names ...string) {
			t.Helper()
			time.Sleep(time.Second) // the time of the bubble
			synctest.Wait()
			cmptest.Equal(t, when, names, s.Autoscalers(pod))
		}
		ctx, hpas := t.Context(), s.client.AutoscalingV2().HorizontalPodAutoscalers("shop")
		want("at first", "shop/web")
		if got := s.Autoscalers(nil); got != nil {
			t.Errorf("of no pod: got %v", got)
		}

		// An autoscaler for an external metric uses no metric of its pods. An autoscaler without a
		// workload has no pods.
		external := hpa("by-queue")
		external.UID, external.Spec.ScaleTargetRef.Name = "2", "web"
		external.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{}}}
		custom := hpa("by-requests")
		custom.UID, custom.Spec.ScaleTargetRef.Name = "3", "web"
		custom.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{}}}
		lost := hpa("lost")
		lost.UID = "4"
		for _, h := range []*autoscalingv2.HorizontalPodAutoscaler{external, custom, lost} {
			if _, err := hpas.Create(ctx, h, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		want("with others", "shop/by-requests", "shop/web")
		if got := s.scales.asked.Load(); got != 2 {
			t.Errorf("workloads were asked %d times, want once each", got)
		}

		// The selector is not read again after a change of the status, but after a change of the target.
		changed := hpa("web")
		changed.Status.CurrentReplicas = 7
		if _, err := hpas.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		want("after a change of status", "shop/by-requests", "shop/web")
		if got := s.scales.asked.Load(); got != 2 {
			t.Errorf("workloads were asked %d times, want no more than before", got)
		}
		changed.Spec.ScaleTargetRef.Name = "gone"
		if _, err := hpas.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		want("after it has another target", "shop/by-requests")
		if err := hpas.Delete(ctx, "by-requests", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		want("after it is deleted")

		// The missing workload is created.
		s.scales.selectors.Store("Deployment shop/lost", "tier in (front,middle)")
		time.Sleep(time.Minute)
		want("when the workload is there", "shop/lost")
	}, hpa("web"))
}

func TestOptionsAreNeeded(t *testing.T) {
	if _, err := New(Options{}); err == nil || err.Error() != "the Events on autoscalers need a watcher, a client, scales and the state to explain" {
		t.Errorf("got %v", err)
	}
}
