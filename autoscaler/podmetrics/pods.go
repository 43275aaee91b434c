package podmetrics

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// errPodsUnknown is the error before the first list of pods.
var errPodsUnknown = errors.New("the API server has not listed pods yet")

// Pods returns the pods of a namespace that a selector matches, sorted by name.
func (r *Reader) Pods(namespace string, sel labels.Selector) ([]autoscaler.PodInput, error) {
	facts := r.options.Facts()
	if facts == nil || !facts.Synced {
		return nil, errPodsUnknown
	}
	found := r.index.Find(facts, metric.Namespace(namespace), sel)
	pods := make([]autoscaler.PodInput, 0, len(found))
	for _, p := range found {
		if r.at.IsZero() {
			pods = append(pods, podOf(p))
		} else if existedAt(p, r.at) {
			earlier := podOf(p)
			earlier.Terminating = earlier.Terminating && !p.Deleted.After(r.at)
			pods = append(pods, earlier)
		}
	}
	return pods, nil
}

// existedAt reports whether a pod existed at a time: it had started by then. A pod that has not
// started yet counts if weir knew it.
func existedAt(p *cluster.Pod, at time.Time) bool {
	if p.Started.IsZero() {
		return !p.KnownAt.After(at)
	}
	return !p.Started.After(at)
}

// podOf returns the part of a pod that a decision uses.
func podOf(p *cluster.Pod) autoscaler.PodInput {
	containers := make([]autoscaler.ContainerInput, 0, len(p.Containers))
	// Regular containers come first, as in Kubernetes' controller, because an error names the first
	// container without a request.
	for _, regular := range [...]bool{true, false} {
		for i := range p.Containers {
			c := &p.Containers[i]
			if c.Role != cluster.Ephemeral && (c.Role == cluster.Regular) == regular {
				containers = append(containers, autoscaler.ContainerInput{Name: c.Name, Role: c.Role, Requests: autoscaler.RequestsOf(c.Spec)})
			}
		}
	}
	return autoscaler.PodInput{
		Name: string(p.Name), Labels: p.Labels, Phase: p.Phase, Terminating: !p.Deleted.IsZero(),
		Started: p.Started, Ready: p.Ready, ReadySince: p.ReadySince, Containers: containers,
		Requests: autoscaler.RequestsOf(p.Spec), PodLevel: p.PodLevel, Overhead: autoscaler.RequestsOf(p.Overhead),
	}
}

// millicores converts nanocores as Quantity.MilliValue does; it rounds up.
func millicores(nanocores int64) int64 {
	m := nanocores / 1e6
	if nanocores%1e6 > 0 {
		m++
	}
	return m
}
