package podmetrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/podmetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

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
		of("cpu", ""), of("cpu", "mesh"), of("memory", "nobody"), pod("memory_rss_bytes", nil), external("queue", nil),
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
			if diff := cmp.Diff(want[0], got); diff != "" {
				t.Errorf("metric %d of %s (-want +got):\n%s", i, pod, diff)
			}
		}
	}
	advice := func(r metric.Reason) string {
		return strings.NewReplacer("NAMESPACE POD", "shop crash", "CONTAINER", "app", "NODE", "n2").Replace(explain.Advice(r))
	}
	f(0, "well")
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
