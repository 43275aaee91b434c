package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// duplicates returns the rejected instances with the name of the pod (kind Pod) or of one of its
// containers, on any node.
func (f *file) duplicates(kind metric.Kind, name string) (duplicates []Duplicate) {
	for i := range f.verdicts {
		s := &f.verdicts[i]
		e := &s.Entity
		if e.Kind != kind || kind == metric.Container && e.Name != name || !isRejected(&s.Verdict) {
			continue
		}
		r := f.duplicate(s)
		if !slices.ContainsFunc(duplicates, func(o Duplicate) bool {
			return o.Node == r.Node && o.UID == r.UID && o.ID == r.ID && o.Path == r.Path && o.Started.Equal(r.Started) && o.Reason == r.Reason
		}) {
			duplicates = append(duplicates, r)
		}
	}
	slices.SortStableFunc(duplicates, func(a, b Duplicate) int {
		return cmp.Or(strings.Compare(string(a.Node), string(b.Node)), a.Started.Compare(b.Started), strings.Compare(string(a.ID), string(b.ID)))
	})
	return duplicates
}

// isRejected reports whether v is about an instance that was rejected. If two instances were
// Ambiguous, the verdict on the rejected one names its instance. The verdict on the chosen one does
// not, or its rule is "place".
func isRejected(v *metric.Verdict) bool {
	if v.Reason == metric.Ambiguous {
		return v.Instance != (metric.Instance{}) && v.Evidence.Rule != placeRule
	}
	return v.Reason.IsRejection()
}

// duplicate describes a rejected instance and says why it was rejected.
func (f *file) duplicate(s *datedVerdict) Duplicate {
	i, got := &s.Instance, &s.Evidence.Got
	r := Duplicate{
		Node: s.Entity.Node, UID: cmp.Or(got.UID, i.UID), ID: cmp.Or(got.ID, i.ID), Path: cmp.Or(got.Path, i.Path),
		Started: utc(instant(cmp.Or(got.Start, i.Start))), Reason: s.Reason.String(), Rule: s.Evidence.Rule, Since: utc(s.since),
	}
	t := f.messageWriter(s.Entity.Kind)
	if s.Reason == metric.Ambiguous {
		r.Message = "nothing distinguishes it from the chosen one"
		if s.Evidence.Rule == twoPaths {
			r.Message = "it is the same container by another cgroup path"
			return r
		}
	} else {
		a := t.names()
		t.addInstances(a, s.Reason, &s.Evidence)
		r.Message = first(messages[known(s.Reason)], a)
	}
	r.Advice = t.reasonAdvice(&Outcome{Reason: s.Reason, Node: s.Entity.Node, Container: s.Entity.Name, Served: f.sample(s.Entity.Kind, s.Entity.Name) != nil})
	return r
}
