package podmetrics_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/podmetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

var servedSince = decisionreport.PodVerdict{Reason: "Measured", Message: "it had no number when the decision was made, and has one now; the next decision uses it"}

// TestServedSinceTheDecision explains a decision about a young pod after the pod got its numbers.
func TestServedSinceTheDecision(t *testing.T) {
	w := newFixture(t)
	web := running("shop", "web", "n1", map[string]string{"app": "web"}, "app")
	w.know(web)
	read := func(rate bool) {
		b := w.batch("n1")
		s := measured(b, web, "app", time.Second, 15*time.Second, 1, 1)
		if !rate {
			s.Values.Delete(metric.CPUUsageRate)
			s.Reasons[metric.CPU] = metric.FirstSample
		}
		w.write(b)
	}
	read(false)
	reader := podmetrics.New(w.options())
	spec := &autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3, Metrics: []autoscalingv2.MetricSpec{of("cpu", ""), of("cpu", "app"), pod("cpu_usage_cores", nil)}}
	for i := range spec.Metrics {
		target := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewQuantity(1, resource.DecimalSI)}
		switch m := &spec.Metrics[i]; {
		case m.Resource != nil:
			m.Resource.Target = target
		case m.ContainerResource != nil:
			m.ContainerResource.Target = target
		default:
			m.Pods.Target = target
		}
	}
	pods, err := reader.Pods("shop", selector(t, "app=web"))
	if err != nil {
		t.Fatal(err)
	}
	settings := autoscaler.DefaultSettings()
	in := &autoscaler.Input{
		Now: w.now, Settings: &settings, Object: types.NamespacedName{Namespace: "shop", Name: "web"}, Spec: spec, Status: &autoscalingv2.HorizontalPodAutoscalerStatus{}, Pods: pods,
		ReadMetric: reader.Readings(t.Context(), "shop", selector(t, "app=web"), spec, pods),
	}
	in.Scale.SpecReplicas, in.Scale.StatusReplicas, in.Scale.Selector = 1, 1, "app=web"
	in.Overlapping = []types.NamespacedName{in.Object}
	d := autoscaler.Decide(in)
	read(true)
	r := decisionreport.New(d, decisionreport.Context{Input: in, Kind: "HorizontalPodAutoscaler", Verdict: reader.Verdicts("shop", spec)})
	if len(r.Missing) != len(spec.Metrics) || d.Err == nil {
		t.Errorf("the decision has the error %v, and the explanation the causes %+v, want one of each of %d metrics", d.Err, r.Missing, len(spec.Metrics))
	}
	for _, c := range r.Missing {
		if c.Severity != "none" || c.Reason != servedSince.Reason || c.Message != servedSince.Message || !slices.Equal(c.Pods, []string{"web"}) {
			t.Errorf("of %s: got %+v, want that pod web is served since", c.Metric, c)
		}
	}
	if want := "pod web: " + servedSince.Message; !strings.Contains(r.Summary, want) {
		t.Errorf("got %q, want it to have %q", r.Summary, want)
	}
}

