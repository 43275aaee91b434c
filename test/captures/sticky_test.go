package captures

import (
	"path/filepath"
	"testing"

	"github.com/weir-metrics/weir/metric"
)

// believed is which instances of each name were believed, in the order of a replay.
type believed map[metric.Entity][]metric.Instance

// follow notes the instances believed in a round, and fails where a choice goes back:
// from one instance to another, and to the first again. A container that restarts
// goes on to its next run; nothing real goes back, unless gone by itself: the
// scenario where a second container is stopped lists its name in returns.
func (all believed) follow(t *testing.T, e *endpoint, r *round, b *metric.Batch, returns string) {
	t.Helper()
	for i := range b.Samples {
		s := &b.Samples[i]
		if k := s.Entity.Kind; s.Entity.Part != "" || k != metric.Pod && k != metric.Container || s.Rejected() || s.LastKnown != 0 || s.Instance.Line == 0 {
			continue
		}
		seen := all[s.Entity]
		n := len(seen)
		if n > 0 && sameInstance(&seen[n-1], &s.Instance) {
			seen[n-1] = s.Instance // perhaps with more names
			continue
		}
		for j := range seen {
			if sameInstance(&seen[j], &s.Instance) && s.Entity.Name != returns {
				t.Errorf("%s, round %s: %v goes back to %s, after %s", e.name, filepath.Base(r.dir), s.Entity, label(&s.Instance), label(&seen[n-1]))
			}
		}
		all[s.Entity] = append(seen, s.Instance)
	}
}

// sameInstance compares what the report names, else the line that identity follows.
func sameInstance(a, b *metric.Instance) bool {
	switch {
	case a.ID != "" && b.ID != "":
		return a.ID == b.ID && a.Path == b.Path
	case a.Path != "" && b.Path != "":
		return a.Path == b.Path
	case a.UID != "" && a.UID == b.UID && a.Start != 0 && a.Start == b.Start:
		return true
	}
	return a.Line == b.Line
}

func label(i *metric.Instance) string {
	return string(i.UID) + " " + string(i.ID) + " " + string(i.Path)
}

// checkLosers fails for a sample that was turned away and whose verdict does not
// name the rule.
func checkLosers(t *testing.T, e *endpoint, r *round, b *metric.Batch) {
	t.Helper()
	for i := range b.Samples {
		s := &b.Samples[i]
		if !s.Rejected() || s.Entity.Part != "" || isPartial(s) {
			continue
		}
		if v := verdictOn(b, s); v == nil || v.Evidence.Rule == "" {
			t.Errorf("%s, round %s: %v %s was turned away as %v, and no verdict names the rule", e.name, filepath.Base(r.dir), s.Entity, label(&s.Instance), s.Reasons[metric.CPU])
		}
	}
}

// isPartial reports whether a sample holds only what rules cannot weigh, such as the
// network of a pod's sandbox: it shares the fate of the pod's own, which has the
// verdict.
func isPartial(s *metric.Sample) bool { return s.Times[metric.CPU] == 0 && s.Times[metric.Memory] == 0 }

// verdictOn returns identity's verdict on a sample that was turned away, or nil.
func verdictOn(b *metric.Batch, s *metric.Sample) *metric.Verdict {
	for i := range b.Verdicts {
		v := &b.Verdicts[i]
		if v.Entity == s.Entity && v.Group == metric.CPU && v.Reason == s.Reasons[metric.CPU] && v.Instance.Line == s.Instance.Line {
			return v
		}
	}
	return nil
}
