package memory

import (
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// storedVerdict stores verdicts that differ only in their group. When a node cannot be read,
// all its entities share one Evidence.
type storedVerdict struct {
	entity   *metric.Entity
	instance *metric.Instance
	evidence *metric.Evidence
	since    int64 // nanoseconds since the Unix epoch
	groups   groupMask
	reason   metric.Reason
}

// verdictIndex is verdicts sorted by entity, then in the order they were reported. It is
// immutable.
type verdictIndex []storedVerdict

// of returns the verdicts of e.
func (v verdictIndex) of(e *metric.Entity) verdictIndex {
	from, to := equalRange(len(v), func(i int) int { return compareEntities(v[i].entity, e) })
	return v[from:to]
}

// newVerdictIndex stores the verdicts of a node. A verdict that before also has keeps its
// start time. Entities are shared with before.
func newVerdictIndex(node metric.NodeName, verdicts []*metric.Verdict, before verdictIndex, now int64) verdictIndex {
	if len(verdicts) == 0 {
		return nil
	}
	slices.SortStableFunc(verdicts, func(a, b *metric.Verdict) int { return compareEntities(&a.Entity, &b.Entity) })
	var (
		all     verdictIndex
		first   int // index of the entity's first verdict
		earlier verdictIndex
		last    storedVerdict
	)
	for i, v := range verdicts {
		if i == 0 || compareEntities(&verdicts[i-1].Entity, &v.Entity) != 0 {
			first, earlier = len(all), before.of(&v.Entity)
			last.entity = earlier.entityOr(node, &v.Entity)
		}
		last.since = earlier.since(v.Reason, v.Group, now)
		last.groups, last.reason = 1<<v.Group, v.Reason
		last.share(v)
		if n := slices.IndexFunc(all[first:], last.differsInGroupOnly); n >= 0 {
			all[first+n].groups |= last.groups
			continue
		}
		all = append(all, last)
	}
	return slices.Clip(all)
}

// entityOr returns the entity of v, which is the verdicts of e, or a copy of e on node if there
// are none.
func (v verdictIndex) entityOr(node metric.NodeName, e *metric.Entity) *metric.Entity {
	if len(v) > 0 {
		return v[0].entity
	}
	kept := *e
	kept.Node = node
	return &kept
}

// since returns the start time of the verdict of v that has this reason for g, or now.
func (v verdictIndex) since(reason metric.Reason, g metric.Group, now int64) int64 {
	for _, e := range v {
		if e.reason == reason && e.groups&(1<<g) != 0 {
			now = min(now, e.since)
		}
	}
	return now
}

// share sets the instance and the evidence to those of v. Equal ones are kept, so that the
// verdicts of a node share them.
func (s *storedVerdict) share(v *metric.Verdict) {
	if s.instance == nil || *s.instance != v.Instance {
		kept := v.Instance
		s.instance = &kept
	}
	if s.evidence == nil || !sameEvidence(s.evidence, &v.Evidence) {
		kept := v.Evidence
		s.evidence = &kept
	}
}

// differsInGroupOnly reports whether s and o, two verdicts of one entity, differ only in their
// group.
func (s *storedVerdict) differsInGroupOnly(o storedVerdict) bool {
	return o.reason == s.reason && o.since == s.since && o.instance == s.instance && o.evidence == s.evidence
}

// sameEvidence compares evidence. Errors that cannot be compared are different.
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

// rejectedWhole reports whether s reports that an entity is missing because identity rejected all
// its samples.
func (s *storedVerdict) rejectedWhole() bool {
	return (s.reason == metric.NotReported || s.reason == metric.Incomplete) && s.evidence.Cause.Layer() == metric.LayerIdentity
}

// each calls do for each verdict and its start time, until do returns false. It returns false
// if do did.
func (s *storedVerdict) each(do func(metric.Verdict, time.Time) bool) bool {
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

// SourceStatus is the status of one source of one node.
type SourceStatus struct {
	Source string
	Node   metric.NodeName
	// LastRead is when the last read ended, LastSuccess when the last read without an error
	// ended; zero if there was none.
	LastRead, LastSuccess time.Time
	// Err is the error of the last read.
	Err error
	// Samples is the number of samples in the last batch, rejected ones included.
	Samples int
	// Interval is the time between two reads.
	Interval time.Duration
}

// Sources yields the status of each source of each node, by node, in the order of preference.
func (s *Snapshot) Sources() iter.Seq[SourceStatus] {
	return func(yield func(SourceStatus) bool) {
		for i := range s.nodes.names {
			n := s.nodes.at(i)
			for _, v := range n.sources {
				ok := yield(SourceStatus{
					Source: v.source, Node: n.name,
					LastRead: timeAt(v.lastRead), LastSuccess: timeAt(v.lastSuccess),
					Err: v.err, Samples: v.samples, Interval: time.Duration(v.interval),
				})
				if !ok {
					return
				}
			}
		}
	}
}

// Verdicts yields the present verdicts, by node and entity, each with the time since when its
// entity and group have this reason in every round.
//
// If several sources read a node, a verdict is left out if another source serves the number, or
// has a reason that is further out. Verdicts on samples that identity rejected are never left
// out. A pod that several nodes report with numbers also has the verdicts of its placement.
func (s *Snapshot) Verdicts() iter.Seq2[metric.Verdict, time.Time] {
	return func(yield func(metric.Verdict, time.Time) bool) {
		for i := range s.nodes.names {
			if !s.verdictsOn(s.nodes.at(i), yield) {
				return
			}
		}
	}
}

// VerdictsOn yields the Verdicts of one node.
func (s *Snapshot) VerdictsOn(node metric.NodeName) iter.Seq2[metric.Verdict, time.Time] {
	return func(yield func(metric.Verdict, time.Time) bool) {
		if n := s.nodes.get(node); n != nil {
			s.verdictsOn(n, yield)
		}
	}
}

// verdictsOn yields the verdicts of n. It returns false if yield did.
func (s *Snapshot) verdictsOn(n *nodeView, yield func(metric.Verdict, time.Time) bool) bool {
	var pod podSources
	for k, v := range n.sources {
		for j := range v.verdicts {
			if st := n.applicableVerdict(k, v.verdicts[j], &pod); st.groups != 0 && !st.each(yield) {
				return false
			}
		}
	}
	return s.placementVerdicts(n, yield)
}

// applicableVerdict returns st, a verdict of view k, without the groups for which another
// source has the number or a better reason.
func (n *nodeView) applicableVerdict(k int, st storedVerdict, pod *podSources) storedVerdict {
	if len(n.sources) == 1 || st.reason.Layer() == metric.LayerIdentity {
		return st
	}
	ofPod := isPodKind(st.entity.Kind)
	if ofPod {
		pod.choose(n, st.entity.PodRef())
	}
	for o, v := range n.sources {
		if o == k || ofPod && pod.sources[o].outdated {
			continue
		}
		st.groups &^= v.servedGroups(st.entity)
		for _, other := range v.verdicts.of(st.entity) {
			if other.replaces(&st, o < k) {
				st.groups &^= other.groups
			}
		}
	}
	return st
}

// servedGroups returns the groups of e that v has numbers of.
func (v *sourceView) servedGroups(e *metric.Entity) (groups groupMask) {
	d := v.round.table
	i, ok := d.find(e)
	if !ok {
		return 0
	}
	sh := &d.layouts[d.entries[i].layout]
	for g := range metric.NumGroups {
		if sh.serves(metric.Group(g)) {
			groups |= 1 << g
		}
	}
	return groups
}

// replaces reports whether s, the verdict of another source on the same entity, is reported and
// st is not: its reason is further out, or the reasons are equal and its source is preferred.
func (s *storedVerdict) replaces(st *storedVerdict, preferred bool) bool {
	if s.reason.Layer() == metric.LayerIdentity || s.rejectedWhole() && !st.rejectedWhole() {
		return false // s is about another instance
	}
	return s.reason.Precedes(st.reason) || preferred && !st.reason.Precedes(s.reason)
}

// placementVerdicts yields the verdicts of placements on samples of n. It returns false if
// yield did.
func (s *Snapshot) placementVerdicts(n *nodeView, yield func(metric.Verdict, time.Time) bool) bool {
	if len(s.placements) == 0 {
		return true
	}
	var sample metric.Sample
	for _, v := range n.sources {
		r := &v.round
		for i := r.table.kinds[metric.Pod]; i < len(r.table.entries); i++ {
			p, ok := s.placements[r.table.entries[i].podRef()]
			if !ok {
				continue
			}
			r.decode(i, &sample)
			for g, reason := range sample.Reasons {
				if !served(reason) {
					continue
				}
				verdict, ok := p.verdict(&sample, metric.Group(g))
				if ok && !yield(verdict, timeAt(p.since)) {
					return false
				}
			}
		}
	}
	return true
}
