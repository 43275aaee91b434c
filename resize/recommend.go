package resize

import (
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/cluster"
)

// Recommendation is what is advised about a pod's requests.
type Recommendation struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	UID       string `json:"uid,omitempty"`
	Node      string `json:"node,omitempty"`
	QoS       Class  `json:"qosClass"` // which no advice alters
	// Requests has one piece of advice for each container and resource, in the pod's order.
	Requests []Advice `json:"requests"`
	// Frees is what the scheduler can give to others once all of it is followed; below
	// zero where requests grow.
	Frees Freed `json:"frees"`
	// Notes are sentences about what to know before following it.
	Notes []string `json:"notes,omitempty"`
}

// Freed is an amount of each resource.
type Freed struct {
	CPU    resource.Quantity `json:"cpu"`
	Memory resource.Quantity `json:"memory"`
}

// Advice is what is advised about a container's request of a resource.
type Advice struct {
	Container string   `json:"container"`
	Resource  Resource `json:"resource"`
	// Request and Limit are as they are; nil where there is none.
	Request *resource.Quantity `json:"request,omitempty"`
	Limit   *resource.Quantity `json:"limit,omitempty"`
	Used    *Figure            `json:"used,omitempty"` // nil where nothing was measured
	// Proposed is the request to ask for; nil where the request is to stay.
	// ProposedLimit is the limit that must go with it, if one must.
	Proposed      *resource.Quantity `json:"proposed,omitempty"`
	ProposedLimit *resource.Quantity `json:"proposedLimit,omitempty"`
	Reason        Reason             `json:"reason"`
	Message       string             `json:"message"`
}

// Figure is what was used, as one number.
type Figure struct {
	Percentile float64           `json:"percentile"`
	Value      resource.Quantity `json:"value"` // rounded up to millicores, bytes
	Samples    int               `json:"samples"`
	From       time.Time         `json:"from"`
	To         time.Time         `json:"to"`
}

// least is the smallest change that is worth making, as a share of the request.
const least = 0.05

// Recommend advises on the requests of p. Use returns what a container used of a resource,
// in any order; points that cannot be are left out. It keeps nothing of p.
func Recommend(p *Pod, use func(container string, r Resource) []Point, o Options) *Recommendation {
	rec := &Recommendation{Namespace: p.Namespace, Pod: p.Name, UID: p.UID, Node: p.Node, QoS: p.class(), Requests: []Advice{}}
	refused := p.refused()
	for i := range p.Containers {
		for _, r := range Resources() {
			if slices.Contains(o.Resources, r) {
				d := deliberation{pod: p, container: &p.Containers[i], resource: r, options: &o, points: sane(use(p.Containers[i].Name, r))}
				rec.Requests = append(rec.Requests, d.advise(refused))
			}
		}
	}
	rec.conclude(p)
	return rec
}

// refused returns why nothing of the pod is advised on; nil if something may be.
func (p *Pod) refused() *Refusal {
	switch bars := p.barred(); {
	case len(bars) > 0:
		return &bars[0]
	case p.PodLevel.Set:
		return &Refusal{PodLevel, "the pod has requests of its own (spec.resources), by which the scheduler goes: a container's frees nothing"}
	case p.Resizing != "":
		return &Refusal{Resizing, "a resize is under way: " + p.Resizing}
	}
	return nil
}

// deliberation is about one container's request of one resource.
type deliberation struct {
	pod       *Pod
	container *Container
	resource  Resource
	options   *Options
	points    []Point
}

// advise decides. What bars the change itself comes last, so that it is said beside what
// the change would have been.
func (d *deliberation) advise(refused *Refusal) Advice {
	request, limit := d.container.Requests.Get(d.resource), d.container.Limits.Get(d.resource)
	a := Advice{Container: d.container.Name, Resource: d.resource, Request: quantity(d.resource, request), Limit: quantity(d.resource, limit)}
	from, to := span(d.points)
	stay := func(reason Reason, format string, args ...any) Advice {
		a.Reason, a.Message = reason, fmt.Sprintf(format, args...)
		return a
	}
	if len(d.points) > 0 {
		a.Used = d.figure(from, to)
	}
	switch {
	case refused != nil:
		return stay(refused.Reason, "%s", refused.Message)
	case d.container.Role == cluster.Init:
		return stay(InitContainer, "an init container ends before the others start")
	case !request.Set && (!d.options.Up || d.pod.class() == BestEffort):
		return stay(NoRequest, "no %s is requested", d.resource)
	case !d.container.Running:
		return stay(NotRunning, "the container does not run")
	case a.Used == nil:
		return stay(NoHistory, "it was not measured: `weir explain pod` says why")
	case to.Sub(from) < d.options.MinHistory:
		return stay(ShortHistory, "it was measured for %v, and that is to be %v", length(from, to), d.options.MinHistory)
	}

	need, why := d.need(a.Used)
	if floor := d.options.aim(d.resource).Floor; need < floor {
		if request.Set && request.Value <= floor {
			return stay(Fits, "%s, and the request is not above the floor, %s", why, Tell(d.resource, floor))
		}
		need = floor
		why += ", and the floor " + Tell(d.resource, floor)
	}
	switch short := float64(need - request.Value); {
	case short < -least*float64(request.Value):
		a.Reason = Shrink
	case short <= least*float64(request.Value):
		return stay(Fits, "%s: about what is requested", why)
	case !d.options.Up:
		return stay(TooLow, "%s: more than is requested", why)
	default:
		a.Reason = Grow
	}
	follows := d.pod.class() == Guaranteed && d.options.Limits // the limit with the request
	if limit.Set && need > limit.Value && !follows {
		if need = limit.Value; need == request.Value {
			return stay(TooLow, "%s: more than is requested, which cannot exceed the limit", why)
		}
		why += ", of which the limit allows " + Tell(d.resource, need)
	}
	if bars := d.pod.bars(Change{Container: d.container.Name, Resource: d.resource}); len(bars) > 0 {
		return stay(bars[0].Reason, "%s; but %s", why, bars[0].Message)
	}
	a.Proposed, a.Message = Quantity(d.resource, need), why
	if follows {
		a.ProposedLimit = Quantity(d.resource, need)
	}
	return a
}

