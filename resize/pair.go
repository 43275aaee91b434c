package resize

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
)

// Pair is a change of requests together with the target of the HPA that scales by them, so that the HPA
// keeps the use of a pod at the same amount: request × target.
type Pair struct {
	Autoscaler string   `json:"autoscaler"`
	Resource   Resource `json:"resource"`
	// Container is the container that the HPA's metric is about; empty if it is about the sum of the pod.
	Container string `json:"container,omitempty"`
	// Requests are the changes of the template. If Refused is set, they would have been closest.
	Requests []PairedRequest `json:"requests,omitempty"`
	// Target is the averageUtilization in percent, and NewTarget the one for the new requests.
	Target    int32 `json:"target"`
	NewTarget int32 `json:"newTarget,omitempty"`
	// Product and NewProduct are request × target, of what the metric is about.
	Product    *resource.Quantity `json:"product,omitempty"`
	NewProduct *resource.Quantity `json:"newProduct,omitempty"`
	// DifferencePercent is how much NewProduct differs from Product, because targets are integers.
	DifferencePercent float64 `json:"differencePercent"`
	// Compared is at how many times of the past the HPA would have wanted the same number of pods with
	// both.
	Compared int `json:"compared,omitempty"`
	// Refused is the reason why the two cannot change together; empty if they can.
	Refused string `json:"refused,omitempty"`
	// By is the HPA's target.
	By *UtilizationTarget `json:"-"`
}

// PairedRequest is a change of a request in a Pair.
type PairedRequest struct {
	Container string            `json:"container"`
	Request   resource.Quantity `json:"request"`
	Proposed  resource.Quantity `json:"proposed"`
}

const (
	// maxNudge is by how much a request may be above what is needed so that the target is closer to an
	// integer.
	maxNudge = 0.05
	// maxCandidates is how many requests in this range are considered. With maxNudge of 5% it is as many
	// as there are millicores for requests of up to 640m.
	maxCandidates = 32
)

// covers reports whether the utilization includes the request of a container.
func (t *UtilizationTarget) covers(container string, r Resource) bool {
	return t.Resource == r && (t.Container == "" || t.Container == container)
}

// SetPercent sets the target in a copy of t.Spec.
func (t *UtilizationTarget) SetPercent(spec *autoscalingv2.HorizontalPodAutoscalerSpec, percent int32) {
	if m := &spec.Metrics[t.Metric]; m.Resource != nil {
		m.Resource.Target.AverageUtilization = &percent
	} else {
		m.ContainerResource.Target.AverageUtilization = &percent
	}
}

// addPairs adds the pairs of the requests that stay in rec because of an HPA. measured is the
// recommendation by the requests of the pods.
func (w *Workload) addPairs(rec, measured *PodRecommendation) {
	for i := range w.Autoscalers {
		t := &w.Autoscalers[i]
		var kept []*Advice
		for j := range rec.Requests {
			if a := &rec.Requests[j]; a.Reason == Autoscaled && a.Request != nil && t.covers(a.Container, a.Resource) {
				kept = append(kept, a)
			}
		}
		if len(kept) == 0 || t.Spec == nil {
			continue
		}
		p := pairing{workload: w, rec: rec, target: t, kept: kept, unit: thousandths(t.Resource)}
		for _, l := range measured.Loads {
			if l.Container == t.Container && l.Resource == t.Resource {
				// Without a reading the HPA does nothing.
				p.load = slices.DeleteFunc(slices.Clone(l.Readings), func(r LoadReading) bool { return r.Pods <= 0 || r.Missing < 0 })
			}
		}
		pair := Pair{Autoscaler: t.Autoscaler, Resource: t.Resource, Container: t.Container, Target: t.Percent, By: t}
		pair.Refused = p.find(&pair, measured)
		rec.Pairs = append(rec.Pairs, pair)
	}
}

// pairing finds a Pair.
type pairing struct {
	workload *Workload
	rec      *PodRecommendation // for the template
	target   *UtilizationTarget
	kept     []*Advice // the requests that would change
	load     []LoadReading
	wanted   []autoscaler.MetricDecision // at each load, with the requests and the target of today
	unit     int64                       // thousandths in a unit of a request: a millicore, or a byte
	before   int64                       // what a pod requests, in thousandths
}

