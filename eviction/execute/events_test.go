package execute

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

var _ EventRecorder = record.EventRecorder(nil)

type events []string

func (e *events) AnnotatedEventf(object runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	r := object.(*corev1.ObjectReference)
	*e = append(*e, fmt.Sprintf("%v %s %s %s/%s %s %s: ", time.Since(began), kind, r.Kind, r.Namespace, r.Name, r.UID, reason)+
		fmt.Sprintf(format, args...)+fmt.Sprint(annotations))
}

func TestAnEventOfAPodThatGoesComesBeforeItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got events
		s := newServer(pod("app"))
		executor(t, s, func(o *Options) { o.Recorder = &got }).Execute(t.Context(), decision(0, killOf("app", 1)))
		diff(t, "events", events{"0s Warning Pod web/app uid-app Evicted: The node was low on resource: memory. map[starved_resource:memory]"}, got)
	})
}

func TestEventsDoNotRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got events
		x, err := New(Options{Recorder: &got, RepeatEvents: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		for range 13 {
			x.Execute(t.Context(), decision(0, killOf("app", 1)))
			time.Sleep(10 * time.Second)
		}
		const words = " Warning Pod web/app uid-app EvictionObserved: would evict pod web/app with a grace period of 1 s, for memory.available; the mode is observe. " +
			"The node was low on resource: memory. map[starved_resource:memory]"
		diff(t, "events", events{"0s" + words, "1m0s" + words, "2m0s" + words}, got)
	})
}

func TestEventsOfWhatStood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got events
		s := newServer(pod("app"), pod("static", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }))
		s.before = func(verb string, n int) error {
			if verb == "evict" {
				return refusal("The disruption budget front does not allow evicting pods currently", 0)
			}
			return nil
		}
		x := executor(t, s, func(o *Options) { o.Recorder = &got })
		x.Execute(t.Context(), decision(time.Minute, killOf("static", 1), killOf("app", 1), killOf("gone", 1)))
		x.Execute(t.Context(), decision(time.Minute, killOf("app", 1))) // the pod is deferred
		var reasons []string
		for _, e := range got {
			reasons = append(reasons, strings.Fields(e)[5])
		}
		diff(t, "reasons", []string{"EvictionRefused:", "EvictionBlocked:"}, reasons)
	})
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := prometheus.NewPedanticRegistry()
		s := newServer(pod("app"), pod("stays"))
		x := executor(t, s, func(o *Options) { o.Registerer = r })
		x.Execute(t.Context(), decision(0, killOf("app", 1), killOf("stays", 1)))
		s.linger = time.Hour
		time.Sleep(time.Minute)
		x.Execute(t.Context(), decision(0, killOf("stays", 1)))
		f := func(signal string, result Result, want float64) {
			t.Helper()
			if got := testutil.ToFloat64(x.metrics.outcomes.WithLabelValues(signal, string(result))); got != want {
				t.Errorf("outcomes of %s %s: got %v, want %v", signal, result, got, want)
			}
		}
		f("memory.available", Killed, 2)
		f("memory.available", Deferred, 1)
		f("memory.available", Failed, 0)
		const want = `
# HELP weir_eviction_cleanup_unfinished_total Evicted pods that were still there when they were waited for no longer.
# TYPE weir_eviction_cleanup_unfinished_total counter
weir_eviction_cleanup_unfinished_total 1
`
		if err := testutil.GatherAndCompare(r, strings.NewReader(want), "weir_eviction_cleanup_unfinished_total"); err != nil {
			t.Error(err)
		}
	})
}
