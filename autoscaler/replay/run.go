package replay

import (
	"fmt"
	"math"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/weir-metrics/weir/autoscaler"
)

// Options configures the model. DefaultOptions returns the usual values. Zero means zero, except
// where a field defines it.
type Options struct {
	Settings autoscaler.Settings
	// Startup is the time until a new pod is ready.
	Startup time.Duration
	// MetricDelay is the time until a new pod has its first sample.
	MetricDelay time.Duration
	// Window is the window of samples. In the first minutes of a pod its CPU counts only after the pod
	// has been ready for a whole window.
	Window time.Duration
	// Initial is the number of pods at the beginning; 0 means the recorded number, or minReplicas if
	// none was recorded.
	Initial int32
	// Progress, if not nil, is called before each decision with the time that was replayed and the
	// whole time.
	Progress func(done, whole time.Duration)
}

const (
	// syncPeriod is the time between two decisions.
	syncPeriod = 15 * time.Second
	// saturation is the share of its CPU limit above which a container counts as throttled.
	saturation = 0.95
)

// DefaultOptions returns the default options for a trace: its own startup time, or else 30 s; a
// first sample 30 s after the start, with a window of 30 s; and Kubernetes' settings.
func DefaultOptions(t *Trace) Options {
	o := Options{
		Settings:    autoscaler.DefaultSettings(),
		Startup:     30 * time.Second,
		MetricDelay: 30 * time.Second,
		Window:      30 * time.Second,
	}
	if t.Startup.Pods > 0 {
		o.Startup = t.Startup.Median
	}
	return o
}

// RunResult describes what a specification would have done.
type RunResult struct {
	// Min and Max are the specification's bounds.
	Min int32 `json:"min"`
	Max int32 `json:"max"`
	// Points has one point for each sync.
	Points []SyncPoint `json:"points"`
	Totals Totals      `json:"totals"`
	// Recorded has the totals of the recorded workload, measured by the targets of this specification;
	// nil if the trace has no number of pods.
	Recorded *Totals `json:"recorded,omitempty"`
	// Gaps are the times without a value for a metric.
	Gaps []Gap `json:"gaps,omitempty"`
	// Warnings describe what makes this result uncertain.
	Warnings []string `json:"warnings,omitempty"`
}

// SyncPoint is the state at one sync.
type SyncPoint struct {
	At time.Time `json:"at"`
	// Current is the number of pods before the decision, Desired the number after it, and Ready how
	// many of Current were ready.
	Current int32 `json:"current"`
	Desired int32 `json:"desired"`
	Ready   int32 `json:"ready"`
	// Recommendation is the count that the metrics require, before any limit; -1 if there is none.
	Recommendation int32 `json:"recommendation"`
	// Use is the largest share of a target that the ready pods used; 1 is the target. Demand is the
	// number of pods that would use exactly the target. Both are -1 if not known.
	Use    float64 `json:"use"`
	Demand float64 `json:"demand"`
	// Recorded is the recorded number of pods; -1 if not known.
	Recorded int32 `json:"recorded"`
	// Reason is the decision in one line.
	Reason string `json:"reason"`
}

