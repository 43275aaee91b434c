package memory

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Several sources may read one node: its kubelet's /metrics/resource every 15 seconds, for
// example, and /stats/summary every minute. Their samples of an entity are merged when it is
// read, group by group:
//
//   - A source that reports an older instance of the entity (another UID or
//     container ID, or an earlier start) is not used.
//   - A group is taken from a source that serves it. A number of this round is
//     preferred to a repeated last known value. Then Options.Preference decides,
//     then the finer clock, the shorter interval, and the first name.
//   - Metrics of the group that this source does not have are taken from the next
//     source that serves the group. Time and window are those of the first one.
//   - A group that no source serves has its outermost reason.

// sortSources sorts views by preference.
func (o *Options) sortSources(views []*sourceView) {
	rank := func(v *sourceView) int {
		if i := slices.Index(o.Preference, v.source); i >= 0 {
			return i
		}
		return len(o.Preference)
	}
	known := func(n int64) int64 {
		if n <= 0 {
			return math.MaxInt64
		}
		return n
	}
	slices.SortStableFunc(views, func(a, b *sourceView) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(known(a.clock), known(b.clock)),
			cmp.Compare(known(a.interval), known(b.interval)),
			cmp.Compare(a.source, b.source),
		)
	})
}

// sampleReader is the memory into which a reader decodes, so that only the first entity
// allocates.
type sampleReader struct {
	out     metric.Sample
	sources []sourceReader
}

// sourceReader is the part of a sampleReader for one source.
type sourceReader struct {
	sample   metric.Sample
	has      bool // the source has the current entity
	from, to int  // the entries that are not read yet
}

// entryRange returns a range of entries of an entityTable.
type entryRange func(d *entityTable) (from, to int)

// entriesIn returns the range of a kind and, for pods and containers, of a namespace.
func entriesIn(kind metric.Kind, namespace metric.Namespace) entryRange {
	return func(d *entityTable) (from, to int) { return d.rangeIn(kind, namespace) }
}

// each calls do for every entity of n in a range that has a number to serve, in order, until do
// returns false. The sample is valid until do returns.
func (n *nodeView) each(in entryRange, rd *sampleReader, do func(*metric.Sample) bool) bool {
	if len(n.sources) == 1 {
		r := &n.sources[0].round
		from, to := in(r.table)
		for i := from; i < to; i++ {
			if r.table.layouts[r.table.entries[i].layout].empty() {
				continue
			}
			r.decode(i, &rd.out)
			if !do(&rd.out) {
				return false
			}
		}
		return true
	}
	rd.resize(len(n.sources))
	for k, v := range n.sources {
		rd.sources[k].from, rd.sources[k].to = in(v.round.table)
	}
	for {
		var next *entityEntry
		for k, v := range n.sources {
			if of := &rd.sources[k]; of.from < of.to {
				e := &v.round.table.entries[of.from]
				if next == nil || e.compare(next.entityName) < 0 {
					next = e
				}
			}
		}
		if next == nil {
			return true
		}
		for k, v := range n.sources {
			r, of := &v.round, &rd.sources[k]
			of.has = of.from < of.to && r.table.entries[of.from].compare(next.entityName) == 0
			if of.has {
				r.decode(of.from, &of.sample)
				of.from++
			}
		}
		if rd.merge() && !do(&rd.out) {
			return false
		}
	}
}

// find fills rd.out with what n has of e. It reports whether there is a number to serve.
func (n *nodeView) find(e *metric.Entity, rd *sampleReader) bool {
	if len(n.sources) == 1 {
		r := &n.sources[0].round
		i, ok := r.table.find(e)
		if ok {
			r.decode(i, &rd.out)
		}
		return ok && rd.out.Values.Len() > 0
	}
	rd.resize(len(n.sources))
	for k, v := range n.sources {
		r, of := &v.round, &rd.sources[k]
		var i int
		if i, of.has = r.table.find(e); of.has {
			r.decode(i, &of.sample)
		}
	}
	return rd.merge()
}

