//go:build linux

package main

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/test/simulator"
)

var began = time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)

func TestSample(t *testing.T) {
	pod, taken, ok := sample([]byte("container_cpu_usage_seconds_total{container=\"app\",namespace=\"shop\",pod=\"web-1\"} 4.5 1795227284123\n"))
	if want := (podName{"shop", "web-1"}); !ok || pod != want || taken.UnixMilli() != 1795227284123 {
		t.Errorf("got %v at %v, %v; want %v at 1795227284123", pod, taken.UnixMilli(), ok, want)
	}
	for _, other := range []string{
		"", "node_cpu_usage_seconds_total 1 2\n", "# TYPE container_cpu_usage_seconds_total counter\n",
		"container_cpu_usage_seconds_total{pod=\"web-1\"} 4.5\n", "container_cpu_usage_seconds_total{pod=\"web-1\"} 4.5 soon\n",
	} {
		if pod, _, ok := sample([]byte(other)); ok {
			t.Errorf("%q: got a sample of %v", other, pod)
		}
	}
}

// TestStale serves a sample of ten seconds ago for each pod, and one of twenty
// seconds ago for one pod.
func TestStale(t *testing.T) {
	fleet, err := Shape{Nodes: 2, Pods: 4, Containers: 2, Start: began}.fleet()
	if err != nil {
		t.Fatal(err)
	}
	asked := began.Add(time.Minute)
	var list metrics.PodMetricsList
	for _, n := range fleet.Nodes() {
		for _, p := range n.Pods() {
			ago := 10 * time.Second
			if len(list.Items) == 0 {
				ago = 20 * time.Second
			}
			list.Items = append(list.Items, metrics.PodMetrics{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, Timestamp: metav1.NewTime(asked.Add(-ago)),
			})
		}
	}
	list.Items = append(list.Items, metrics.PodMetrics{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gone"}, Timestamp: metav1.NewTime(began)})
	body, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	got, err := stale(fleet, answer{body: body, asked: asked})
	want := []float64{20, 10, 10, 10, 10, 10, 10, 10}
	if err != nil || !slices.Equal(got.lags, want) || !slices.Equal(got.ages, want) {
		t.Errorf("got lags %v and ages %v, %v; want %v for both: fresh samples are as old as the request", got.lags, got.ages, err, want)
	}
	if _, err := stale(fleet, answer{body: []byte(`{}`), asked: asked}); err == nil {
		t.Error("of a list of nothing: got no error")
	}
}

// TestFleetsAreTheSame checks that the fleet that judges is the one that
// serves, with the same faults, and that the expected number of pods is
// replaced.
func TestFleetsAreTheSame(t *testing.T) {
	shape := Shape{Nodes: 10, Pods: 20, Containers: 2, Start: began, Quiet: time.Minute, Churn: 10 * time.Minute}
	text, err := json.Marshal(shape)
	if err != nil {
		t.Fatal(err)
	}
	var read Shape
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	one, err := shape.fleet()
	if err != nil {
		t.Fatal(err)
	}
	other, err := read.fleet()
	if err != nil {
		t.Fatal(err)
	}
	at := began.Add(7*time.Minute + 123*time.Millisecond)
	pods := 0
	for i, n := range one.Nodes() {
		pods += len(n.Pods())
		mine, theirs := one.Append(nil, n, simulator.Resource, at), other.Append(nil, other.Nodes()[i], simulator.Resource, at)
		if string(mine) != string(theirs) {
			t.Errorf("%s: two fleets of one shape differ", n.Name)
		}
	}
	// 1% of 200 pods, each minute for ten minutes.
	if got, want := pods-200, 20; got != want {
		t.Errorf("%d pods are replaced, want %d", got, want)
	}
}

func TestApplication(t *testing.T) {
	fleet, err := Shape{Nodes: 30, Pods: 30, Containers: 1, Start: began}.fleet()
	if err != nil {
		t.Fatal(err)
	}
	namespace, app, pod := application(fleet)
	of := 0
	for _, n := range fleet.Nodes() {
		for _, p := range n.Pods() {
			if p.Namespace == namespace && label(p, began) == app {
				of++
			}
		}
	}
	if of < 2 || of > 60 || pod == "" {
		t.Errorf("application %s/%s with pod %q has %d pods, want a middling number", namespace, app, pod, of)
	}
}

func TestCounter(t *testing.T) {
	text := []byte("# HELP a_total a\na_total{x=\"1\"} 41\na_total{x=\"12\"} 7\nb 1e+06\n")
	for series, want := range map[string]float64{`a_total{x="1"}`: 41, `a_total{x="12"}`: 7, "b": 1e6} {
		if got, err := counter(text, series); got != want || err != nil {
			t.Errorf("%s: got %v, %v, want %v", series, got, err, want)
		}
	}
	if got, err := counter(text, "a_total"); err == nil {
		t.Errorf("a_total without labels: got %v, want an error", got)
	}
}

func TestWholeRounds(t *testing.T) {
	f := func(window, resolution, want time.Duration) {
		t.Helper()
		if got := wholeRounds(window, resolution); got != want {
			t.Errorf("%v in rounds of %v: got %v, want %v", window, resolution, got, want)
		}
	}
	f(3*time.Minute, 15*time.Second, 3*time.Minute)
	f(50*time.Second, 15*time.Second, time.Minute)
	f(0, 15*time.Second, 15*time.Second)
	if got := number(math.NaN()); got != "–" {
		t.Errorf("what was not measured: got %q", got)
	}
}
