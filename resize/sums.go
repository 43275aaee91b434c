package resize

import (
	"cmp"
	"slices"
)

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
		for _, t := range []*Total{named(byNode, rec.Node), named(byNamespace, rec.Namespace), &all} {
			t.Pods++
			t.CPU = Of(t.CPU.Value + rec.Frees.CPU.MilliValue())
			t.Memory = Of(t.Memory.Value + rec.Frees.Memory.Value())
		}
	}
	return sorted(byNode), sorted(byNamespace), all
}

func named(totals map[string]*Total, name string) *Total {
	if totals[name] == nil {
		totals[name] = &Total{Name: name}
	}
	return totals[name]
}

func sorted(totals map[string]*Total) (list []Total) {
	for _, t := range totals {
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b Total) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
