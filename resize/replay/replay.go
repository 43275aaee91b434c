// Package replay scores rules for requests on a trace: what would have been requested, used, missing
// and changed, had `weir resize recommend --up` run at an interval with each rule, and had each
// recommendation been applied.
//
//	r, err := replay.Run(ctx, entities, replay.Defaults())
//
// Run walks forward through each container. At each step, Recommend of package resize gets what was
// known by then, and the readings until the next step score its request. So all rules have the floors,
// the rounding and the least change of package resize. It is a model:
//
//   - The use of the trace does not depend on the request. Use above a limit is lost, not delayed.
//   - The limit is the request multiplied by a ratio, and changes with it.
//   - Memory above its limit is an OOM kill. The container starts again at once, and its request is
//     recommended again at once, with the kill known. Of the reading, rules see only the limit, because
//     a container never uses more. If the next reading is above the new limit, that is a kill, too.
//   - Each container is on its own: no rule learns from other replicas of a workload.
//
// Files: replay.go has the options and the walk; score.go what is counted; result.go the result, and svg.go
// its picture.
package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/trace"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/estimate"
)

// Options configures a replay. Start with Defaults.
type Options struct {
	// Estimators are names of package estimate.
	Estimators []string
	// Interval is the time between two recommendations.
	Interval time.Duration
	// Warmup is the share of each series, from 0 up to 1, that is only observed, and Until the share
	// after which readings are left out.
	Warmup, Until float64
	// History is how far back the rule of package resize looks. Other rules have a history of their own.
	History time.Duration
	// VPAPeaks is the time for which VPA keeps one peak of memory. It is 24 hours in VPA. In a trace of
	// a day it must be shorter.
	VPAPeaks time.Duration
	// LeastShrink is the least share by which a request shrinks. Smaller requests are not applied.
	LeastShrink float64
	// CPULimit and MemoryLimit are limits as multiples of the request; zero for none. Without a limit,
	// memory above the request counts as an OOM kill, because the node may run out.
	CPULimit, MemoryLimit float64
	// Floors are the smallest requests of all rules.
	Floors resize.Amounts
	// Resamples and Seed are of the bootstrap.
	Resamples int
	Seed      uint64
}

// Defaults returns the options of `weir resize replay` without flags.
func Defaults() Options {
	d := resize.Defaults()
	return Options{
		Estimators: estimate.Names(), Interval: time.Hour, Warmup: 1. / 3, Until: 1, History: 7 * 24 * time.Hour, VPAPeaks: 24 * time.Hour,
		MemoryLimit: 1, Floors: resize.Amounts{CPU: resize.Of(d.CPU.Floor), Memory: resize.Of(d.Memory.Floor)}, Resamples: 1000, Seed: 1,
	}
}

// Validate returns the first mistake in o.
func (o *Options) Validate() error {
	if err := o.validateEstimators(); err != nil {
		return err
	}
	switch {
	case o.Interval < time.Minute:
		return fmt.Errorf("the interval is %v: it must be a minute or more", o.Interval)
	case !(o.Warmup >= 0 && o.Warmup < o.Until && o.Until <= 1):
		return fmt.Errorf("the warm-up ends at %.4g%% of the trace and the replay at %.4g%%: the first must be less, and both from 0%% to 100%%", o.Warmup*100, o.Until*100)
	case o.History <= 0 || o.VPAPeaks < time.Minute:
		return fmt.Errorf("the history is %v and VPA's peaks are of %v: both must be longer", o.History, o.VPAPeaks)
	case !(o.LeastShrink >= 0 && o.LeastShrink < 1):
		return fmt.Errorf("the least share that a request shrinks is %.4g%%: it must be from 0%% to less than 100%%", o.LeastShrink*100)
	case !isRatio(o.CPULimit) || !isRatio(o.MemoryLimit):
		return errors.New("the ratio of limits to requests must be 0, for no limit, or from 1 to 100")
	case o.Resamples < 0 || o.Resamples > 100000:
		return fmt.Errorf("%d resamples are too many: at most 100000", o.Resamples)
	}
	return (&resize.Options{CPU: o.aim(resize.CPU), Memory: o.aim(resize.Memory)}).Validate()
}