func (d *deliberation) figure(from, to time.Time) *Figure {
	aim := d.options.aim(d.resource)
	value := quantile(d.points, aim.Percentile)
	if d.resource == CPU {
		value = math.Round(value*1e9) / 1e6 // the kernel counts in nanoseconds
	}
	return &Figure{Percentile: aim.Percentile, Value: *Quantity(d.resource, int64(math.Ceil(value))), Samples: len(d.points), From: from.UTC(), To: to.UTC()}
}

// need returns the request that fits what was used, and says how it comes about.
func (d *deliberation) need(used *Figure) (need int64, why string) {
	aim := d.options.aim(d.resource)
	value, step := used.Value.MilliValue(), int64(1)
	if d.resource == Memory {
		value, step = used.Value.Value(), mebibyte
	}
	// A ten-thousandth is what float64 may add to the headroom.
	need = int64(math.Ceil(float64(value)*(1+aim.Headroom) - 1e-4))
	need = (need + step - 1) / step * step
	why = fmt.Sprintf("%s; %.4g%% more is %s", used.tell(d.resource), aim.Headroom*100, Tell(d.resource, need))
	return need, why
}

// conclude turns what would alter the pod's class into refusals, adds up what is freed,
// and notes what must be known.
func (rec *Recommendation) conclude(p *Pod) {
	after, _ := p.With(rec.Changes()) // never an error: advice is about p's own containers
	if is := ClassOf(after); is != rec.QoS && len(rec.Changes()) > 0 {
		for i := range rec.Requests {
			if a := &rec.Requests[i]; a.Reason.Changes() {
				a.Reason, a.Message = QoSClass, fmt.Sprintf("%s; but %s", a.Message, crossing(rec.QoS, is))
				a.Proposed, a.ProposedLimit = nil, nil
			}
		}
		after = p
	}
	freed := Reserved(p).less(Reserved(after))
	rec.Frees = Freed{*Quantity(CPU, freed.CPU.Value), *Quantity(Memory, freed.Memory.Value)}
	for _, r := range Resources() {
		var sum int64
		for _, c := range rec.Changes() {
			if c.Resource == r {
				sum += p.Container(c.Container).Requests.Get(r).Value - c.Request.Value
			}
		}
		if kept := sum - freed.Get(r).Value; kept > 0 {
			rec.Notes = append(rec.Notes, fmt.Sprintf("%s of %s stay reserved: an init container asks for them", Tell(r, kept), r))
		}
	}
	rec.warn(p)
}

// warn notes what a kubelet may make of a Guaranteed pod's changes.
func (rec *Recommendation) warn(p *Pod) {
	pinned, memory := false, false
	for _, c := range rec.Changes() {
		if rec.QoS == Guaranteed {
			was := p.Container(c.Container).Requests.Get(c.Resource).Value
			pinned = pinned || c.Resource == CPU && was%1000 == 0
			memory = memory || c.Resource == Memory && c.Limit.Set
		}
	}
	if pinned {
		rec.Notes = append(rec.Notes, "a Guaranteed pod of whole CPUs may have some to itself: where the node's CPU manager policy is static, its kubelet calls the resize infeasible")
	}
	if memory {
		rec.Notes = append(rec.Notes, "a kubelet lowers a memory limit only while all that is in use, page cache included, is below it")
	}
}

// Changes returns what following the recommendation comes to.
func (rec *Recommendation) Changes() (changes []Change) {
	for i := range rec.Requests {
		a := &rec.Requests[i]
		if a.Proposed == nil {
			continue
		}
		change := Change{Container: a.Container, Resource: a.Resource, Request: Of(value(a.Resource, a.Proposed))}
		if a.ProposedLimit != nil {
			change.Limit = Of(value(a.Resource, a.ProposedLimit))
		}
		changes = append(changes, change)
	}
	return changes
}

func quantity(r Resource, a Amount) *resource.Quantity {
	if !a.Set {
		return nil
	}
	return Quantity(r, a.Value)
}

// value is the inverse of Quantity.
func value(r Resource, q *resource.Quantity) int64 {
	if r == Memory {
		return q.Value()
	}
	return q.MilliValue()
}