// find fills the pair with the requests whose target is closest to an integer, and with which the HPA
// would have wanted the same number of pods. It returns the reason if there are none.
func (p *pairing) find(pair *Pair, measured *PodRecommendation) (refused string) {
	if refused := p.obstacle(measured); refused != "" {
		return refused
	}
	propose := p.proposer(p.before, p.target.Percent)
	for i := range p.load {
		d := propose(&p.load[i])
		d.Pods = nil // not needed, and large
		p.wanted = append(p.wanted, d)
	}
	candidates := p.candidates()
	for i := range candidates {
		c := &candidates[i]
		reason := p.check(c)
		if i == 0 || reason == "" {
			p.fill(pair, c)
			refused = reason
		}
		if reason == "" {
			pair.Compared = len(p.load)
			return ""
		}
	}
	return refused
}

// obstacle sets what a pod requests now, and returns the reason why no pair can be computed.
func (p *pairing) obstacle(measured *PodRecommendation) string {
	for i := range p.workload.Autoscalers {
		other := &p.workload.Autoscalers[i]
		if other != p.target && slices.ContainsFunc(p.kept, func(a *Advice) bool { return other.covers(a.Container, a.Resource) }) {
			return fmt.Sprintf("another target of HPA %s is a share of the same request", other.Autoscaler)
		}
	}
	switch {
	case p.workload.Template.PodLevel.Set:
		return "the pod has requests of its own (spec.resources)"
	case p.rec.QoS == Guaranteed:
		return "its pods are Guaranteed, and their limits would have to change, too"
	}
	injected := slices.DeleteFunc(slices.Clone(measured.Requests), func(a Advice) bool { return a.Container == "" || p.workload.Template.Container(a.Container) != nil })
	for _, a := range slices.Concat(p.rec.Requests, injected) {
		switch {
		case a.Reason == InitContainer || !p.target.covers(a.Container, a.Resource):
		case a.Used == nil:
			return fmt.Sprintf("container %s was not measured", a.Container)
		case a.Request == nil:
			return fmt.Sprintf("container %s requests no %s", a.Container, a.Resource)
		default:
			p.before += quantityValue(a.Resource, a.Request) * p.unit
		}
	}
	if len(p.load) == 0 {
		return "the readings of each time are not known: name the workload, and ask a weir of the same version"
	}
	return ""
}

// pairCandidate is a possible Pair.
type pairCandidate struct {
	changes    []ResourceChange // one for each kept request
	after      int64            // what a pod would request, in thousandths
	target     int32
	difference float64 // of request × target, as a share
}

// candidates returns possible pairs, the one with the least difference first. In all of them, requests are
// what is needed, but for the largest, which may be a few steps above.
func (p *pairing) candidates() (list []pairCandidate) {
	changes := make([]ResourceChange, len(p.kept))
	largest, after := 0, p.before
	for i, a := range p.kept {
		changes[i] = ResourceChange{Container: a.Container, Resource: a.Resource, Request: Of(a.need)}
		after += (a.need - quantityValue(a.Resource, a.Request)) * p.unit
		if a.need > p.kept[largest].need {
			largest = i
		}
	}
	a, step := p.kept[largest], int64(1)
	if a.Resource == Memory {
		step = mebibyte
	}
	top := a.need + int64(maxNudge*float64(a.need))
	if request := quantityValue(a.Resource, a.Request); a.need < request {
		top = min(top, request-step) // it still shrinks
	}
	if a.Limit != nil {
		top = min(top, quantityValue(a.Resource, a.Limit))
	}
	step *= max(1, (top-a.need)/step/maxCandidates+1)
	for need := a.need; need == a.need || need <= top; need += step {
		c := pairCandidate{changes: slices.Clone(changes), after: after + (need-a.need)*p.unit}
		c.changes[largest].Request = Of(need)
		wanted := float64(p.before) * float64(p.target.Percent)
		c.target = int32(min(max(math.Round(wanted/float64(c.after)), 1), math.MaxInt32))
		c.difference = (float64(c.after)*float64(c.target) - wanted) / wanted
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b pairCandidate) int {
		return cmp.Compare(math.Abs(a.difference), math.Abs(b.difference))
	})
	return list
}