func (o *Options) validateEstimators() error {
	if len(o.Estimators) == 0 {
		return errors.New("no estimator is named")
	}
	for _, name := range o.Estimators {
		if _, err := estimate.ParseTool(name); err != nil {
			return err
		}
	}
	return nil
}

func isRatio(r float64) bool { return r == 0 || r >= 1 && r <= 100 }

// aim returns the aim of package resize with the floor of o.
func (o *Options) aim(r resize.Resource) resize.Aim {
	d := resize.Defaults()
	a := d.CPU
	if r == resize.Memory {
		a = d.Memory
	}
	a.Floor = o.Floors.Get(r).Value
	return a
}

// newEstimator returns an estimator; nil for weir's own rule.
func (o *Options) newEstimator(name string) estimate.Estimator {
	switch name {
	case estimate.OwnRule:
		return nil
	case string(estimate.ToolVPA):
		v := estimate.VPADefaults()
		v.PeakInterval = o.VPAPeaks
		return estimate.NewVPA(v)
	}
	return estimate.Tool(name).NewEstimator()
}

// Run scores all estimators on all entities that have a metric "cpu" or "memory". An entity is left
// out if nothing of it remains after the warm-up.
func Run(ctx context.Context, entities []trace.Entity, o Options) (*Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	result := &Result{Options: o}
	for _, r := range resize.Resources() {
		scores := make([][]score, 1+len(o.Estimators)) // the baseline is the first
		requested := 0
		for i := range entities {
			h := newHistory(&entities[i], r, &o)
			if len(h.known) == len(h.use) {
				continue
			}
			if len(h.request) > 0 {
				requested++
			}
			base := h.baseline()
			scores[0] = append(scores[0], base)
			for n, name := range o.Estimators {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				scores[n+1] = append(scores[n+1], h.play(o.newEstimator(name), base.requested))
			}
		}
		result.add(r, scores, requested)
	}
	if len(result.Rows) == 0 {
		return nil, errors.New("the trace has no metric cpu or memory with readings after the warm-up: name the columns so, or lower --warmup")
	}
	return result, nil
}

// history is one resource of one container.
type history struct {
	options      *Options
	resource     resize.Resource
	use, request trace.Series
	durations    []time.Duration // of use
	warmup       time.Duration
	known        trace.Series // use in the warm-up
}

// newHistory returns the history up to Options.Until, without use that no container can have.
func newHistory(e *trace.Entity, r resize.Resource, o *Options) *history {
	h := &history{options: o, resource: r, request: e.Metrics[string(r)+"_request"]}
	h.use = resize.ValidPoints(e.Metrics[string(r)])
	if len(h.use) == 0 {
		return h
	}
	begin := h.use[0].At
	span := float64(h.use[len(h.use)-1].At.Sub(begin))
	h.use = h.use.Through(begin.Add(time.Duration(span * o.Until)))
	h.durations = h.use.Durations()
	h.warmup = time.Duration(span * o.Warmup).Truncate(time.Second)
	h.known = h.use.Through(begin.Add(h.warmup))
	return h
}

// baseline scores the requests in the trace or, if it has none, a request of the highest use.
func (h *history) baseline() (s score) {
	request := h.use.Peak()
	for i := len(h.known); i < len(h.use); i++ {
		if known := h.request.Through(h.use[i].At); len(known) > 0 {
			request = known[len(known)-1].Value
		} else if len(h.request) > 0 {
			request = h.request[0].Value
		}
		s.add(h.use[i], h.durations[i], request, h.limit(request))
		if h.isKilled(h.use[i].Value, request) {
			s.kills++
		}
	}
	s.baseline = s.requested
	s.end()
	return s
}

// limit returns the limit that belongs to a request, in cores or bytes; infinite if there is none.
func (h *history) limit(request float64) float64 {
	ratio := h.options.CPULimit
	if h.resource == resize.Memory {
		ratio = h.options.MemoryLimit
	}
	if ratio == 0 {
		return math.Inf(1)
	}
	return request * ratio
}

