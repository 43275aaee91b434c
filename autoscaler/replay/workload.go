package replay

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster"
)

// modelWorkload is the model of the target: its pods, the oldest first.
type modelWorkload struct {
	options *Options
	prefix  string // the prefix of the pods' names
	// template has what all pods have in common.
	template autoscaler.PodInput
	created  int
	pods     []modelPod
	view     []autoscaler.PodInput // podsAt reuses it
}

// modelPod is one pod of the model, with the times of its states.
type modelPod struct {
	name                     string
	started, ready, measured time.Time
}

// newModelWorkload returns a workload of n pods that have run for a day.
func newModelWorkload(t *Trace, o *Options, n int32, now time.Time) *modelWorkload {
	_, name, _ := strings.Cut(t.Target, "/")
	w := &modelWorkload{options: o, prefix: strings.ToLower(name), template: autoscaler.PodInput{Phase: cluster.Running, Overhead: t.Overhead}}
	for _, c := range t.Containers {
		w.template.Containers = append(w.template.Containers, autoscaler.ContainerInput{Name: c.Name, Role: c.Role, Requests: c.Requests})
	}
	if t.PodLevel != nil {
		w.template.PodLevel, w.template.Requests = true, *t.PodLevel
	}
	long := now.Add(-24 * time.Hour)
	for range n {
		w.add(long, long, long)
	}
	return w
}

func (w *modelWorkload) add(started, ready, measured time.Time) {
	w.created++
	w.pods = append(w.pods, modelPod{fmt.Sprintf("%s-%08d", w.prefix, w.created), started, ready, measured})
}

// scale adds or removes pods until there are n. It removes unready pods first, then the youngest
// ones.
func (w *modelWorkload) scale(n int, now time.Time) {
	for len(w.pods) < n {
		w.add(now, now.Add(w.options.Startup), now.Add(w.options.MetricDelay))
	}
	// All pods take the same time to start, so the unready pods are the youngest.
	w.pods = w.pods[:max(n, 0)]
}

// ready returns the number of ready pods.
func (w *modelWorkload) ready(now time.Time) (n int) {
	for i := range w.pods {
		if !now.Before(w.pods[i].ready) {
			n++
		}
	}
	return n
}

// podsAt returns the pods as the API server would list them, sorted by name. They are valid until
// the next call.
func (w *modelWorkload) podsAt(now time.Time) []autoscaler.PodInput {
	w.view = w.view[:0]
	for i := range w.pods {
		p := &w.pods[i]
		seen := w.template
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
