package replay

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster"
)

// workload is the model of the target: its pods, the oldest first.
type workload struct {
	options *Options
	prefix  string // of the pods' names
	// like is what all pods have in common.
	like autoscaler.Pod
	born int
	pods []pod
	view []autoscaler.Pod // memory for look
}

// pod is one pod of the model, and from when on what holds.
type pod struct {
	name                     string
	started, ready, measured time.Time
}

// newWorkload returns a workload of n pods that have run for long.
func newWorkload(t *Trace, o *Options, n int32, now time.Time) *workload {
	_, name, _ := strings.Cut(t.Target, "/")
	w := &workload{options: o, prefix: strings.ToLower(name), like: autoscaler.Pod{Phase: cluster.Running, Overhead: t.Overhead}}
	for _, c := range t.Containers {
		w.like.Containers = append(w.like.Containers, autoscaler.Container{Name: c.Name, Role: c.Role, Requests: c.Requests})
	}
	if t.PodLevel != nil {
		w.like.PodLevel, w.like.Requests = true, *t.PodLevel
	}
	long := now.Add(-24 * time.Hour)
	for range n {
		w.add(long, long, long)
	}
	return w
}

func (w *workload) add(started, ready, measured time.Time) {
	w.born++
	w.pods = append(w.pods, pod{fmt.Sprintf("%s-%08d", w.prefix, w.born), started, ready, measured})
}

// scale adds or removes pods until there are n. Pods that are not ready go before
// those that are, and the youngest first.
func (w *workload) scale(n int, now time.Time) {
	for len(w.pods) < n {
		w.add(now, now.Add(w.options.Startup), now.Add(w.options.MetricDelay))
	}
	// All start up alike, so the youngest are those that are not ready.
	w.pods = w.pods[:max(n, 0)]
}

// ready is how many pods are ready.
func (w *workload) ready(now time.Time) (n int) {
	for i := range w.pods {
		if !now.Before(w.pods[i].ready) {
			n++
		}
	}
	return n
}

// look returns the pods as the API server would tell them, by name. They are good
// until the next look.
func (w *workload) look(now time.Time) []autoscaler.Pod {
	w.view = w.view[:0]
	for i := range w.pods {
		p := &w.pods[i]
		seen := w.like
		seen.Name, seen.Started = p.name, p.started
		if now.Before(p.ready) {
			seen.Ready, seen.ReadySince = cluster.ReadyFalse, p.started
		} else {
			seen.Ready, seen.ReadySince = cluster.ReadyTrue, p.ready
		}
		w.view = append(w.view, seen)
	}
	return w.view
}
