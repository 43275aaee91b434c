package hpaevents

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// hpaInfo is what is kept of a HorizontalPodAutoscaler. It is immutable.
type hpaInfo struct {
	namespace metric.Namespace
	name      string
	uid       types.UID
	full      string // namespace/name
	target    workloadRef
	// resource is set if it uses the pods' CPU or memory from metrics.k8s.io.
	resource bool
	// pods is set if it uses any metric of its pods.
	pods bool
}

// workloadRef is the workload that an autoscaler scales.
type workloadRef struct {
	namespace              metric.Namespace
	apiVersion, kind, name string
}

// podIndex finds the autoscalers of a pod. It has the autoscalers whose selector is known. It is
// immutable once built.
type podIndex struct {
	all    []*hpaInfo
	spaces map[metric.Namespace]*namespaceIndex
}

func newPodIndex() *podIndex { return &podIndex{spaces: map[metric.Namespace]*namespaceIndex{}} }

// namespaceIndex is the part of one namespace. Nearly every selector requires one value of some
// label and is found by it, so the cost for a pod depends on its labels, not on the number of
// autoscalers.
type namespaceIndex struct {
	byLabel map[label][]indexEntry
	others  []indexEntry // selectors without such a label
}

type label struct{ key, value string }

type indexEntry struct {
	hpa      *hpaInfo
	selector labels.Selector
}

// add adds h with the selector of its pods.
func (t *podIndex) add(h *hpaInfo, selector labels.Selector) {
	t.all = append(t.all, h)
	s := t.spaces[h.namespace]
	if s == nil {
		s = &namespaceIndex{byLabel: map[label][]indexEntry{}}
		t.spaces[h.namespace] = s
	}
	b := indexEntry{h, selector}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.ValuesUnsorted(); len(values) == 1 {
				l := label{r.Key(), values[0]}
				s.byLabel[l] = append(s.byLabel[l], b)
				return
			}
		}
	}
	s.others = append(s.others, b)
}

// eachHPA calls do for every autoscaler of p, in no order.
func (t *podIndex) eachHPA(p *cluster.Pod, do func(*hpaInfo)) {
	s := t.spaces[p.Namespace]
	if s == nil {
		return
	}
	matching := func(all []indexEntry) {
		for i := range all {
			if all[i].selector.Matches(labels.Set(p.Labels)) {
				do(all[i].hpa)
			}
		}
	}
	for key, value := range p.Labels {
		matching(s.byLabel[label{key, value}])
	}
	matching(s.others)
}

// names returns the autoscalers that use a metric of p, as namespace/name, sorted.
func (t *podIndex) names(p *cluster.Pod) (names []string) {
	t.eachHPA(p, func(h *hpaInfo) {
		if h.pods {
			names = append(names, h.full)
		}
	})
	slices.Sort(names)
	return names
}
