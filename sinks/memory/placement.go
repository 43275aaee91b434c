package memory

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// podPlacement is the node of a pod that several nodes report with numbers. Processors see one
// node at a time, so it is decided here, when a round is published. The result does not depend
// on which node answered first:
//
//   - the later start wins, if the starts differ by more than the coarsest
//     clock: the losers are OlderStart;
//   - a node that reports the pod without numbers wins too if its start is the
//     later one: the numbers of an older pod are not those of a younger one;
//   - else nothing distinguishes them: the first node by name wins and is
//     Ambiguous, the losers are OtherNode with the cause Ambiguous.
//
// If the API server names the node, identity has already rejected the others, and only one node
// has numbers.
type podPlacement struct {
	winner    metric.NodeName
	start     int64
	ambiguous bool
	since     int64 // nanoseconds since the Unix epoch
}

// choosePlacement decides on which of nodes, which are sorted, the pod is. ok is false if at
// most one of them has numbers.
func choosePlacement(r *nodeList, ref metric.PodRef, nodes []metric.NodeName) (p podPlacement, ok bool) {
	var (
		silent       podPlacement
		served       []podPlacement // the winner and the start of each node with numbers
		latest       int64
		coarsestUnit = int64(time.Millisecond)
	)
	for _, name := range nodes {
		n := r.get(name)
		if n == nil {
			continue
		}
		start := n.podStarted(ref)
		if !n.servesPod(ref) {
			if start > silent.start {
				silent = podPlacement{winner: name, start: start}
			}
			continue
		}
		served, latest = append(served, podPlacement{winner: name, start: start}), max(latest, start)
		for _, v := range n.sources {
			coarsestUnit = max(coarsestUnit, v.clock)
		}
	}
	if latest > 0 && silent.start-latest > coarsestUnit {
		return silent, true
	}
	if len(served) < 2 {
		return podPlacement{}, false
	}
	// An unknown start decides nothing.
	tied := slices.DeleteFunc(served, func(p podPlacement) bool { return p.start > 0 && latest-p.start > coarsestUnit })
	p = tied[0]
	p.ambiguous = len(tied) > 1
	return p, true
}

// servesPod reports whether the node has a number for the pod or one of its containers, other
// than requests and limits.
func (n *nodeView) servesPod(ref metric.PodRef) bool {
	for _, v := range n.sources {
		d := v.round.table
		for _, kind := range [...]metric.Kind{metric.Pod, metric.Container} {
			from, to := d.rangeOfPod(kind, ref)
			for i := from; i < to; i++ {
				sh := &d.layouts[d.entries[i].layout]
				for g := range metric.Spec {
					if sh.serves(g) {
						return true
					}
				}
			}
		}
	}
	return false
}

// podStarted returns the latest start of the pod, or of its containers if that is unknown; 0 if
// all are unknown.
func (n *nodeView) podStarted(ref metric.PodRef) (start int64) {
	for _, kind := range [...]metric.Kind{metric.Pod, metric.Container} {
		for _, v := range n.sources {
			d := v.round.table
			from, to := d.rangeOfPod(kind, ref)
			for i := from; i < to; i++ {
				start = max(start, d.entries[i].start)
			}
		}
		if start != 0 {
			return start
		}
	}
	return 0
}

// updatePlacements returns the placements after a round of node, which no longer reports the
// pods gone. The map is replaced only if something changed.
func (s *Sink) updatePlacements(gone []*podIdentity, node metric.NodeName) map[metric.PodRef]podPlacement {
	next := &s.pending
	places, changed := next.placements, false
	set := func(ref metric.PodRef, p podPlacement, ok bool) {
		if before, known := places[ref]; known == ok && before == p {
			return
		}
		if !changed {
			changed = true
			if places = maps.Clone(places); places == nil {
				places = map[metric.PodRef]podPlacement{}
			}
		}
		if ok {
			places[ref] = p
		} else {
			delete(places, ref)
		}
	}
	for ref := range next.placements {
		if _, ok := s.mu.contested[ref]; !ok {
			set(ref, podPlacement{}, false)
		}
	}
	for ref := range s.mu.contested {
		nodes := next.nodesByPod.nodesOf(ref)
		left := func(pod *podIdentity) bool { return pod.PodRef == ref }
		if !slices.Contains(nodes, node) && !slices.ContainsFunc(gone, left) {
			continue // the round does not affect this pod
		}
		before, known := next.placements[ref]
		after, ok := choosePlacement(&next.nodes, ref, nodes)
		if !ok {
			set(ref, podPlacement{}, false)
			continue
		}
		after.since = next.at
		if known && before.winner == after.winner && before.ambiguous == after.ambiguous {
			after.since = before.since
		}
		set(ref, after, true)
	}
	return places
}

// verdict returns the verdict of the placement on a group of a pod's or container's sample: the
// loser's reason, or Ambiguous for a winner by order only. ok is false for a winner by start.
func (p podPlacement) verdict(s *metric.Sample, g metric.Group) (v metric.Verdict, ok bool) {
	v = metric.Verdict{Entity: s.Entity, Instance: s.Instance, Group: g}
	v.Evidence = metric.Evidence{
		Rule:  "place",
		Got:   metric.CounterReading{Start: s.Instance.Start, UID: s.Instance.UID, ID: s.Instance.ID},
		Other: metric.CounterReading{Start: p.start},
		Name:  string(p.winner),
	}
	switch {
	case s.Entity.Node == p.winner && !p.ambiguous:
		return v, false
	case s.Entity.Node == p.winner:
		v.Reason = metric.Ambiguous
	case !p.ambiguous:
		v.Reason, v.Evidence.Rule = metric.OlderStart, "start"
	default:
		v.Reason, v.Evidence.Cause = metric.OtherNode, metric.Ambiguous
	}
	return v, true
}
