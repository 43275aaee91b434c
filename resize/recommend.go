package resize

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
)

// PodRecommendation is the recommendation for the requests of a pod, or of a workload's pods.
type PodRecommendation struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod,omitempty"` // empty for a workload
	// Workload is nil for a pod.
	Workload *WorkloadFacts `json:"workload,omitempty"`
	UID      string         `json:"uid,omitempty"`
	Node     string         `json:"node,omitempty"`
	QoS      Class          `json:"qosClass"` // no advice changes it
	// Requests has one Advice for each resource that the pod itself requests, and then one for each
	// container and resource, in the pod's order.
	Requests []Advice `json:"requests"`
	// Frees is the amount that the scheduler gets back if all proposals are applied; negative if
	// requests grow.
	Frees Freed `json:"frees"`
	// Pairs are changes of a request together with the target of the HPA that scales by it. Requests and
	// Frees do not include them.
	Pairs []Pair `json:"pairs,omitempty"`
	// Loads are what the pods of a workload used, for Reconsider.
	Loads []Load `json:"loads,omitempty"`
	// Notes are sentences to read before applying the recommendation.
	Notes []string `json:"notes,omitempty"`
}

// Freed is an amount of each resource.
type Freed struct {
	CPU    resource.Quantity `json:"cpu"`
	Memory resource.Quantity `json:"memory"`
}

// Of returns the amount of a resource.
func (f *Freed) Of(r Resource) *resource.Quantity {
	if r == Memory {
		return &f.Memory
	}
	return &f.CPU
}

// Advice is the recommendation for the request of one resource, of a container or of the pod itself.
type Advice struct {
	Container string   `json:"container"`         // empty for the pod itself
	Sidecar   bool     `json:"sidecar,omitempty"` // the container is in the list of init containers
	Resource  Resource `json:"resource"`
	// Request and Limit are the current values; nil if there is none.
	Request *resource.Quantity `json:"request,omitempty"`
	Limit   *resource.Quantity `json:"limit,omitempty"`
	Used    *UsageFigure       `json:"used,omitempty"` // nil if nothing was measured
	// Proposed is the proposed request; nil if the request stays. ProposedLimit is the limit that must
	// change with it; nil if the limit stays.
	Proposed      *resource.Quantity `json:"proposed,omitempty"`
	ProposedLimit *resource.Quantity `json:"proposedLimit,omitempty"`
	Reason        AdviceReason       `json:"reason"`
	Message       string             `json:"message"`

	need int64 // what would have been proposed, if the reason is Autoscaled
}

// MinChange is the smallest change that is proposed, as a share of the request.
const MinChange = 0.05

// minFreed is the least that a smaller request must free: less is not worth a change of a running
// pod.
var minFreed = Amounts{CPU: Of(10), Memory: Of(10 * mebibyte)}

// Recommend returns the recommendation for p. use returns a container's usage of a resource, in any
// order, or that of the whole pod if the name is empty; impossible values are ignored. Recommend keeps
// no reference to p.
func Recommend(p *PodResources, use func(container string, r Resource) []UsagePoint, o Options) *PodRecommendation {
	return recommend(p, nil, func(container string, r Resource) *UsageFigure {
		f := newFigure(r, &o, PodUsage{Points: use(container, r)})
		if f != nil {
			f.Pods, f.LongestSeconds = 0, 0
		}
		return f
	}, &o)
}

// recommend returns the recommendation for p or, if w is not nil, for a workload whose pods are like p.
func recommend(p *PodResources, w *Workload, figure func(container string, r Resource) *UsageFigure, o *Options) *PodRecommendation {
	rec := &PodRecommendation{Namespace: p.Namespace, Pod: p.Name, UID: p.UID, Node: p.Node, QoS: p.class(), Requests: []Advice{}}
	refused := p.firstRefusal()
	advise := func(c *ContainerResources, r Resource, refused *Refusal) {
		d := adviser{pod: p, workload: w, container: c, resource: r, options: o, used: figure(c.Name, r)}
		rec.Requests = append(rec.Requests, d.advise(refused))
	}
	resources := slices.DeleteFunc(Resources(), func(r Resource) bool { return !slices.Contains(o.Resources, r) })
	for _, r := range resources {
		if p.PodLevel.Requests.Get(r).Set {
			advise(&ContainerResources{Running: true, Requests: p.PodLevel.Requests, Limits: p.PodLevel.Limits}, r, refused)
		}
	}
	for i := range p.Containers {
		for _, r := range resources {
			refused := refused
			if refused == nil && p.PodLevel.Requests.Get(r).Set {
				refused = &Refusal{PodLevel, "the pod has requests of its own (spec.resources), which the scheduler uses: a smaller request of a container frees nothing"}
			}
			advise(&p.Containers[i], r, refused)
		}
	}
	rec.refuseClassChange(p, w)
	return rec
}

