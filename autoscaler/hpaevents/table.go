package hpaevents

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// autoscaler is what is kept of a HorizontalPodAutoscaler. It is never changed.
type autoscaler struct {
	namespace metric.Namespace
	name      string
	uid       types.UID
	full      string // namespace/name
	target    target
	// resource: it goes by the pods' CPU or memory, as metrics.k8s.io has them.
	resource bool
	// pods: it goes by some metric of its pods.
	pods bool
}

// target is the workload that an autoscaler scales.
type target struct {
	namespace              metric.Namespace
	apiVersion, kind, name string
}

// table says which autoscalers there are whose pods are known, and of which a pod
// is. Once built it is never changed: a new one takes its place.
type table struct {
	all    []*autoscaler
	spaces map[metric.Namespace]*space
}

func newTable() *table { return &table{spaces: map[metric.Namespace]*space{}} }

// space is one namespace's part. Nearly every selector demands some label of one
// value, and is found by it; a pod's few labels then lead to its autoscalers,
// however many the namespace has.
type space struct {
	by   map[label][]bound
	rest []bound // whose selectors demand no such label
}

type label struct{ key, value string }

type bound struct {
	hpa      *autoscaler
	selector labels.Selector
}

// add puts h, whose pods are those that selector matches, into t.
func (t *table) add(h *autoscaler, selector labels.Selector) {
	t.all = append(t.all, h)
	s := t.spaces[h.namespace]
	if s == nil {
		s = &space{by: map[label][]bound{}}
		t.spaces[h.namespace] = s
	}
	b := bound{h, selector}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.ValuesUnsorted(); len(values) == 1 {
				l := label{r.Key(), values[0]}
				s.by[l] = append(s.by[l], b)
				return
			}
		}
	}
	s.rest = append(s.rest, b)
}

// of calls do for every autoscaler that p is one of the pods of, in no order.
func (t *table) of(p *cluster.Pod, do func(*autoscaler)) {
	s := t.spaces[p.Namespace]
	if s == nil {
		return
	}
	matching := func(all []bound) {
		for i := range all {
			if all[i].selector.Matches(labels.Set(p.Labels)) {
				do(all[i].hpa)
			}
		}
	}
	for key, value := range p.Labels {
		matching(s.by[label{key, value}])
	}
	matching(s.rest)
}

// names returns those of the autoscalers that go by a metric of p, as
// namespace/name, sorted.
func (t *table) names(p *cluster.Pod) (names []string) {
	t.of(p, func(h *autoscaler) {
		if h.pods {
			names = append(names, h.full)
		}
	})
	slices.Sort(names)
	return names
}
