package resize

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/humanize"
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
	Used    *Usage             `json:"used,omitempty"` // nil where nothing was measured
	// Proposed is the request to ask for; nil where the request is to stay.
	// ProposedLimit is the limit that must go with it, if one must.
	Proposed      *resource.Quantity `json:"proposed,omitempty"`
	ProposedLimit *resource.Quantity `json:"proposedLimit,omitempty"`
	Reason        Reason             `json:"reason"`
	Message       string             `json:"message"`
}

// Usage is what was used, as one number.
type Usage struct {
	Percentile float64           `json:"percentile"`
	Value      resource.Quantity `json:"value"` // rounded up to millicores, bytes
	Samples    int               `json:"samples"`
	From       time.Time         `json:"from"`
	To         time.Time         `json:"to"`
}

// minChange is the smallest change that is worth making, as a share of the request.
const minChange = 0.05

// Recommend advises on the requests of p. Use returns what a container used of a resource,
// in any order; points that cannot be are left out. It keeps nothing of p.
func Recommend(p *Pod, use func(container string, r Resource) []UsagePoint, o Options) *Recommendation {
	rec := &Recommendation{Namespace: p.Namespace, Pod: p.Name, UID: p.UID, Node: p.Node, QoS: p.class(), Requests: []Advice{}}
	refused := p.firstRefusal()
	for i := range p.Containers {
		for _, r := range Resources() {
			if slices.Contains(o.Resources, r) {
				d := adviser{pod: p, container: &p.Containers[i], resource: r, options: &o, points: validPoints(use(p.Containers[i].Name, r))}
				rec.Requests = append(rec.Requests, d.advise(refused))
			}
		}
	}
	rec.refuseClassChange(p)
	return rec
}

// firstRefusal returns why nothing of the pod is advised on; nil if something may be.
func (p *Pod) firstRefusal() *Refusal {
	switch bars := p.podRefusals(); {
	case len(bars) > 0:
		return &bars[0]
	case p.PodLevel.Set:
		return &Refusal{PodLevel, "the pod has requests of its own (spec.resources), by which the scheduler goes: a container's frees nothing"}
	case p.Resizing != "":
		return &Refusal{Resizing, "a resize is under way: " + p.Resizing}
	}
	return nil
}

// adviser is about one container's request of one resource.
type adviser struct {
	pod       *Pod
	container *Container
	resource  Resource
	options   *Options
	points    []UsagePoint
}

// advise decides. What bars the change itself comes last, so that it is said beside what
// the change would have been.
func (d *adviser) advise(refused *Refusal) Advice {
	request, limit := d.container.Requests.Get(d.resource), d.container.Limits.Get(d.resource)
	a := Advice{Container: d.container.Name, Resource: d.resource, Request: optionalQuantity(d.resource, request), Limit: optionalQuantity(d.resource, limit)}
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
		return stay(ShortHistory, "it was measured for %s, and at least %s are needed", humanize.Duration(to.Sub(from).Round(time.Second)), humanize.Duration(d.options.MinHistory))
	}

	need, why := d.need(a.Used)
	if floor := d.options.aim(d.resource).Floor; need < floor {
		if request.Set && request.Value <= floor {
			return stay(Fits, "%s, and the request is not above the floor, %s", why, FormatAmount(d.resource, floor))
		}
		need = floor
		why += ", and the floor " + FormatAmount(d.resource, floor)
	}
	switch short := float64(need - request.Value); {
	case short < -minChange*float64(request.Value):
		a.Reason = Shrink
	case short <= minChange*float64(request.Value):
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
		why += ", of which the limit allows " + FormatAmount(d.resource, need)
	}
	if bars := d.pod.changeRefusals(Change{Container: d.container.Name, Resource: d.resource}); len(bars) > 0 {
		return stay(bars[0].Reason, "%s; but %s", why, bars[0].Message)
	}
	a.Proposed, a.Message = Quantity(d.resource, need), why
	if follows {
		a.ProposedLimit = Quantity(d.resource, need)
	}
	return a
}

func (d *adviser) figure(from, to time.Time) *Usage {
	aim := d.options.aim(d.resource)
	value := quantile(d.points, aim.Percentile)
	if d.resource == CPU {
		value = math.Round(value*1e9) / 1e6 // the kernel counts in nanoseconds
	}
	return &Usage{Percentile: aim.Percentile, Value: *Quantity(d.resource, int64(math.Ceil(value))), Samples: len(d.points), From: from.UTC(), To: to.UTC()}
}

// need returns the request that fits what was used, and says how it comes about.
func (d *adviser) need(used *Usage) (need int64, why string) {
	aim := d.options.aim(d.resource)
	value, step := used.Value.MilliValue(), int64(1)
	if d.resource == Memory {
		value, step = used.Value.Value(), mebibyte
	}
	// A ten-thousandth is what float64 may add to the headroom.
	need = int64(math.Ceil(float64(value)*(1+aim.Headroom) - 1e-4))
	need = (need + step - 1) / step * step
	why = fmt.Sprintf("%s; %.4g%% more is %s", used.describe(d.resource), aim.Headroom*100, FormatAmount(d.resource, need))
	return need, why
}

