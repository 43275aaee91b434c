package live

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/resourceusage"
)

// remembered returns what the history says that pods used at r.at: what would have
// been served then, had their containers been those of today.
func (r *reader) remembered(view View, facts *cluster.Facts, pods []metric.PodRef) *used {
	u := &used{}
	any := false
	for _, ref := range pods {
		p := facts.Pod(ref)
		if p == nil || p.Phase != cluster.Running {
			continue
		}
		any = true
		u.begin(string(ref.Name))
		for _, c := range inOrder(p.Containers) {
			e := metric.Entity{Kind: metric.Container, Node: p.Node, Namespace: p.Namespace, Pod: p.Name, Name: c.Name}
			use, over, ok := r.use(view, e)
			if ok {
				u.add(use, over)
			} else if c.Required() && !c.StartedAt.After(r.at) {
				last := &u.pods[len(u.pods)-1] // a pod is served whole or not at all
				last.to, u.uses = last.from, u.uses[:last.from]
				break
			}
		}
		u.finish()
	}
	if any && len(u.pods) == 0 {
		u.err = fmt.Errorf("memory has no numbers of these pods at %s", r.at.UTC().Format(time.RFC3339))
	}
	return u
}

// inOrder returns containers by name, as they are served.
func inOrder(containers []cluster.Container) []*cluster.Container {
	all := make([]*cluster.Container, len(containers))
	for i := range containers {
		all[i] = &containers[i]
	}
	slices.SortFunc(all, func(a, b *cluster.Container) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// use returns what a container used at r.at, which is the last number before.
func (r *reader) use(view View, e metric.Entity) (u resourceusage.Usage, over metric.Window, ok bool) {
	cpu, over, ok := r.point(view, e, metric.CPUUsageRate)
	if !ok {
		return u, over, false
	}
	memory, _, ok := r.point(view, e, metric.MemoryWorkingSet)
	return resourceusage.Usage{Name: e.Name, CPU: int64(math.Round(cpu)), Memory: int64(math.Round(memory))}, over, ok
}

// point returns the last number of a metric before r.at, unless it is too old. Over
// which time a rate was measured is not remembered: it is taken to be the time since
// the point before.
func (r *reader) point(view View, e metric.Entity, id metric.ID) (value float64, over metric.Window, ok bool) {
	for t, v := range view.Points(e, id, r.at.Add(-2*r.options.Stands), r.at) {
		end := t.UnixNano()
		if ok {
			over.Length = time.Duration(end - over.End)
		}
		value, over.End, ok = v, end, true
	}
	return value, over, ok && time.Unix(0, over.End).Add(r.options.Stands).After(r.at)
}
