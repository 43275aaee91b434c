package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// duplicates returns the rejected instances with the name of the pod (kind Pod) or of one of its
// containers, on any node.
func (f *file) duplicates(kind metric.Kind, name string) (duplicates []Duplicate) {
	for i := range f.verdicts {
		s := &f.verdicts[i]
		e := &s.verdict.Entity
		if e.Kind != kind || kind == metric.Container && e.Name != name || !isRejected(s.verdict) {
			continue
		}
		r := f.duplicate(s.verdict, s.since)
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

// duplicate describes a rejected instance and explains why it was rejected.
func (f *file) duplicate(v *metric.Verdict, since time.Time) Duplicate {
	i, got := &v.Instance, &v.Evidence.Got
	r := Duplicate{
		Node: v.Entity.Node, UID: cmp.Or(got.UID, i.UID), ID: cmp.Or(got.ID, i.ID), Path: cmp.Or(got.Path, i.Path),
		Started: utc(instant(cmp.Or(got.Start, i.Start))), Reason: v.Reason.String(), Rule: v.Evidence.Rule, Since: utc(since),
	}
	t := f.messageWriter(v.Entity.Kind)
	if v.Reason == metric.Ambiguous {
		r.Message = "nothing distinguishes it from the chosen one"
		if v.Evidence.Rule == twoPaths {
			r.Message = "it is the same container by another cgroup path"
			return r
		}
	} else {
		a := t.names()
		t.addInstances(a, v.Reason, &v.Evidence)
		r.Message = first(messages[known(v.Reason)], a)
	}
	r.Advice = t.reasonAdvice(&Outcome{Reason: v.Reason, Node: v.Entity.Node, Container: v.Entity.Name, Served: f.sample(v.Entity.Kind, v.Entity.Name) != nil})
	return r
}