// check returns the reason why the HPA or the namespace forbids the pair; empty if nothing does.
func (p *pairing) check(c *pairCandidate) string {
	refusals, err := p.workload.Check(c.changes)
	if err != nil {
		return err.Error()
	}
	for _, r := range refusals {
		if r.Reason != Autoscaled {
			return r.Message
		}
	}
	propose := p.proposer(c.after, c.target)
	for i := range p.load {
		after := propose(&p.load[i])
		if reason := p.compare(&p.load[i], &p.wanted[i], &after, c); reason != "" {
			return reason
		}
	}
	return ""
}

// compare returns the reason if, at a time, the HPA would have wanted another number of pods.
func (p *pairing) compare(l *LoadReading, before, after *autoscaler.MetricDecision, c *pairCandidate) string {
	tolerance := min(before.ToleranceUp, before.ToleranceDown)
	at := l.At.UTC().Format(time.DateTime)
	switch {
	case math.Abs(c.difference) > tolerance:
		return fmt.Sprintf("a target is a whole number, and with %d%% request × target would differ by %.2g%%, which is more than the HPA's tolerance of %.3g%%", c.target, 100*math.Abs(c.difference), 100*tolerance)
	case before.Err != nil || after.Err != nil:
		return fmt.Sprintf("at %s UTC the HPA would have had no number: %v", at, cmp.Or(before.Err, after.Err))
	case before.Proposal != after.Proposal:
		missing := ""
		if l.Missing > 0 {
			missing = fmt.Sprintf(", and %d more had no reading", l.Missing)
		}
		return fmt.Sprintf("at %s UTC %s used %s%s: that was %d%% of the request, and with a target of %d%% the HPA wanted %s; it would have been %d%%, and with a target of %d%% it would have wanted %s",
			at, humanize.Count(l.Pods, "pod"), FormatAmount(p.target.Resource, l.Milli/p.unit), missing,
			before.Utilization, p.target.Percent, humanize.Count(before.Proposal, "pod"), after.Utilization, c.target, humanize.Count(after.Proposal, "pod"))
	}
	return ""
}

// proposer returns what the HPA's metric alone proposes for a load, if all pods request the same and are
// ready. How the use is distributed over the pods does not matter, because the HPA adds it up.
func (p *pairing) proposer(request int64, target int32) func(l *LoadReading) autoscaler.MetricDecision {
	settings, spec, most := autoscaler.DefaultSettings(), p.target.Spec.DeepCopy(), 0
	p.target.SetPercent(spec, target)
	for i := range p.load {
		most = max(most, p.load[i].Pods+p.load[i].Missing)
	}
	amount := autoscaler.MilliQuantity{Milli: request, Set: true}
	container := []autoscaler.ContainerInput{{Name: p.target.Container, Requests: autoscaler.Requests{CPU: amount, Memory: amount}}}
	pods, samples := make([]autoscaler.PodInput, most), make([]autoscaler.PodSample, most)
	for i := range pods {
		samples[i].Pod = fmt.Sprintf("%09d", i)
		pods[i] = autoscaler.PodInput{Name: samples[i].Pod, Phase: cluster.Running, Started: time.Unix(0, 0), Ready: cluster.ReadyTrue, Containers: container}
	}
	return func(l *LoadReading) autoscaler.MetricDecision {
		n := l.Pods + l.Missing
		samples[0].Milli = l.Milli
		return autoscaler.Propose(&autoscaler.Input{
			Now: l.At, Settings: &settings, Spec: spec, Scale: autoscaler.Scale{SpecReplicas: int32(n)}, Pods: pods[:n],
			ReadMetric: func(int) autoscaler.Reading { return autoscaler.Reading{Samples: samples[:l.Pods], At: l.At} },
		}, p.target.Metric)
	}
}

// fill sets what the pair changes.
func (p *pairing) fill(pair *Pair, c *pairCandidate) {
	product := func(request int64, target int32) *resource.Quantity {
		amount := float64(request) * float64(target) / 100
		if p.target.Resource == Memory {
			return resource.NewQuantity(int64(math.Round(amount/1000)), resource.BinarySI)
		}
		return resource.NewScaledQuantity(int64(math.Round(amount*1000)), resource.Micro)
	}
	pair.Requests = nil
	for i, a := range p.kept {
		pair.Requests = append(pair.Requests, PairedRequest{a.Container, *a.Request, *Quantity(a.Resource, c.changes[i].Request.Value)})
	}
	pair.NewTarget, pair.Product, pair.NewProduct = c.target, product(p.before, p.target.Percent), product(c.after, c.target)
	pair.DifferencePercent = math.Round(1e6*c.difference) / 1e4
}
