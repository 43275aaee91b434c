package promreplay

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/replay"
	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/test/promtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// began is the time of the first sample in the test's Prometheus.
var began = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// span is the time that the samples cover.
const span = time.Hour

// pods has the first and last minute of each pod, and the cores that its container app uses.
var pods = []struct {
	name     string
	from, to int // from and to are minutes
	cores    float64
	ready    int // in seconds after its start
}{
	{"web-5d4f8c7b9-aaaaa", 0, 60, 0.5, 10},
	{"web-5d4f8c7b9-bbbbb", 0, 60, 0.25, 10},
	{"web-5d4f8c7b9-ccccc", 30, 60, 0.25, 40},
	{"other-7c7c7c7c7-ddddd", 0, 60, 7, 10},
}

// exposition writes what cAdvisor, kube-state-metrics and an application would have exported, one
// line for each minute and series. The lines of one metric are together.
func exposition(w io.Writer) {
	metric := func(name, kind string, each func(at time.Time, minute int)) {
		fmt.Fprintf(w, "# TYPE %s %s\n", strings.TrimSuffix(name, "_total"), kind)
		for minute := 0; minute <= int(span.Minutes()); minute++ {
			each(began.Add(time.Duration(minute)*time.Minute), minute)
		}
	}
	ofPods := func(name, kind, labels string, value func(i, minute int) float64) {
		metric(name, kind, func(at time.Time, minute int) {
			for i, p := range pods {
				if minute >= p.from && minute <= p.to {
					fmt.Fprintf(w, "%s{namespace=\"shop\",pod=%q%s} %g %d\n", name, p.name, labels, value(i, minute), at.Unix())
				}
			}
		})
	}
	counter := func(i, minute int) float64 { return pods[i].cores * float64(minute-pods[i].from) * 60 }
	ofPods("container_cpu_usage_seconds_total", "counter", `,container="app"`, counter)
	ofPods("container_memory_working_set_bytes", "gauge", `,container="app"`, func(int, int) float64 { return 100 << 20 })
	ofPods("kube_pod_container_resource_requests", "gauge", `,container="app",resource="cpu"`, func(_, minute int) float64 {
		if minute < 20 {
			return 0.4
		}
		return 0.5
	})
	ofPods("kube_pod_container_resource_limits", "gauge", `,container="app",resource="cpu"`, func(int, int) float64 { return 1 })
	ofPods("kube_pod_start_time", "gauge", "", func(i, _ int) float64 { return float64(began.Unix() + int64(pods[i].from)*60) })
	ofPods("kube_pod_status_ready_time", "gauge", "", func(i, _ int) float64 { return float64(began.Unix() + int64(pods[i].from)*60 + int64(pods[i].ready)) })
	metric("kube_deployment_spec_replicas", "gauge", func(at time.Time, minute int) {
		n := 2
		if minute >= 30 {
			n = 3
		}
		fmt.Fprintf(w, "kube_deployment_spec_replicas{namespace=\"shop\",deployment=\"web\"} %d %d\n", n, at.Unix())
	})
	metric("queue_length", "gauge", func(at time.Time, minute int) {
		for _, queue := range []string{"a", "b"} {
			fmt.Fprintf(w, "queue_length{namespace=\"shop\",queue=%q} %d %d\n", queue, minute, at.Unix())
		}
	})
	fmt.Fprintln(w, "# EOF")
}

// start fills a real Prometheus with the exposition, and returns a client.
func start(t *testing.T) *history.Client {
	t.Helper()
	return promtest.Filled(t, exposition, "queue_length", began, 2)
}

func request() Request {
	return Request{Namespace: "shop", Kind: "Deployment", Name: "web", Autoscaler: "web", From: began.Add(5 * time.Minute), To: began.Add(span), Resources: []string{"cpu"}, Named: map[string]string{"queue": `queue_length{queue=~"a|b"}`}}
}