// firstRefusal returns the reason why no request of the pod can change; nil if one may change.
func (p *PodResources) firstRefusal() *Refusal {
	switch bars := p.podRefusals(); {
	case len(bars) > 0:
		return &bars[0]
	case p.Resizing != "":
		return &Refusal{Resizing, "a resize is under way: " + p.Resizing}
	}
	return nil
}

// adviser computes the advice about one container's request of one resource, or about the pod's own.
type adviser struct {
	pod       *PodResources
	workload  *Workload           // nil for a pod
	container *ContainerResources // without a name if it stands for the pod
	resource  Resource
	options   *Options
	used      *UsageFigure // nil if nothing was measured
}

// advise returns the advice. It checks last whether something prevents the change, so that the
// message can also describe what the change would have been.
func (ad *adviser) advise(refused *Refusal) Advice {
	request, limit := ad.container.Requests.Get(ad.resource), ad.container.Limits.Get(ad.resource)
	a := Advice{Container: ad.container.Name, Sidecar: ad.container.Role == cluster.Sidecar, Resource: ad.resource, Request: optionalQuantity(ad.resource, request), Limit: optionalQuantity(ad.resource, limit), Used: ad.used}
	if refused == nil {
		refused = ad.obstacle(request, a.Used)
	}
	if refused != nil {
		a.Reason, a.Message = refused.Reason, refused.Message
		return a
	}
	follows := ad.pod.class() == Guaranteed && ad.options.Limits // the limit changes with the request
	need, reason, text := ad.proposal(request, limit, a.Used, follows)
	a.Reason, a.Message = reason, text
	if !reason.Changes() {
		return a
	}
	change := ResourceChange{Container: ad.container.Name, Resource: ad.resource, Request: Of(need)}
	if follows {
		change.Limit = change.Request
	}
	bars := ad.pod.changeRefusals(change)
	if ad.workload != nil {
		bars = ad.workload.refusals(change)
	}
	if len(bars) > 0 {
		a.Reason, a.Message, a.need = bars[0].Reason, fmt.Sprintf("%s; but %s", text, bars[0].Message), need
		return a
	}
	a.Proposed = Quantity(ad.resource, need)
	if follows {
		a.ProposedLimit = Quantity(ad.resource, need)
	}
	return a
}

// obstacle returns the reason why there can be no proposal; nil if there can be one.
func (ad *adviser) obstacle(request Amount, used *UsageFigure) *Refusal {
	switch {
	case ad.container.Role == cluster.Init:
		return &Refusal{InitContainer, "an init container ends before the others start"}
	case !request.Set && (!ad.options.Up || ad.pod.class() == BestEffort):
		return &Refusal{NoRequest, fmt.Sprintf("no %s is requested", ad.resource)}
	case !ad.container.Running:
		return &Refusal{NotRunning, "the container does not run"}
	case used == nil && ad.workload != nil:
		return &Refusal{NoHistory, "no pod's container of this name was measured: `weir explain workload` shows why"}
	case used == nil:
		return &Refusal{NoHistory, "it was not measured: `weir explain pod` shows why"}
	case used.To.Sub(used.From) < ad.options.MinHistory:
		return &Refusal{ShortHistory, fmt.Sprintf("it was measured for %s, and at least %s are needed", used.duration(), humanize.Duration(ad.options.MinHistory))}
	case ad.workload != nil && used.LongestSeconds < minLife.Seconds():
		return &Refusal{ShortHistory, fmt.Sprintf("none of its %s was measured for longer than %s: pods that live less than %s peak between two readings",
			humanize.Count(used.Pods, "pod"), humanize.Seconds(used.LongestSeconds), humanize.Duration(minLife))}
	case ad.options.Tool != nil && used.Estimate == nil:
		return &Refusal{ShortHistory, fmt.Sprintf("%v recommends nothing from %s over %s", ad.options.Tool, used.readings(), used.duration())}
	}
	return nil
}

// proposal returns the request that fits the usage, the reason for the proposal or for none, and its
// text. follows is set if the limit changes with the request.
func (ad *adviser) proposal(request, limit Amount, used *UsageFigure, follows bool) (need int64, reason AdviceReason, text string) {
	need, text = ad.options.need(ad.resource, used)
	if floor := ad.options.aim(ad.resource).Floor; need < floor {
		if request.Set && request.Value <= floor {
			return need, Fits, fmt.Sprintf("%s, and the request is not above the floor, %s", text, FormatAmount(ad.resource, floor))
		}
		need = floor
		text += ", and the floor " + FormatAmount(ad.resource, floor)
	}
	if least := ad.least(follows); need < least {
		need = least
		text += ", and its containers have " + FormatAmount(ad.resource, least)
	}
	if least, reason := ad.workload.least(ad.container.Name, ad.resource, limit, follows); need < least {
		need = least
		text += ", and " + reason
	}
	switch short := float64(need - request.Value); {
	case short < -MinChange*float64(request.Value) && (request.Value-need)*ad.workload.running() >= minFreed.Get(ad.resource).Value:
		reason = Shrink
	case short <= MinChange*float64(request.Value):
		return need, Fits, text + ": about what is requested"
	case !ad.options.Up:
		return need, TooLow, text + ": more than is requested"
	default:
		reason = Grow
	}
	if limit.Set && need > limit.Value && !follows {
		if need = limit.Value; need == request.Value {
			return need, TooLow, text + ": more than is requested, which cannot exceed the limit"
		}
		text += "; the limit allows only " + FormatAmount(ad.resource, need)
	}
	return need, reason, text
}