// isKilled reports whether the use is an OOM kill.
func (h *history) isKilled(use, request float64) bool {
	if h.options.MemoryLimit > 0 {
		request = h.limit(request)
	}
	return h.resource == resize.Memory && use > request
}

// play scores an estimator, or the rule of package resize if it is nil. baseline is what the baseline
// requested.
func (h *history) play(e estimate.Estimator, baseline float64) score {
	p := player{history: h, estimator: e, request: h.initial(), score: score{baseline: baseline}}
	for _, r := range h.known {
		p.observe(r)
	}
	next := len(h.known)
	for step := range h.use.Forward(h.warmup, h.options.Interval) {
		if p.recommend(step.Now); next == len(h.known) {
			p.score.changes = 0 // the first recommendation replaces a request that is not of the rule
		}
		for _, r := range step.Next {
			p.judge(r, h.durations[next])
			next++
		}
	}
	p.score.end()
	return p.score
}

// initial returns the first request, in millicores or bytes: that of the trace, else the peak in the
// warm-up.
func (h *history) initial() int64 {
	amount := h.known.Peak()
	if len(h.request) > 0 {
		amount = h.request[0].Value
	}
	if h.resource == resize.CPU {
		amount *= 1000
	}
	return max(int64(math.Ceil(amount)), h.options.Floors.Get(h.resource).Value)
}

// player replays one history with one rule.
type player struct {
	*history
	estimator estimate.Estimator
	seen      []resize.UsagePoint
	request   int64 // millicores or bytes
	score     score
}

func (p *player) observe(r trace.Reading) {
	if p.estimator != nil {
		p.estimator.Observe(estimate.Sample{Resource: p.resource, UsagePoint: r})
		p.seen = p.seen[:0] // the estimator has the others
	}
	p.seen = append(p.seen, r)
}

// judge counts a reading, and lets the rule see what it could have seen.
func (p *player) judge(r trace.Reading, lasts time.Duration) {
	request := float64(p.request)
	if p.resource == resize.CPU {
		request /= 1000
	}
	limit := p.limit(request)
	p.score.add(r, lasts, request, limit)
	killed := p.isKilled(r.Value, request)
	r.Value = min(r.Value, limit)
	p.observe(r)
	if !killed {
		return
	}
	p.score.kills++
	if p.estimator != nil {
		kill := estimate.OOMKill{At: r.At, Request: p.request}
		if p.options.MemoryLimit > 0 {
			kill.Limit = int64(limit)
		}
		p.estimator.ObserveOOMKill(kill)
	}
	p.recommend(r.At)
}

// recommend asks package resize for the request, and applies it.
func (p *player) recommend(now time.Time) {
	o := resize.Options{CPU: p.options.aim(resize.CPU), Memory: p.options.aim(resize.Memory), Resources: []resize.Resource{p.resource}, Up: true}
	if p.estimator == nil {
		p.seen = slices.DeleteFunc(p.seen, func(point resize.UsagePoint) bool { return !point.At.After(now.Add(-p.options.History)) })
	} else {
		o.Tool = tool{p.estimator, now}
	}
	pod := &resize.PodResources{Phase: string(cluster.Running), Containers: []resize.ContainerResources{{Name: "c", Role: cluster.Regular, Running: true}}}
	requests := &pod.Containers[0].Requests
	if p.resource == resize.CPU {
		requests.CPU = resize.Of(p.request)
	} else {
		requests.Memory = resize.Of(p.request)
	}
	usage := func(string, resize.Resource) []resize.UsagePoint { return p.seen }
	for _, change := range resize.Recommend(pod, usage, o).Changes() {
		if to := change.Request.Value; float64(to) > float64(p.request) || float64(to) <= float64(p.request)*(1-p.options.LeastShrink) {
			p.request = to
			p.score.changes++
		}
	}
}

// tool is an estimator that has observed everything already.
type tool struct {
	estimator estimate.Estimator
	now       time.Time
}

// Estimate implements resize.Tool.
func (t tool) Estimate(r resize.Resource, _ []resize.PodUsage) resize.Amount {
	requests := t.estimator.Recommend(t.now)
	return requests.Get(r)
}
