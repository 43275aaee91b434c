package memory

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// podSources is what the sources of a node have of one pod. CPU and memory of a pod come from
// one of them, so that its numbers are of one instance:
//
//   - A source is outdated for a pod if another one shows that the pod, or one of its containers,
//     has a later instance, or rejected this one as older (sourceView.isOutdatedBy). Nothing of it
//     is used.
//   - The lead is the first source, in the order of preference, that measured the pod completely
//     and is not outdated. One without repeated last known values goes first.
type podSources struct {
	node    *nodeView
	ref     metric.PodRef
	lead    int // index in node.sources; -1 if none measured the pod completely
	sources []podSource
	few     [4]podSource // the memory of sources, if they are few
}

// podSource is what one source has of a pod.
type podSource struct {
	pods, containers entryRange
	outdated         bool
}

// entryRange is a range of entries of an entityTable.
type entryRange struct{ from, to int }

// choose makes p that of a pod of n, which has several sources.
func (p *podSources) choose(n *nodeView, ref metric.PodRef) {
	if p.node == n && p.ref == ref {
		return
	}
	p.node, p.ref, p.lead = n, ref, -1
	p.sources = p.few[:0]
	for _, v := range n.sources {
		d := v.round.table
		var source podSource
		source.pods.from, source.pods.to = d.rangeOfPod(metric.Pod, ref)
		source.containers.from, source.containers.to = d.rangeOfPod(metric.Container, ref)
		p.sources = append(p.sources, source)
	}
	best := 0
	for k, v := range n.sources {
		source := &p.sources[k]
		for o, other := range n.sources {
			source.outdated = source.outdated || o != k && v.isOutdatedBy(other, source, &p.sources[o])
		}
		if !source.outdated && source.containers.from < source.containers.to {
			if rank := v.round.podRank(source.pods); rank > best {
				p.lead, best = k, rank
			}
		}
	}
}

// podRank returns 2 if the pod among entries was measured completely, 1 if some of that are
// repeated last known values, and else 0.
func (r *round) podRank(entries entryRange) int {
	for i := entries.from; i < entries.to; i++ {
		if r.table.entries[i].local.Value().part != "" {
			continue
		}
		sh, _ := r.record(i)
		switch _, _, ok := r.usage(i); {
		case !ok:
			return 0
		case sh.lastKnown&(1<<metric.CPU|1<<metric.Memory) != 0:
			return 1
		}
		return 2
	}
	return 0
}

// isOutdatedBy reports whether o, another source of the node, shows that the numbers that v has
// of a pod are of an earlier instance than the present one.
func (v *sourceView) isOutdatedBy(o *sourceView, mine, others *podSource) bool {
	return v.hasEarlier(o, mine.pods, others.pods) || v.hasEarlier(o, mine.containers, others.containers)
}

// hasEarlier reports whether v has an entry of an earlier instance than o's entry of that entity.
// If o has none, it reports whether o has rejected the entity's lines since v was last read.
func (v *sourceView) hasEarlier(o *sourceView, mine, others entryRange) bool {
	j := others.from
	for i := mine.from; i < mine.to; i++ {
		e := &v.round.table.entries[i]
		if e.local.Value().part != "" {
			continue
		}
		for j < others.to && o.round.table.entries[j].compare(e.entityName) < 0 {
			j++
		}
		switch {
		case j == others.to || o.round.table.entries[j].compare(e.entityName) != 0:
			if o.rejectsSince(e, v.lastSuccess) {
				return true
			}
		case v.isEarlier(i, o, j):
			return true
		}
	}
	return false
}

// isEarlier reports whether v's entry i is of an earlier instance than o's entry j of the same
// entity: o's started later; or o rejected the instance of i since v was last read; or o began
// another line since i was read, while v has had its line from before that. Lines report nothing if both entries are known to be of one instance, if nothing
// distinguishes the lines that o has, or if the node's clock was put back since o began its line.
func (v *sourceView) isEarlier(i int, o *sourceView, j int) bool {
	e, other := &v.round.table.entries[i], &o.round.table.entries[j]
	mine, others := e.instance(), other.instance()
	switch run.Compare(&mine, &others) {
	case run.Same:
		return false
	case run.Other:
		if mine.Start != 0 && others.Start != 0 {
			return mine.Start < others.Start
		}
	case run.Earlier, run.Later:
		return v.round.readAt(i) <= others.Start || o.rejectsInstance(e, &mine, v.lastSuccess)
	}
	if o.rejectsInstance(e, &mine, v.lastSuccess) {
		return true
	}
	c := other.change
	return c != nil && v.round.readAt(i)+v.clock <= c.first && c.first <= o.round.readAt(j) &&
		(e.change == nil || e.change.first <= c.last) && !o.doubts(e)
}

// rejectsSince reports whether v has rejected the lines of e since a time.
func (v *sourceView) rejectsSince(e *entityEntry, since int64) bool {
	return v.hasVerdict(e, func(st storedVerdict) bool { return st.reason.IsRejection() && st.since > since })
}

// rejectsInstance reports whether v has rejected an instance of e since a time, in favour of a
// younger one.
func (v *sourceView) rejectsInstance(e *entityEntry, in *metric.Instance, since int64) bool {
	named := in.ID != "" || in.Inode != 0 || in.Start != 0
	return named && v.hasVerdict(e, func(st storedVerdict) bool {
		return st.since > since && isOlder(st.reason) && run.Compare(st.instance, in) == run.Same
	})
}

// isOlder reports whether a reason reports that a sample is of an earlier instance.
func isOlder(r metric.Reason) bool {
	return r == metric.OldPod || r == metric.OldContainer || r == metric.OlderStart
}

// doubts reports whether nothing distinguishes the lines that v has of e.
func (v *sourceView) doubts(e *entityEntry) bool {
	return v.hasVerdict(e, func(st storedVerdict) bool { return st.reason == metric.Ambiguous })
}

func (v *sourceView) hasVerdict(e *entityEntry, matches func(storedVerdict) bool) bool {
	if len(v.verdicts) == 0 {
		return false
	}
	entity := e.entity(v.round.table.node)
	return slices.ContainsFunc(v.verdicts.of(&entity), matches)
}
