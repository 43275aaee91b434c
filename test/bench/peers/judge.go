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

// podName names a pod.
type podName struct{ namespace, name string }

func label(p *simulator.Pod, now time.Time) string {
	object, err := seed.Pod(p, now)
	if err != nil {
		object = &corev1.Pod{}
	}
	return object.Labels["app"]
}

// newest returns when the newest sample was taken that a kubelet would hand out of
// each pod at that moment: the older one of its containers'.
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

// sample reads whose CPU time a line of resource metrics gives, and of when it is:
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

// staleness is how old what was served is.
type staleness struct {
	ages []float64 // of each pod, in seconds, when it was asked for
	lags []float64 // behind the newest sample that its node had then, in seconds
}

// stale judges one LIST of all pods. Pods that its node no longer has are left out:
// that they are served for a moment is for other tests to judge.
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

// exactness compares each container's rate that weir serves with what was really
// used in its window, and returns the largest relative error and how many were
// compared. Served are whole nanocores: what rounding to one explains is no error.
// metrics-server's windows are whole seconds, within which no rate is exact.
func exactness(ctx context.Context, fleet *simulator.Fleet, base string, client *http.Client) (worst float64, compared int, err error) {
	weir, err := weirdev.NewClient(base, client)
	if err != nil {
		return 0, 0, err
	}
	list, err := usage.NewClient(weir).List(ctx, usage.Containers, usage.Query{Metrics: []string{}})
	if err != nil {
		return 0, 0, fmt.Errorf("ask for exact windows: %w", err)
	}
	pods := map[podName][]*simulator.Pod{} // in churn, all that had or will have the name
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
				// Windows begin with a sample, whose time is of whole milliseconds, or with
				// the container.
				from := to.Add(-window).Round(time.Millisecond)
				if started := c.Started(to); to.Add(-window).Sub(started).Abs() < 2*time.Microsecond {
					from = started
				}
				// A window in which a pod or container was replaced is for other tests.
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