// TestVerdicts checks the reason and the advice for each pod without a number.
func TestVerdicts(t *testing.T) {
	w := newFixture(t)
	web := map[string]string{"app": "web"}
	well, young, crash, lost := running("shop", "well", "n1", web, "app", "mesh"), running("shop", "young", "n1", web, "app"),
		running("shop", "crash", "n1", web, "app"), running("shop", "lost", "n2", web, "app")
	well.Containers[1].Role = cluster.Init // an init container need not run
	crash.Containers[0].State, crash.Containers[0].Previous = cluster.StateWaiting, &cluster.PreviousRun{StateReason: "CrashLoopBackOff"}
	w.know(well, young, crash, lost)
	b := w.batch("n1")
	measured(b, well, "app", time.Second, 15*time.Second, 1, 1)
	s := measured(b, young, "app", time.Second, 0, 0, 1)
	s.Values.Delete(metric.CPUUsageRate)
	s.Reasons[metric.CPU] = metric.FirstSample
	w.write(b)
	away := w.batch("n2")
	away.Err = &metric.ReadError{Reason: metric.NodeTimeout}
	w.write(away)

	spec := &autoscalingv2.HorizontalPodAutoscalerSpec{Metrics: []autoscalingv2.MetricSpec{
		of("cpu", ""), of("cpu", "mesh"), of("memory", "nobody"), pod("memory_rss_bytes", nil), external("queue", nil), of("ephemeral-storage", ""),
	}}
	l := podmetrics.New(w.options())
	verdicts := l.Verdicts("shop", spec)
	f := func(i int, pod string, want ...decisionreport.PodVerdict) {
		t.Helper()
		got, known := verdicts(i, pod)
		if known != (len(want) > 0) {
			t.Errorf("metric %d of %s: got %+v, %v", i, pod, got, known)
			return
		}
		if known {
			cmptest.Equal(t, fmt.Sprintf("metric %d of %s", i, pod), want[0], got)
		}
	}
	advice := func(r metric.Reason) string {
		return strings.NewReplacer("NAMESPACE POD", "shop crash", "CONTAINER", "app", "NODE", "n2").Replace(explain.Advice(r))
	}
	f(0, "well", servedSince)
	f(5, "well") // nobody serves it
	f(0, "young", decisionreport.PodVerdict{Reason: "FirstSample", Message: "container app has no CPU: it was first seen too recently, and a rate needs two readings", Advice: explain.Advice(metric.FirstSample)})
	f(0, "crash", decisionreport.PodVerdict{Reason: "ContainerNotStarted", Message: "container app is waiting to start: CrashLoopBackOff", Advice: advice(metric.ContainerNotStarted)})
	timeout := decisionreport.PodVerdict{Reason: "NodeTimeout", Message: "node n2 did not answer in time", Advice: advice(metric.NodeTimeout) + " `weir explain node n2` shows more."}
	f(0, "lost", timeout)
	f(0, "nobody")
	f(1, "well", decisionreport.PodVerdict{Reason: "NotReported", Message: "node n1 answered without it", Advice: explain.Advice(metric.NotReported)})
	f(1, "lost", timeout)
	f(2, "well", decisionreport.PodVerdict{Reason: "NotReported", Message: "the pod has no container nobody"})
	f(3, "well", decisionreport.PodVerdict{Reason: "Unsupported", Message: "this source or kernel cannot supply it", Advice: explain.Advice(metric.Unsupported)})
	f(4, "well")
	f(9, "well")

	o := w.options()
	o.Now = func() time.Time { return noon }
	then, err := podmetrics.New(o).At(noon.Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if got, known := then.Verdicts("shop", spec)(0, "young"); known {
		t.Errorf("of an earlier time: got %+v", got)
	}
}

// hangingRules are custom metrics by rules. Their server hangs.
type hangingRules struct {
	podmetrics.CustomMetrics
	asked map[string]int // by metric
}

func (hangingRules) HasRule(schema.GroupResource, string) bool { return true }

func (r hangingRules) WhyNoSeries(ctx context.Context, _ metric.PodRef, name string, _ labels.Selector) (explain.Finding, bool) {
	if r.asked[name]++; name == "healthy" {
		return explain.Finding{Reason: "NoSeries"}, true
	}
	<-ctx.Done()
	return explain.Finding{}, false
}

// TestReasonsOfAServerThatHangs checks that a server that hangs delays a report with many pods by two
// seconds, and takes no reason from another metric.
func TestReasonsOfAServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		w.know(running("shop", "web-0", "n1", nil, "app"), running("shop", "web-1", "n1", nil, "app"))
		o := w.options()
		rules := hangingRules{o.Custom, map[string]int{}}
		o.Custom = rules
		spec := &autoscalingv2.HorizontalPodAutoscalerSpec{Metrics: []autoscalingv2.MetricSpec{pod("hangs", nil), pod("healthy", nil)}}
		verdicts, began := podmetrics.New(o).Verdicts("shop", spec), time.Now()
		for range 3 {
			for _, pod := range []string{"web-0", "web-1"} {
				if v, known := verdicts(0, pod); known {
					t.Errorf("%s has the reason %+v of a server that hangs", pod, v)
				}
				if v, known := verdicts(1, pod); !known || v.Reason != "NoSeries" {
					t.Errorf("%s: got %+v, %v, want NoSeries", pod, v, known)
				}
			}
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("the reasons took %v, want 2s", took)
		}
		if want := map[string]int{"hangs": 1, "healthy": 6}; !maps.Equal(rules.asked, want) {
			t.Errorf("asked %v, want %v", rules.asked, want)
		}
	})
}