// least returns the smallest request that Kubernetes accepts for the pod itself: what its containers
// request and, if the limit changes with the request, the highest of their limits.
func (ad *adviser) least(follows bool) int64 {
	if ad.container.Name != "" {
		return 0
	}
	least := ad.pod.together(ad.resource, ownRequests)
	for i := range ad.pod.Containers {
		if c := &ad.pod.Containers[i]; follows && c.Role == cluster.Regular {
			least = max(least, c.Limits.Get(ad.resource).Value)
		}
	}
	return least
}

// roundUp returns the least multiple of step that is not below value.
func roundUp(value, step int64) int64 { return (value + step - 1) / step * step }

// refuseClassChange refuses proposals that would change the pod's QoS class, sets the sum that is
// freed, and adds notes.
func (rec *PodRecommendation) refuseClassChange(p *PodResources, w *Workload) {
	after, _ := p.With(rec.Changes()) // no error: the changes are of p's own containers
	if class := ClassOf(after); class != rec.QoS && len(rec.Changes()) > 0 {
		for i := range rec.Requests {
			if a := &rec.Requests[i]; a.Reason.Changes() {
				a.Reason, a.Message = QoSClass, fmt.Sprintf("%s; but %s", a.Message, w.qosChangeMessage(rec.QoS, class))
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
				requests, _ := p.of(c.Container)
				sum += requests.Get(r).Value - c.Request.Value
			}
		}
		if kept := sum - freed.Get(r).Value; kept > 0 {
			rec.Notes = append(rec.Notes, fmt.Sprintf("%s of %s remain reserved: an init container requests them", FormatAmount(r, kept), r))
		}
	}
	if w == nil {
		rec.addGuaranteedNotes(p)
	}
}

// addGuaranteedNotes adds notes about changes of a Guaranteed pod that a kubelet may refuse.
func (rec *PodRecommendation) addGuaranteedNotes(p *PodResources) {
	pinned, memory := false, false
	for _, c := range rec.Changes() {
		if rec.QoS == Guaranteed {
			requests, _ := p.of(c.Container)
			request := requests.Get(c.Resource).Value
			pinned = pinned || c.Resource == CPU && request%1000 == 0
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

// Changes returns the changes that the proposals make.
func (rec *PodRecommendation) Changes() (changes []ResourceChange) {
	for i := range rec.Requests {
		a := &rec.Requests[i]
		if a.Proposed == nil {
			continue
		}
		change := ResourceChange{Container: a.Container, Resource: a.Resource, Request: Of(quantityValue(a.Resource, a.Proposed))}
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

// quantityValue returns the amount in a quantity; it is the inverse of Quantity.
func quantityValue(r Resource, q *resource.Quantity) int64 {
	if r == Memory {
		return q.Value()
	}
	return q.MilliValue()
}

// FormatAmount returns an amount for people. CPU and whole mebibytes of memory are exact and
// written as in manifests: "250m", "1536Mi". Other amounts of memory are rounded: "95.4Mi".
func FormatAmount(r Resource, value int64) string {
	if r == Memory && value%mebibyte != 0 {
		return humanize.Bytes(float64(value))
	}
	return Quantity(r, value).String()
}

// Total is the sum of what several recommendations free.
type Total struct {
	Name string
	Pods int // the number of pods that would have other requests
	Freed
}

// Totals adds up what recommendations free. It groups them by the name that nameOf returns, for
// example the node's or the namespace's. It ignores recommendations without a proposal.
func Totals(list []*PodRecommendation, nameOf func(*PodRecommendation) string) (totals []Total) {
	for _, rec := range list {
		if len(rec.Changes()) == 0 {
			continue
		}
		i, found := slices.BinarySearchFunc(totals, nameOf(rec), func(t Total, name string) int { return cmp.Compare(t.Name, name) })
		if !found {
			totals = slices.Insert(totals, i, Total{Name: nameOf(rec)})
		}
		totals[i].Pods += 1
		if rec.Workload != nil {
			totals[i].Pods += rec.Workload.Pods - 1
		}
		totals[i].CPU.Add(rec.Frees.CPU)
		totals[i].Memory.Add(rec.Frees.Memory)
	}
	return totals
}
