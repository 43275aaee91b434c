package metricsgroup

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// LabelSelector returns a metric selector in the form for answers, or nil for none. The library's own
// conversion refuses !=.
func LabelSelector(selector labels.Selector) (*metav1.LabelSelector, error) {
	if selector == nil || selector.Empty() {
		return nil, nil
	}
	requirements, _ := selector.Requirements()
	s := &metav1.LabelSelector{}
	for _, r := range requirements {
		e := metav1.LabelSelectorRequirement{Key: r.Key(), Values: r.ValuesUnsorted()}
		slices.Sort(e.Values)
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals:
			metav1.AddLabelToSelector(s, e.Key, e.Values[0])
			continue
		case selection.In:
			e.Operator = metav1.LabelSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			e.Operator = metav1.LabelSelectorOpNotIn
		case selection.Exists:
			e.Operator = metav1.LabelSelectorOpExists
		case selection.DoesNotExist:
			e.Operator = metav1.LabelSelectorOpDoesNotExist
		default:
			return nil, BadRequest("the metric selector compares %s by %q: choose by =, !=, in, notin or existence", r.Key(), r.Operator())
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s, nil
}
