//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/test/simulator"
	"github.com/weir-metrics/weir/test/simulator/seed"
)

// podName is the name of a pod.
type podName struct{ namespace, name string }

func label(p *simulator.Pod, now time.Time) string {
	object, err := seed.Pod(p, now)
	if err != nil {
		object = &corev1.Pod{}
	}
	return object.Labels["app"]
}

// newest returns, for each pod, the time of the newest sample that a kubelet
// would return at that moment. For several containers, it is the older one.
func newest(fleet *simulator.Fleet, at time.Time) map[podName]time.Time {
	samples := map[podName]time.Time{}
	var payload []byte
	for _, n := range fleet.Nodes() {
		payload = fleet.Append(payload[:0], n, simulator.Resource, at)
		for line := range bytes.Lines(payload) {
			pod, taken, ok := sample(line)
			if before, seen := samples[pod]; ok && (!seen || taken.Before(before)) {
				samples[pod] = taken
			}
		}
	}
	return samples
}

// sample returns the pod and the timestamp of a line of resource metrics with
// CPU time. It returns false for other lines.
//
//	container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web-1"} 4.5 1795227284000
func sample(line []byte) (podName, time.Time, bool) {
	rest, ok := bytes.CutPrefix(line, []byte("container_cpu_usage_seconds_total{"))
	if !ok {
		return podName{}, time.Time{}, false
	}
	labels, numbers, _ := bytes.Cut(rest, []byte("} "))
	value := func(name string) string {
		_, after, _ := bytes.Cut(labels, []byte(name+`="`))
		v, _, _ := bytes.Cut(after, []byte(`"`))
		return string(v)
	}
	fields := bytes.Fields(numbers)
	if len(fields) != 2 {
		return podName{}, time.Time{}, false
	}
	ms, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return podName{value("namespace"), value("pod")}, time.UnixMilli(ms), err == nil
}

// staleness is the age of the samples of an answer.
type staleness struct {
	ages []float64 // of each pod's sample at the request, in seconds
	lags []float64 // of each pod's sample behind the newest one that its node had then, in seconds
}

// stale computes the staleness of one LIST of all pods. It ignores pods that
// their node no longer has; other tests check how long these are served.
func stale(fleet *simulator.Fleet, a answer) (staleness, error) {
	var list metrics.PodMetricsList
	if err := json.Unmarshal(a.body, &list); err != nil {
		return staleness{}, fmt.Errorf("read list of pods: %w", err)
	}
	had := newest(fleet, a.asked)
	var s staleness
	for i := range list.Items {
		p := &list.Items[i]
		if taken, ok := had[podName{p.Namespace, p.Name}]; ok {
			s.ages = append(s.ages, a.asked.Sub(p.Timestamp.Time).Seconds())
			s.lags = append(s.lags, taken.Sub(p.Timestamp.Time).Seconds())
		}
	}
	if len(s.lags) == 0 {
		return s, errors.New("judge the ages of what is served: no pod is served")
	}
	return s, nil
}

// exactness compares each container's rate that weir serves with the true usage
// in its window. It returns the largest relative error and the number of rates.
// Rates are served in whole nanocores, and the rounding does not count as an
// error. metrics-server's windows are whole seconds, so its rates are never
// exact.
func exactness(ctx context.Context, fleet *simulator.Fleet, base string, client *http.Client) (worst float64, compared int, err error) {
	weir, err := weirdev.NewClient(base, client)
	if err != nil {
		return 0, 0, err
	}
	list, err := (&usage.Client{Weir: weir}).List(ctx, usage.Containers, usage.Query{Metrics: []string{}})
	if err != nil {
		return 0, 0, fmt.Errorf("ask for exact windows: %w", err)
	}
	pods := map[podName][]*simulator.Pod{} // with churn, all pods that ever have the name
	for _, n := range fleet.Nodes() {
		for _, p := range n.Pods() {
			name := podName{p.Namespace, p.Name}
			pods[name] = append(pods[name], p)
		}
	}
	for i := range list.Items {
		it := &list.Items[i]
		if it.CPU == nil || it.CPU.WindowSeconds <= 0 {
			continue
		}
		to, window := it.CPU.Time, time.Duration(math.Round(it.CPU.WindowSeconds*1e9))
		for _, p := range pods[podName{string(it.Namespace), string(it.Pod)}] {
			for _, c := range p.Containers {
				// A window begins at a sample, with a time in whole milliseconds, or at the
				// start of the container.
				from := to.Add(-window).Round(time.Millisecond)
				if started := c.Started(to); to.Add(-window).Sub(started).Abs() < 2*time.Microsecond {
					from = started
				}
				// Other tests check windows in which a pod or container was replaced.
				if c.Name != it.Container || !p.Bound(from) || !p.Bound(to) || c.ID(from) != c.ID(to) || c.Started(to).After(from) {
					continue
				}
				used := float64(c.CPU(to)-c.CPU(from)) / to.Sub(from).Seconds() // nanocores
				off := max(0, math.Abs(float64(it.CPU.Nanocores)-used)-0.5)
				worst = max(worst, off/max(used, 1))
				compared++
			}
		}
	}
	if compared == 0 {
		return 0, 0, errors.New("compare rates: weir serves none whose window can be judged")
	}
	return worst, compared, nil
}