// Gap is a time without a value for a metric.
type Gap struct {
	Metric string    `json:"metric"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
}

// Run replays t with spec, which must have its defaults. The error names data that the trace lacks.
func Run(t *Trace, spec *autoscalingv2.HorizontalPodAutoscalerSpec, o Options) (*RunResult, error) {
	list, err := targetMetrics(t, spec)
	if err != nil {
		return nil, err
	}
	if !t.To.After(t.From) {
		return nil, fmt.Errorf("replay from %s to %s: the end must be after the start", t.From.Format(time.RFC3339), t.To.Format(time.RFC3339))
	}
	r := &run{trace: t, spec: spec, options: &o, targets: list, gaps: map[string]int{}, result: &RunResult{Min: ptr.Deref(spec.MinReplicas, 1), Max: spec.MaxReplicas}}
	r.object = types.NamespacedName{Namespace: t.Namespace, Name: spec.ScaleTargetRef.Name}
	r.workload = newModelWorkload(t, &o, r.initial(), t.From)
	_, tol := autoscaler.Tolerances(spec, &o.Settings)
	r.meter, r.recorded = newMeter(t, list, tol, spec.MaxReplicas), newMeter(t, list, tol, spec.MaxReplicas)
	for now := t.From; now.Before(t.To); now = now.Add(syncPeriod) {
		if o.Progress != nil {
			o.Progress(now.Sub(t.From), t.To.Sub(t.From))
		}
		r.sync(now, min(syncPeriod, t.To.Sub(now)))
	}
	r.finish()
	return r.result, nil
}

// run has the state of a replay.
type run struct {
	trace   *Trace
	spec    *autoscalingv2.HorizontalPodAutoscalerSpec
	options *Options
	targets []targetMetric
	object  types.NamespacedName

	workload        *modelWorkload
	status          autoscalingv2.HorizontalPodAutoscalerStatus
	memory          autoscaler.Memory
	meter, recorded *totalsMeter
	gaps            map[string]int // the open gaps, by metric: index in result.Gaps
	result          *RunResult
}

// initial returns the number of pods at the beginning.
func (r *run) initial() int32 {
	if r.options.Initial > 0 {
		return r.options.Initial
	}
	if v, ok := r.trace.Replicas.At(r.trace.From, r.trace.maxAge()); ok {
		return int32(v)
	}
	// The first round of a recording may be a little later than its beginning.
	if s := r.trace.Replicas; len(s) > 0 && s[0].At.Sub(r.trace.From) < r.trace.maxAge() {
		return int32(s[0].Value)
	}
	return r.result.Min
}

// sync makes one decision, carries it out, and adds the time until the next one to the totals.
func (r *run) sync(now time.Time, span time.Duration) {
	w := r.workload
	current := int32(len(w.pods))
	d := autoscaler.Decide(&autoscaler.Input{
		Now:         now,
		Settings:    &r.options.Settings,
		Object:      r.object,
		Spec:        r.spec,
		Status:      &r.status,
		Memory:      r.memory,
		Scale:       autoscaler.Scale{SpecReplicas: current, StatusReplicas: current, Selector: "replay"},
		Pods:        w.podsAt(now),
		Overlapping: []types.NamespacedName{r.object},
		ReadMetric:  func(i int) autoscaler.Reading { return r.targets[i].readingAt(now, w) },
	})
	p := SyncPoint{At: now, Current: current, Desired: current, Ready: int32(w.ready(now)), Recommendation: -1, Use: -1, Demand: -1, Recorded: -1, Reason: describeDecision(d)}
	if d.Chosen >= 0 && d.Chosen < len(d.Metrics) && d.Metrics[d.Chosen].Err == nil {
		p.Recommendation = d.Metrics[d.Chosen].Proposal
	}
	if d.Rescale {
		p.Desired = d.Desired
		w.scale(int(d.Desired), now)
	}
	done := d.Conclude(nil)
	r.status, r.memory = done.Status, done.Memory

	if use, pods, ok := loadAt(r.targets, now, int(p.Ready)); ok {
		p.Use, p.Demand = finite(use), finite(pods)
	}
	r.meter.addSpan(now, span, p.Desired, w.ready(now))
	if v, ok := r.trace.Replicas.At(now, r.trace.maxAge()); ok {
		p.Recorded = int32(v)
		r.recorded.addSpan(now, span, p.Recorded, r.recordedReady(now, p.Recorded))
	} else {
		r.recorded.addUnknown(span)
	}
	r.updateGaps(now)
	r.result.Points = append(r.result.Points, p)
}

// recordedReady estimates how many of the recorded pods were ready: those that already existed one
// startup time earlier.
func (r *run) recordedReady(now time.Time, n int32) int {
	if previous, ok := r.trace.Replicas.At(now.Add(-r.options.Startup), r.trace.maxAge()); ok {
		n = min(n, int32(previous))
	}
	return int(n)
}

// finite returns v, or -1 for infinity and NaN, which JSON cannot represent.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return -1
	}
	return v
}

// updateGaps opens and closes gaps.
func (r *run) updateGaps(now time.Time) {
	for i := range r.targets {
		name := r.targets[i].name
		at, open := r.gaps[name]
		_, known := r.targets[i].totalAt(now)
		switch {
		case !known && !open:
			r.gaps[name] = len(r.result.Gaps)
			r.result.Gaps = append(r.result.Gaps, Gap{Metric: name, From: now})
		case known && open:
			r.result.Gaps[at].To = now
			delete(r.gaps, name)
		}
	}
}

// finish closes open gaps and computes the totals.
func (r *run) finish() {
	for _, at := range r.gaps {
		r.result.Gaps[at].To = r.trace.To
	}
	r.result.Totals = r.meter.done()
	if len(r.trace.Replicas) > 0 {
		recorded := r.recorded.done()
		r.result.Recorded = &recorded
	}
	r.result.Warnings = append(slices.Clone(r.trace.Notes), r.warnings()...)
}

// warnings returns where the model does not fit this trace and specification.
func (r *run) warnings() (list []string) {
	for i := range r.targets {
		tg := &r.targets[i]
		switch {
		case !tg.perPod:
			list = append(list, fmt.Sprintf("%s has a target of kind Value: it is replayed as it was, and does not fall when pods are added, so the count may run to a limit", tg.name))
		case tg.bytes:
			list = append(list, fmt.Sprintf("%s is replayed as if it spread over more pods as CPU does; what each pod needs for itself does not, so fewer pods look better than they are", tg.name))
		}
	}
	for i := range r.trace.Containers {
		if at := r.saturated(&r.trace.Containers[i]); at > 0 {
			c := &r.trace.Containers[i]
			list = append(list, fmt.Sprintf("container %s was at %.0f%% of its CPU limit (%dm) or above for %s: more pods might have used more, so the demand in that time is a lower bound",
				c.Name, saturation*100, c.Limits.CPU.Milli, at))
		}
	}
	if r.trace.Startup.Pods == 0 {
		list = append(list, fmt.Sprintf("the trace does not show how long pods take to become ready; the assumed time is %s", r.options.Startup))
	}
	if t := r.meter.totals.Unknown; t > 0 {
		list = append(list, fmt.Sprintf("for %s a metric is not known: no totals count that time, and nothing scales by that metric in it", t.Duration()))
	}
	return list
}

// saturated returns for how long container c was throttled, with the recorded number of pods.
func (r *run) saturated(c *TraceContainer) time.Duration {
	if !c.Limits.CPU.Set || c.Limits.CPU.Milli <= 0 {
		return 0
	}
	var at time.Duration
	for _, p := range r.result.Points {
		used, ok := c.CPU.At(p.At, r.trace.maxAge())
		if ok && p.Recorded > 0 && used*1000 >= saturation*float64(c.Limits.CPU.Milli)*float64(p.Recorded) {
			at += syncPeriod
		}
	}
	return at
}
