package memory

import (
	"iter"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// SourceStatus is how one source of one node is doing.
type SourceStatus struct {
	Source string
	Node   metric.NodeName
	// LastRead is when the last read ended, LastSuccess when the last one
	// without an error did; zero if none has.
	LastRead, LastSuccess time.Time
	// Err is what the last read ended with.
	Err error
	// Samples is how many the last batch held, those turned away included.
	Samples int
	// Interval is the steady time between two reads.
	Interval time.Duration
}

// Nodes yields the status of each source of each node, by node, the preferred
// source first.
func (s *Snapshot) Nodes() iter.Seq[SourceStatus] {
	return func(yield func(SourceStatus) bool) {
		for i := range s.nodes.names {
			n := s.nodes.at(i)
			for _, v := range n.views {
				ok := yield(SourceStatus{
					Source: v.source, Node: n.name,
					LastRead: instant(v.lastRead), LastSuccess: instant(v.lastSuccess),
					Err: v.err, Samples: v.samples, Interval: time.Duration(v.interval),
				})
				if !ok {
					return
				}
			}
		}
	}
}

// Verdicts yields the verdicts that stand, by node and entity. Where several
// sources read a node, one source's reason for an absence is left out if
// another serves the number, or has a reason that lies further out; what
// identity says of samples it turned away always stands. For a pod that
// several nodes report with numbers, it says where it was settled to be. With each
// comes when we read the first of the rounds in which the entity's group had this
// reason without a break.
func (s *Snapshot) Verdicts() iter.Seq2[metric.Verdict, time.Time] {
	return func(yield func(metric.Verdict, time.Time) bool) {
		for i := range s.nodes.names {
			if !s.verdictsOn(s.nodes.at(i), yield) {
				return
			}
		}
	}
}

// VerdictsOn yields those of Verdicts that are of one node.
func (s *Snapshot) VerdictsOn(node metric.NodeName) iter.Seq2[metric.Verdict, time.Time] {
	return func(yield func(metric.Verdict, time.Time) bool) {
		if n := s.nodes.get(node); n != nil {
			s.verdictsOn(n, yield)
		}
	}
}

// verdictsOn yields n's verdicts. It reports whether more are wanted.
func (s *Snapshot) verdictsOn(n *nodeView, yield func(metric.Verdict, time.Time) bool) bool {
	for k, v := range n.views {
		for j := range v.standings {
			if st := n.standing(k, v.standings[j]); st.groups != 0 && !st.each(yield) {
				return false
			}
		}
	}
	return s.misplaced(n, yield)
}

// standing returns st, which is of view k, without the groups for which another
// source knows better.
func (n *nodeView) standing(k int, st standing) standing {
	if len(n.views) == 1 || st.reason.Layer() == metric.LayerIdentity {
		return st
	}
	for o, v := range n.views {
		if o == k {
			continue
		}
		d := v.rounds[0].dir
		if i, ok := d.find(st.entity); ok {
			sh := &d.shapes[d.entries[i].shape]
			for g := range metric.NumGroups {
				if sh.serves(metric.Group(g)) {
					st.groups &^= 1 << g
				}
			}
		}
		for _, other := range v.standings.of(st.entity) {
			mine, theirs := st.reason.Layer(), other.reason.Layer()
			if theirs == metric.LayerIdentity || other.turned() && !st.turned() {
				continue // of another instance: this source has more to say of the present one
			}
			if theirs < mine || theirs == mine && o < k {
				st.groups &^= other.groups
			}
		}
	}
	return st
}

// misplaced yields the verdicts on n's samples of pods that other nodes report
// too.
func (s *Snapshot) misplaced(n *nodeView, yield func(metric.Verdict, time.Time) bool) bool {
	if len(s.places) == 0 {
		return true
	}
	var sample metric.Sample
	for _, v := range n.views {
		r := &v.rounds[0]
		for i := r.dir.kinds[metric.Pod]; i < len(r.dir.entries); i++ {
			p, ok := s.places[r.dir.entries[i].ref()]
			if !ok {
				continue
			}
			r.decode(i, &sample)
			for g, reason := range sample.Reasons {
				if !served(reason) {
					continue
				}
				verdict, ok := p.verdict(&sample, metric.Group(g))
				if ok && !yield(verdict, instant(p.since)) {
					return false
				}
			}
		}
	}
	return true
}
