package replay

import (
	"fmt"
	"math"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
)

// Options say how the model behaves. DefaultOptions returns the usual ones; a zero
// means zero, except where it says otherwise.
type Options struct {
	Settings autoscaler.Settings
	// Sync is the time between two decisions; 15 s if zero.
	Sync time.Duration
	// Startup is how long a new pod takes to become ready.
	Startup time.Duration
	// MetricDelay is how long after its start a pod is measured for the first time.
	MetricDelay time.Duration
	// Window is what samples are said to be measured over: in its first minutes a
	// pod's CPU counts only once it has been ready for a window.
	Window time.Duration
	// Initial is the count of pods at the beginning; if zero, the recorded one, else
	// minReplicas.
	Initial int32
	// Saturation is the share of its CPU limit from which on a container is taken to
	// be throttled; none if zero.
	Saturation float64
}

// DefaultOptions returns the options for a trace: its own startup time, else 30 s; a
// first sample 30 s after the start, measured over 30 s; throttled from 95% of the
// limit on; and Kubernetes' settings.
func DefaultOptions(t *Trace) Options {
	o := Options{
		Settings:    autoscaler.DefaultSettings(),
		Sync:        15 * time.Second,
		Startup:     30 * time.Second,
		MetricDelay: 30 * time.Second,
		Window:      30 * time.Second,
		Saturation:  0.95,
	}
	if t.Startup.Pods > 0 {
		o.Startup = t.Startup.Median
	}
	return o
}

// Result is what a specification would have done.
type Result struct {
	// Min and Max are the specification's bounds.
	Min int32 `json:"min"`
	Max int32 `json:"max"`
	// Points are one for each sync.
	Points []Point `json:"points"`
	Totals Totals  `json:"totals"`
	// Recorded is how the workload really fared, by the targets of this
	// specification; nil if the trace does not know how many pods there were.
	Recorded *Totals `json:"recorded,omitempty"`
	// Gaps are when a metric is not known.
	Gaps []Gap `json:"gaps,omitempty"`
	// Warnings are what makes this result less sure.
	Warnings []string `json:"warnings,omitempty"`
}

// Point is one sync.
type Point struct {
	At time.Time `json:"at"`
	// Current is the count of pods before the decision, Desired the one after, Ready
	// how many of Current were ready.
	Current int32 `json:"current"`
	Desired int32 `json:"desired"`
	Ready   int32 `json:"ready"`
	// Recommendation is what the metrics ask for, before any limit; -1 if nothing.
	Recommendation int32 `json:"recommendation"`
	// Use is the largest use of a target by the ready pods, 1 being the target, and
	// Demand the count of pods that would use it exactly. Both are -1 if not known.
	Use    float64 `json:"use"`
	Demand float64 `json:"demand"`
	// Recorded is how many pods there really were; -1 if not known.
	Recorded int32 `json:"recorded"`
	// Why is the decision in a line.
	Why string `json:"why"`
}