// refuseClassChange turns what would alter the pod's class into refusals, adds up what is freed,
// and notes what must be known.
func (rec *Recommendation) refuseClassChange(p *Pod) {
	after, _ := p.With(rec.Changes()) // never an error: advice is about p's own containers
	if is := ClassOf(after); is != rec.QoS && len(rec.Changes()) > 0 {
		for i := range rec.Requests {
			if a := &rec.Requests[i]; a.Reason.Changes() {
				a.Reason, a.Message = QoSClass, fmt.Sprintf("%s; but %s", a.Message, qosChangeMessage(rec.QoS, is))
				a.Proposed, a.ProposedLimit = nil, nil
			}
		}
		after = p
	}
	freed := Reserved(p).minus(Reserved(after))
	rec.Frees = Freed{*Quantity(CPU, freed.CPU.Value), *Quantity(Memory, freed.Memory.Value)}
	for _, r := range Resources() {
		var sum int64
		for _, c := range rec.Changes() {
			if c.Resource == r {
				sum += p.Container(c.Container).Requests.Get(r).Value - c.Request.Value
			}
		}
		if kept := sum - freed.Get(r).Value; kept > 0 {
			rec.Notes = append(rec.Notes, fmt.Sprintf("%s of %s stay reserved: an init container asks for them", FormatAmount(r, kept), r))
		}
	}
	rec.addGuaranteedNotes(p)
}

// addGuaranteedNotes notes what a kubelet may make of a Guaranteed pod's changes.
func (rec *Recommendation) addGuaranteedNotes(p *Pod) {
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
		change := Change{Container: a.Container, Resource: a.Resource, Request: Of(quantityValue(a.Resource, a.Proposed))}
		if a.ProposedLimit != nil {
			change.Limit = Of(quantityValue(a.Resource, a.ProposedLimit))
		}
		changes = append(changes, change)
	}
	return changes
}

func optionalQuantity(r Resource, a Amount) *resource.Quantity {
	if !a.Set {
		return nil
	}
	return Quantity(r, a.Value)
}

// quantityValue is the inverse of Quantity.
func quantityValue(r Resource, q *resource.Quantity) int64 {
	if r == Memory {
		return q.Value()
	}
	return q.MilliValue()
}

// FormatAmount returns an amount for people. What a manifest can say shortly is exact ("250m", "1536Mi"); other
// amounts of memory are rounded ("95.4Mi").
func FormatAmount(r Resource, value int64) string {
	if r == Memory && value%mebibyte != 0 {
		return humanize.Bytes(float64(value))
	}
	return Quantity(r, value).String()
}

// describe says what was used: "95% of 60 readings over 14m45s are at most 62m".
func (f *Usage) describe(r Resource) string {
	amount := FormatAmount(r, quantityValue(r, &f.Value))
	if f.Percentile == 100 {
		return fmt.Sprintf("the highest of %d readings over %s is %s", f.Samples, humanize.Duration(f.To.Sub(f.From).Round(time.Second)), amount)
	}
	return fmt.Sprintf("%.4g%% of %d readings over %s are at most %s", f.Percentile, f.Samples, humanize.Duration(f.To.Sub(f.From).Round(time.Second)), amount)
}

// UsagePoint is what a container used at a time: cores, or bytes of working set.
type UsagePoint struct {
	At    time.Time
	Value float64
}

// quantile returns the value that a share of the points, in percent, do not exceed: the
// nearest rank, so it is always one that was measured. 100 gives the highest. Points must
// not be empty.
func quantile(points []UsagePoint, percent float64) float64 {
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.Value
	}
	slices.Sort(values)
	rank := int(math.Ceil(percent / 100 * float64(len(values))))
	return values[min(max(rank, 1), len(values))-1]
}

// validPoints returns the points that can be: what is negative, endless or no number was never
// used.
func validPoints(points []UsagePoint) []UsagePoint {
	return slices.DeleteFunc(slices.Clone(points), func(p UsagePoint) bool {
		return !(p.Value >= 0) || p.Value > maxValue
	})
}

// maxValue is more than any container uses, of cores or of bytes: it keeps sums within int64.
const maxValue = 1 << 53

// span returns the time from the first of the points to the last.
func span(points []UsagePoint) (from, to time.Time) {
	for i, p := range points {
		if i == 0 || p.At.Before(from) {
			from = p.At
		}
		if i == 0 || p.At.After(to) {
			to = p.At
		}
	}
	return from, to
}

// Total is what following some recommendations frees.
type Total struct {
	// Name is the node's or the namespace's; empty for the sum of all.
	Name string
	Pods int // that would be resized
	Amounts
}

// Totals adds up what recommendations free: on each node, in each namespace, and in all.
// Those that propose nothing are not in it.
func Totals(list []*Recommendation) (nodes, namespaces []Total, all Total) {
	byNode, byNamespace := map[string]*Total{}, map[string]*Total{}
	for _, rec := range list {
		if len(rec.Changes()) == 0 {
			continue
		}
		for _, t := range []*Total{totalOf(byNode, rec.Node), totalOf(byNamespace, rec.Namespace), &all} {
			t.Pods++
			t.CPU = Of(t.CPU.Value + rec.Frees.CPU.MilliValue())
			t.Memory = Of(t.Memory.Value + rec.Frees.Memory.Value())
		}
	}
	return sortedTotals(byNode), sortedTotals(byNamespace), all
}

func totalOf(totals map[string]*Total, name string) *Total {
	if totals[name] == nil {
		totals[name] = &Total{Name: name}
	}
	return totals[name]
}

func sortedTotals(totals map[string]*Total) (list []Total) {
	for _, t := range totals {
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b Total) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
