package podmetrics_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/podmetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// remembering returns a fixture with a history of ten minutes, in which usage grows by 250m a
// minute. web-1 started in the middle of it.
func remembering(t *testing.T) (*fixture, podmetrics.Options) {
	w := newFixture(t)
	web := map[string]string{"app": "web"}
	pods := []*cluster.Pod{running("shop", "web-0", "n1", web, "app", "mesh"), running("shop", "web-1", "n1", web, "app")}
	pods[1].Started = noon.Add(5*time.Minute + 10*time.Second)
	pods[1].Containers[0].StartedAt = pods[1].Started
	w.know(pods...)
	for minute := 1; minute <= 10; minute++ {
		w.now = noon.Add(time.Duration(minute) * time.Minute)
		there := pods[:1]
		if minute > 5 {
			there = pods
		}
		w.readAll(there, float64(minute))
	}
	o := w.options()
	o.Now = func() time.Time { return w.now }
	return w, o
}

// near rounds samples to milli-units, because the history is exact only to four millionths.
func near(samples []autoscaler.PodSample) (lines []string) {
	for _, s := range samples {
		lines = append(lines, fmt.Sprintf("%s %.0fk at %s over %v", s.Pod, math.Round(float64(s.Milli)/1000), s.At.Sub(noon), s.Window))
	}
	return lines
}

func TestAt(t *testing.T) {
	_, o := remembering(t)
	l := podmetrics.New(o)
	f := func(after time.Duration, m autoscalingv2.MetricSpec, want ...string) {
		t.Helper()
		then, err := l.At(noon.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, then, m)
		lines := near(got.Samples)
		if got.Err != nil {
			lines = append(lines, got.Err.Error())
		}
		if fmt.Sprint(lines) != fmt.Sprint(want) {
			t.Errorf("after %v: got %q, want %q", after, lines, want)
		}
	}
	// web-0 was read 300 ms before the minute, web-1 600 ms before it. Each container grows by 250m
	// and 1000 bytes a minute.
	f(10*time.Minute, of("memory", ""), "web-0 20000k at 9m59s over 1m0s", "web-1 10000k at 9m59s over 1m0s")
	f(10*time.Minute, of("cpu", ""), "web-0 5k at 9m59s over 1m0s", "web-1 3k at 9m59s over 1m0s")
	f(7*time.Minute+30*time.Second, of("memory", "mesh"), "web-0 7000k at 6m59s over 1m0s")
	// Before its first number web-1 has no sample; before its start it is not in the list.
	f(5*time.Minute+30*time.Second, of("memory", ""), "web-0 10000k at 4m59s over 1m0s")
	f(30*time.Second, of("memory", ""), "unable to fetch metrics from resource metrics API: memory has no numbers of these pods at 2026-01-02T12:00:30Z")
	f(time.Minute, pod("cpu_usage_cores", nil), "weir keeps a history of CPU and memory only, so Pods metrics at 2026-01-02T12:01:00Z are unknown")
	f(time.Minute, object("Pod", "web-0", "cpu_usage_cores"), "weir keeps a history of CPU and memory only, so Object metrics at 2026-01-02T12:01:00Z are unknown")
	f(time.Minute, external("queue", nil), "weir keeps a history of CPU and memory only, so External metrics at 2026-01-02T12:01:00Z are unknown")

	for after, want := range map[time.Duration]int{5 * time.Minute: 1, 5*time.Minute + 10*time.Second: 2} {
		then, err := l.At(noon.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		if pods, err := then.Pods("shop", selector(t, "app=web")); err != nil || len(pods) != want {
			t.Errorf("after %v: %d pods, %v, want %d", after, len(pods), err, want)
		}
	}
}

// TestAtOfATerminatingPod checks that a pod that is being deleted now was not being deleted at an
// earlier time.
func TestAtOfATerminatingPod(t *testing.T) {
	w, o := remembering(t)
	p := *w.facts.Pod(metric.PodRef{Namespace: "shop", Name: "web-0"})
	p.Deleted = noon.Add(9 * time.Minute)
	waits := running("shop", "web-2", "", map[string]string{"app": "web"}, "app")
	waits.Phase, waits.Started, waits.KnownAt = cluster.Pending, time.Time{}, noon.Add(8*time.Minute)
	w.know(&p, waits)
	l := podmetrics.New(o)
	for after, want := range map[time.Duration]string{
		7 * time.Minute: "[web-0 web-1]", 8 * time.Minute: "[web-0 web-1 web-2]", 9 * time.Minute: "[web-0(ends) web-1 web-2]",
	} {
		then, err := l.At(noon.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		pods, err := then.Pods("shop", selector(t, "app=web"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range pods {
			if p.Terminating {
				p.Name += "(ends)"
			}
			names = append(names, p.Name)
		}
		if got := fmt.Sprint(names); got != want {
			t.Errorf("after %v: got %s, want %s", after, got, want)
		}
	}
}

func TestAtRefusesWhatIsTooOld(t *testing.T) {
	_, o := remembering(t)
	f := func(after time.Duration, want string) {
		t.Helper()
		if _, err := podmetrics.New(o).At(noon.Add(after)); err == nil || err.Error() != want {
			t.Errorf("after %v: got %v, want %s", after, err, want)
		}
	}
	f(11*time.Minute, "2026-01-02T12:11:00Z is in the future")
	f(-6*time.Minute, "memory goes back 15m0s, to 2026-01-02T11:55:00Z")
	o.HistoryLength = time.Minute
	f(8*time.Minute, "memory goes back 1m0s, to 2026-01-02T12:09:00Z")
	o.HistoryLength = -1
	f(10*time.Minute, "weir keeps no history here: see option history of the sink memory")
}