// Gap is a time in which a metric is not known.
type Gap struct {
	Metric string    `json:"metric"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
}

// Run replays t under spec, which has its defaults filled in. The error names what
// the trace lacks for it.
func Run(t *Trace, spec *autoscalingv2.HorizontalPodAutoscalerSpec, o Options) (*Result, error) {
	list, err := targets(t, spec)
	if err != nil {
		return nil, err
	}
	if !t.To.After(t.From) {
		return nil, fmt.Errorf("replay from %s to %s: there is no time between them", t.From.Format(time.RFC3339), t.To.Format(time.RFC3339))
	}
	if o.Sync <= 0 {
		o.Sync = 15 * time.Second
	}
	r := &run{trace: t, spec: spec, options: &o, targets: list, result: &Result{Min: least(spec), Max: spec.MaxReplicas}}
	r.object = types.NamespacedName{Namespace: t.Namespace, Name: spec.ScaleTargetRef.Name}
	r.workload = newWorkload(t, &o, r.initial(), t.From)
	tol := tolerance(spec, &o.Settings)
	r.meter, r.recorded = newMeter(t, list, tol, spec.MaxReplicas), newMeter(t, list, tol, spec.MaxReplicas)
	for now := t.From; now.Before(t.To); now = now.Add(o.Sync) {
		r.sync(now, min(o.Sync, t.To.Sub(now)))
	}
	r.finish()
	return r.result, nil
}

// run is a replay under way.
type run struct {
	trace   *Trace
	spec    *autoscalingv2.HorizontalPodAutoscalerSpec
	options *Options
	targets []target
	object  types.NamespacedName

	workload        *workload
	status          autoscalingv2.HorizontalPodAutoscalerStatus
	memory          autoscaler.Memory
	meter, recorded *meter
	gaps            map[string]int // open ones, by metric: index in result.Gaps
	result          *Result
}

// initial is the count to begin with.
func (r *run) initial() int32 {
	if r.options.Initial > 0 {
		return r.options.Initial
	}
	if v, ok := r.trace.Replicas.At(r.trace.From, r.trace.hold()); ok {
		return int32(v)
	}
	// The first round of a recording may come a little after its beginning.
	if s := r.trace.Replicas; len(s) > 0 && s[0].At.Sub(r.trace.From) < r.trace.hold() {
		return int32(s[0].Value)
	}
	return least(r.spec)
}

// least is minReplicas.
func least(spec *autoscalingv2.HorizontalPodAutoscalerSpec) int32 {
	if spec.MinReplicas != nil {
		return *spec.MinReplicas
	}
	return 1
}

// sync decides once, carries it out, and counts the time until the next.
func (r *run) sync(now time.Time, span time.Duration) {
	w := r.workload
	current := int32(len(w.pods))
	d := autoscaler.Decide(&autoscaler.Input{
		Now:      now,
		Settings: &r.options.Settings,
		Object:   r.object,
		Spec:     r.spec,
		Status:   &r.status,
		Memory:   r.memory,
		Scale:    autoscaler.Scale{Spec: current, Status: current, Selector: "replay"},
		Pods:     w.look(now),
		Rivals:   []types.NamespacedName{r.object},
		Read:     func(i int) autoscaler.Reading { return r.targets[i].read(now, w) },
	})
	p := Point{At: now, Current: current, Desired: current, Ready: int32(w.ready(now)), Recommendation: -1, Use: -1, Demand: -1, Recorded: -1, Why: why(d)}
	if d.Chosen >= 0 && d.Chosen < len(d.Metrics) && d.Metrics[d.Chosen].Err == nil {
		p.Recommendation = d.Metrics[d.Chosen].Proposal
	}
	if d.Rescale {
		p.Desired = d.Desired
		w.scale(int(d.Desired), now)
	}
	done := d.Conclude(nil)
	r.status, r.memory = done.Status, done.Memory

	if use, pods, ok := load(r.targets, now, int(p.Ready)); ok {
		p.Use, p.Demand = finite(use), finite(pods)
	}
	r.meter.count(now, span, p.Desired, w.ready(now))
	if v, ok := r.trace.Replicas.At(now, r.trace.hold()); ok {
		p.Recorded = int32(v)
		r.recorded.count(now, span, p.Recorded, r.wereReady(now, p.Recorded))
	} else {
		r.recorded.miss(span)
	}
	r.note(now)
	r.result.Points = append(r.result.Points, p)
}

// wereReady is how many of the recorded pods were ready, as far as their count tells:
// those that there were a startup time ago, and still are.
func (r *run) wereReady(now time.Time, n int32) int {
	if then, ok := r.trace.Replicas.At(now.Add(-r.options.Startup), r.trace.hold()); ok {
		n = min(n, int32(then))
	}
	return int(n)
}

// finite is v, or -1: JSON has neither infinities nor NaN.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return -1
	}
	return v
}

// note opens and closes gaps.
func (r *run) note(now time.Time) {
	if r.gaps == nil {
		r.gaps = map[string]int{}
	}
	for i := range r.targets {
		name := r.targets[i].name
		at, open := r.gaps[name]
		_, known := r.targets[i].total(now)
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

// finish closes what is open and sums up.
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