func (rd *sampleReader) resize(n int) {
	rd.sources = slices.Grow(rd.sources[:0], n)[:n]
}

// merge merges the samples of the sources that have the entity, in the order of preference. It
// reports whether there is a number to serve.
func (rd *sampleReader) merge() bool {
	rd.dropOlderInstances()
	out := &rd.out
	values := out.Values
	values.Reset()
	*out = metric.Sample{Values: values}
	begun := false
	for k := range rd.sources {
		if !rd.sources[k].has {
			continue
		}
		if s := &rd.sources[k].sample; !begun {
			begun = true
			out.Entity, out.Instance = s.Entity, s.Instance
		} else {
			fillInstance(&out.Instance, &s.Instance)
		}
	}
	// The least preferred first, so that the preferred one overwrites it.
	for _, lastKnown := range [...]bool{true, false} {
		for k := len(rd.sources) - 1; k >= 0; k-- {
			if of := &rd.sources[k]; of.has {
				mergeGroups(out, &of.sample, lastKnown)
			}
		}
	}
	return out.Values.Len() > 0
}

// dropOlderInstances skips sources that report an older instance than another source.
func (rd *sampleReader) dropOlderInstances() {
	var latest *metric.Instance
	for k := range rd.sources {
		if of := &rd.sources[k]; of.has && (latest == nil || of.sample.Instance.Start > latest.Start) {
			latest = &of.sample.Instance
		}
	}
	for k := range rd.sources {
		of := &rd.sources[k]
		of.has = of.has && sameInstance(&of.sample.Instance, latest)
	}
}

// sameInstance reports whether a and b may be the same instance.
func sameInstance(a, b *metric.Instance) bool {
	if a.UID != "" && b.UID != "" && a.UID != b.UID {
		return false
	}
	if a.ID != "" && b.ID != "" {
		return a.ID == b.ID
	}
	if a.Origin == metric.StartCgroup || b.Origin == metric.StartCgroup || a.Start == 0 || b.Start == 0 {
		return true
	}
	// One of them may be cut to whole seconds.
	d := a.Start - b.Start
	return d > -int64(2*time.Second) && d < int64(2*time.Second)
}

// fillInstance copies fields that i lacks from o, which is the same instance.
func fillInstance(i, o *metric.Instance) {
	if i.UID == "" {
		i.UID = o.UID
	}
	if i.ID == "" {
		i.ID = o.ID
	}
	if i.Path == "" {
		i.Path, i.Inode = o.Path, o.Inode
	}
	if i.Start == 0 {
		i.Start, i.Origin = o.Start, o.Origin
	}
	if i.Processes < 0 {
		i.Processes = o.Processes
	}
}

// mergeGroups copies groups of s to out: those with a repeated last known value, or the others.
func mergeGroups(out, s *metric.Sample, lastKnown bool) {
	for g := range metric.NumGroups {
		if s.LastKnown&(1<<g) != 0 != lastKnown {
			continue
		}
		before, reason := out.Reasons[g], s.Reasons[g]
		if !served(reason) {
			if served(before) || reason == metric.Unjudged {
				continue
			}
			if !before.Precedes(reason) {
				out.Reasons[g] = reason
			}
			continue
		}
		out.Reasons[g], out.Times[g] = reason, s.Times[g]
		if s.Rates[g] != (metric.Window{}) {
			out.Rates[g] = s.Rates[g]
		}
		out.Received = out.Received&^(1<<g) | s.Received&(1<<g)
		out.LastKnown = out.LastKnown&^(1<<g) | s.LastKnown&(1<<g)
	}
	for id, v := range s.Values.All() {
		if s.LastKnown&(1<<metric.Catalogue[id].Group) != 0 == lastKnown {
			out.Values.Set(id, v)
		}
	}
}