func TestRead(t *testing.T) {
	h := start(t)
	trace, err := Read(t.Context(), h, request())
	if err != nil {
		t.Fatal(err)
	}
	if len(trace.Containers) != 1 {
		t.Fatalf("containers %v, want app alone", trace.Containers)
	}
	app := trace.Containers[0]
	if want := (autoscaler.Requests{CPU: autoscaler.MilliQuantity{Milli: 500, Set: true}}); app.Name != "app" || app.Requests != want {
		t.Errorf("got container %s requesting %v, want app requesting %v", app.Name, app.Requests, want)
	}
	if want := (autoscaler.Requests{CPU: autoscaler.MilliQuantity{Milli: 1000, Set: true}}); app.Limits != want {
		t.Errorf("got limits %v, want %v", app.Limits, want)
	}
	for _, test := range []struct {
		name   string
		series replay.Series
		minute int
		want   float64
	}{
		{"cpu of two pods", app.CPU, 10, 0.75},
		{"cpu of three pods", app.CPU, 45, 1},
		{"replicas before", trace.Replicas, 29, 2},
		{"replicas after", trace.Replicas, 30, 3},
		{"the queues' sum", trace.Named["queue"], 20, 40},
	} {
		got, ok := test.series.At(began.Add(time.Duration(test.minute)*time.Minute), time.Minute)
		if !ok || math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s at minute %d: got %v, %v, want %v", test.name, test.minute, got, ok, test.want)
		}
	}
	// One pod of the target started in that time, and took 40 s to become ready.
	if want := (replay.Startup{Median: 40 * time.Second, Pods: 1}); trace.Startup != want {
		t.Errorf("got startup %v, want %v", trace.Startup, want)
	}
	if want := []string{"container app's cpu request changed from 0.4 to 0.5: replayed as if it had always been the latter"}; !cmp.Equal(trace.Notes, want) {
		t.Errorf("notes %q, want %q", trace.Notes, want)
	}
	if !trace.From.Equal(began.Add(5*time.Minute)) || !trace.To.Equal(began.Add(span)) || trace.Step != 15*time.Second {
		t.Errorf("got %s to %s by %s", trace.From, trace.To, trace.Step)
	}
}

func TestReadSaysWhatIsAbsent(t *testing.T) {
	h := start(t)
	for _, test := range []struct {
		what   string
		change func(*Request)
		want   []string // parts of the message
	}{
		{"other pods", func(r *Request) { r.Name = "nobody" }, []string{
			"the Prometheus knows no cpu use of pods nobody-[a-z0-9]+-[a-z0-9]{5} in namespace shop in that time; asked were:",
			`weir_container_cpu_usage_cores{namespace="shop"`, `rate(container_cpu_usage_seconds_total{namespace="shop"`,
		}},
		{"another time", func(r *Request) { r.From, r.To = began.Add(-2*time.Hour), began.Add(-time.Hour) }, []string{"no cpu use of pods web-"}},
		{"another metric", func(r *Request) { r.Named["lag"] = "lag" }, []string{"no metric lag in that time", "sum(lag)"}},
	} {
		r := request()
		test.change(&r)
		_, err := Read(t.Context(), h, r)
		var absent *AbsentError
		if !errors.As(err, &absent) {
			t.Errorf("%s: got %v, want an *Absent", test.what, err)
			continue
		}
		for _, part := range test.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %q, want %q in it", test.what, err, part)
			}
		}
	}
	r := request()
	r.Named = map[string]string{"bad": "("}
	var no *history.Error
	if _, err := Read(t.Context(), h, r); !errors.As(err, &no) || no.Kind != "bad_data" {
		t.Errorf("bad PromQL: got %v, want Prometheus' bad_data", err)
	}
}

// TestReadCountsPods checks that without kube-state-metrics the measured pods are counted, and that
// a note says so.
func TestReadCountsPods(t *testing.T) {
	h := start(t)
	r := request()
	r.Kind, r.Pods = "Rollout", "web-.*"
	trace, err := Read(t.Context(), h, r)
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := trace.Replicas.At(began.Add(45*time.Minute), time.Minute); !ok || n != 3 {
		t.Errorf("got %v, %v replicas, want 3", n, ok)
	}
	if want := "the requested number of replicas is unknown; measured pods are counted instead"; !strings.Contains(strings.Join(trace.Notes, "\n"), want) {
		t.Errorf("notes %q, want %q", trace.Notes, want)
	}
}
