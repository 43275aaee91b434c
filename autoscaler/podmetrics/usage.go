package podmetrics

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/resourceusage"
	"github.com/weir-metrics/weir/metric"
)

// podUsages has what metrics.k8s.io serves for pods, in their order.
type podUsages struct {
	pods []podUsage // the served pods
	err  error      // the reason why nothing can be served
}

// podUsage is the usage of one pod.
type podUsage struct {
	name string
	over metric.Window
	uses []resourceusage.Usage // of its containers
}

// at returns the pod's timestamp in whole seconds, as the API encodes it.
func (p *podUsage) at() time.Time { return time.Unix(p.over.End/int64(time.Second), 0) }

// currentUsage returns the current usage of pods.
func currentUsage(view UsageReader, facts *cluster.Facts, pods []metric.PodRef) *podUsages {
	u := &podUsages{pods: make([]podUsage, 0, len(pods))}
	all := make([]resourceusage.Usage, 0, 2*len(pods)) // the uses of all pods
	var pod resourceusage.PodUsage
	for _, ref := range pods {
		if view.PodUsage(ref, &pod) && resourceusage.MayServePod(facts.Pod(ref), &pod) {
			from := len(all)
			all = append(all, pod.Containers...)
			u.pods = append(u.pods, podUsage{string(ref.Name), pod.Window, all[from:]})
		}
	}
	return u
}

// sum returns the usage of a resource in thousandths: the sum over the containers, each rounded up,
// or the usage of the named container. ok reports whether there is a number.
func (p *podUsage) sum(name corev1.ResourceName, container string) (milli int64, ok bool) {
	if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
		return 0, false
	}
	for i := range p.uses {
		use := &p.uses[i]
		if container != "" && use.Name != container {
			continue
		}
		ok = true
		if name == corev1.ResourceCPU {
			milli += millicores(use.CPU)
		} else {
			milli += 1000 * use.Memory
		}
	}
	return milli, ok
}

// pastUsage returns the usage of the pods at r.at from the history: what would have been served
// then, but with the current containers.
func (r *targetReader) pastUsage(view UsageReader, facts *cluster.Facts, pods []metric.PodRef) *podUsages {
	u := &podUsages{}
	running := false
	for _, ref := range pods {
		p := facts.Pod(ref)
		if p == nil || p.Phase != cluster.Running {
			continue
		}
		running = true
		if containers, over := r.pastContainers(view, p); len(containers) > 0 {
			u.pods = append(u.pods, podUsage{string(ref.Name), over, containers})
		}
	}
	if running && len(u.pods) == 0 {
		u.err = fmt.Errorf("memory has no numbers of these pods at %s", r.at.UTC().Format(time.RFC3339))
	}
	return u
}

// pastContainers returns the usage of a pod's containers at r.at, sorted by name, and their window. There is
// none if a required container has no number, because a pod is served whole or not at all.
func (r *targetReader) pastContainers(view UsageReader, p *cluster.Pod) (containers []resourceusage.Usage, over metric.Window) {
	for _, c := range slices.SortedFunc(slices.Values(p.Containers), func(a, b cluster.Container) int { return strings.Compare(a.Name, b.Name) }) {
		e := metric.Entity{Kind: metric.Container, Node: p.Node, Namespace: p.Namespace, Pod: p.Name, Name: c.Name}
		if use, window, ok := r.usageAt(view, e); ok {
			containers, over = append(containers, use), resourceusage.OlderWindow(over, window)
		} else if c.Required() && !c.StartedAt.After(r.at) {
			return nil, over
		}
	}
	return containers, over
}

// usageAt returns the usage of a container at r.at: the last value before that time.
func (r *targetReader) usageAt(view UsageReader, e metric.Entity) (u resourceusage.Usage, over metric.Window, ok bool) {
	cpu, over, ok := r.lastPoint(view, e, metric.CPUUsageRate)
	if !ok {
		return u, over, false
	}
	memory, _, ok := r.lastPoint(view, e, metric.MemoryWorkingSet)
	return resourceusage.Usage{Name: e.Name, CPU: int64(math.Round(cpu)), Memory: int64(math.Round(memory)), Swap: -1}, over, ok
}

// lastPoint returns the last value of a metric before r.at, unless it is older than MaxAge. The
// history has no windows; the window is the time since the point before.
func (r *targetReader) lastPoint(view UsageReader, e metric.Entity, id metric.ID) (value float64, over metric.Window, ok bool) {
	for t, v := range view.Points(e, id, r.at.Add(-2*r.options.MaxAge), r.at) {
		end := t.UnixNano()
		if ok {
			over.Length = time.Duration(end - over.End)
		}
		value, over.End, ok = v, end, true
	}
	return value, over, ok && time.Unix(0, over.End).Add(r.options.MaxAge).After(r.at)
}
