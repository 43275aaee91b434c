package memory

import (
	"reflect"
	"slices"
	"sort"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// standing is what is kept of some verdicts that differ only in their group.
// When a node is away, all its entities share one Evidence.
type standing struct {
	entity   *metric.Entity
	instance *metric.Instance
	evidence *metric.Evidence
	since    int64 // nanoseconds since the Unix epoch
	groups   uint8
	reason   metric.Reason
}

// standings are sorted by entity, then as they were reported. Immutable.
type standings []standing

// of returns the standings of e.
func (all standings) of(e *metric.Entity) standings {
	from := sort.Search(len(all), func(i int) bool { return compareNames(all[i].entity, e) >= 0 })
	to := from
	for to < len(all) && sameName(all[to].entity, e) {
		to++
	}
	return all[from:to]
}

// newStandings keeps verdicts, which are of node, with the times since they
// stand that before knows. Entities are shared with before.
func newStandings(node metric.NodeName, verdicts []*metric.Verdict, before standings, now int64) standings {
	if len(verdicts) == 0 {
		return nil
	}
	slices.SortStableFunc(verdicts, func(a, b *metric.Verdict) int { return compareNames(&a.Entity, &b.Entity) })
	var (
		all      standings
		first    int // of the entity's
		earlier  standings
		instance *metric.Instance
		evidence *metric.Evidence
	)
	for i, v := range verdicts {
		if i == 0 || !sameName(&verdicts[i-1].Entity, &v.Entity) {
			first = len(all)
			earlier = before.of(&v.Entity)
		}
		since := now
		for _, e := range earlier {
			if e.reason == v.Reason && e.groups&(1<<v.Group) != 0 {
				since = min(since, e.since)
			}
		}
		if instance == nil || *instance != v.Instance {
			kept := v.Instance
			instance = &kept
		}
		if evidence == nil || !sameEvidence(evidence, &v.Evidence) {
			kept := v.Evidence
			evidence = &kept
		}
		st := standing{instance: instance, evidence: evidence, since: since, groups: 1 << v.Group, reason: v.Reason}
		if n := slices.IndexFunc(all[first:], func(o standing) bool {
			return o.reason == st.reason && o.since == since && o.instance == instance && o.evidence == evidence
		}); n >= 0 {
			all[first+n].groups |= st.groups
			continue
		}
		switch {
		case len(all) > first:
			st.entity = all[first].entity
		case len(earlier) > 0:
			st.entity = earlier[0].entity
		default:
			kept := v.Entity
			kept.Node = node
			st.entity = &kept
		}
		all = append(all, st)
	}
	return slices.Clip(all)
}

// sameEvidence compares evidence; errors only where they can be compared.
func sameEvidence(a, b *metric.Evidence) bool {
	if (a.Err == nil) != (b.Err == nil) {
		return false
	}
	if a.Err != nil && (!reflect.TypeOf(a.Err).Comparable() || !reflect.TypeOf(b.Err).Comparable() || a.Err != b.Err) { //nolint:errorlint // the very same error, not one like it
		return false
	}
	x, y := *a, *b
	x.Err, y.Err = nil, nil
	return x == y
}

// turned reports whether s is the absence of something of which all that was
// reported was turned away.
func (s *standing) turned() bool {
	return (s.reason == metric.NotReported || s.reason == metric.Incomplete) && s.evidence.Cause.Layer() == metric.LayerIdentity
}

// each calls do for each of the verdicts, and since when it stands, until it
// returns false.
func (s *standing) each(do func(metric.Verdict, time.Time) bool) bool {
	for g := range metric.NumGroups {
		if s.groups&(1<<g) == 0 {
			continue
		}
		v := metric.Verdict{
			Entity: *s.entity, Instance: *s.instance, Group: metric.Group(g),
			Reason: s.reason, Evidence: *s.evidence,
		}
		if !do(v, time.Unix(0, s.since)) {
			return false
		}
	}
	return true
}
