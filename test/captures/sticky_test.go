package captures

import (
	"path/filepath"
	"testing"

	"github.com/weir-metrics/weir/metric"
)

// believed has the living instances of each name, in the order of a replay.
type believed map[metric.Entity][]metric.Instance

// follow notes the living instances of a round, and fails if a decision goes
// back to an earlier instance. A container that restarts continues with its
// next run, so the living instance never becomes an earlier one. The only
// exception is the container with the name returns, in a scenario where a
// second container is stopped.
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
			seen[n-1] = s.Instance // it may have more names now
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

// sameInstance compares the ID or the path if both instances have one,
// otherwise the line that identity follows.
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

// checkLosers fails if the verdict on a rejected sample does not name the rule.
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

// isPartial reports whether a sample has only numbers without rules of their
// own, such as the network of a pod's sandbox. Such a sample is rejected
// together with the pod's own sample, which has the verdict.
func isPartial(s *metric.Sample) bool { return s.Times[metric.CPU] == 0 && s.Times[metric.Memory] == 0 }

// verdictOn returns identity's verdict on a rejected sample, or nil.
func verdictOn(b *metric.Batch, s *metric.Sample) *metric.Verdict {
	for i := range b.Verdicts {
		v := &b.Verdicts[i]
		if v.Entity == s.Entity && v.Group == metric.CPU && v.Reason == s.Reasons[metric.CPU] && v.Instance.Line == s.Instance.Line {
			return v
		}
	}
	return nil
}
