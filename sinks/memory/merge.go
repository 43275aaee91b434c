package memory

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// Several sources may read one node: its kubelet's /metrics/resource every 15 seconds, for
// example, and /stats/summary every minute. Their samples of an entity are merged when it is
// read, group by group:
//
//   - A source that reports an older instance of the entity (another UID or
//     container ID, or an earlier start), or is outdated for its pod (podSources),
//     is not used.
//   - A group is taken from a source that serves it. A number of this round is
//     preferred to a repeated last known value. Then Options.Preference decides,
//     then the finer clock, the shorter interval, and the first name.
//   - CPU and memory are taken from one source: the lead of the pod, or the first
//     that serves both. If none does, they are taken from two only if these are
//     known to report one instance (equal container IDs, inodes or starts).
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
	pod     podSources // of the current entity
	sources []sourceReader
}

// sourceReader is the part of a sampleReader for one source.
type sourceReader struct {
	sample  metric.Sample
	current bool       // the source has the current entity
	rest    entryRange // the entries that are not read yet
}

// rangeFinder returns a range of entries of an entityTable.
type rangeFinder func(d *entityTable) (from, to int)

// entriesIn returns the range of a kind and, for pods and containers, of a namespace.
func entriesIn(kind metric.Kind, namespace metric.Namespace) rangeFinder {
	return func(d *entityTable) (from, to int) { return d.rangeIn(kind, namespace) }
}

// each calls do for every entity of n in a range that has a number to serve, in order, until do
// returns false. The sample is valid until do returns.
func (n *nodeView) each(in rangeFinder, rd *sampleReader, do func(*metric.Sample) bool) bool {
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
	for e := range n.entries(in, rd) {
		rd.begin(n, e.local.Value().kind, e.podRef())
		for k, v := range n.sources {
			if source := &rd.sources[k]; source.current {
				v.round.decode(source.rest.from-1, &source.sample)
			}
		}
		if rd.merge() && !do(&rd.out) {
			return false
		}
	}
	return true
}

// entries yields an entry of each entity that a source of n has in a range, in order. It sets
// what rd.sources have of it; if they have it, their rest begins after it.
func (n *nodeView) entries(in rangeFinder, rd *sampleReader) iter.Seq[*entityEntry] {
	return func(yield func(*entityEntry) bool) {
		rd.resize(len(n.sources))
		for k, v := range n.sources {
			rd.sources[k].rest.from, rd.sources[k].rest.to = in(v.round.table)
		}
		for {
			var next *entityEntry
			for k, v := range n.sources {
				if rest := rd.sources[k].rest; rest.from < rest.to {
					e := &v.round.table.entries[rest.from]
					if next == nil || e.compare(next.entityName) < 0 {
						next = e
					}
				}
			}
			if next == nil {
				return
			}
			for k, v := range n.sources {
				source := &rd.sources[k]
				source.current = source.rest.from < source.rest.to && v.round.table.entries[source.rest.from].compare(next.entityName) == 0
				if source.current {
					source.rest.from++
				}
			}
			if !yield(next) {
				return
			}
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
		r, source := &v.round, &rd.sources[k]
		var i int
		if i, source.current = r.table.find(e); source.current {
			r.decode(i, &source.sample)
		}
	}
	rd.begin(n, e.Kind, e.PodRef())
	return rd.merge()
}

// begin begins to read an entity of n. It skips sources that are outdated for its pod.
func (r *sampleReader) begin(n *nodeView, kind metric.Kind, ref metric.PodRef) {
	if !isPodKind(kind) {
		r.pod.node, r.pod.lead = nil, -1
		return
	}
	r.pod.choose(n, ref)
	for k := range r.sources {
		r.sources[k].current = r.sources[k].current && !r.pod.sources[k].outdated
	}
}

func (r *sampleReader) resize(n int) {
	r.sources = slices.Grow(r.sources[:0], n)[:n]
}

// merge merges the samples of the sources that have the entity, in the order of preference. It
// reports whether there is a number to serve.
func (r *sampleReader) merge() bool {
	r.dropOlderInstances()
	out := &r.out
	values := out.Values
	values.Reset()
	*out = metric.Sample{Values: values}
	begun := false
	for k := range r.sources {
		if !r.sources[k].current {
			continue
		}
		if s := &r.sources[k].sample; !begun {
			begun = true
			out.Entity, out.Instance = s.Entity, s.Instance
		} else {
			fillInstance(&out.Instance, &s.Instance)
		}
	}
	pair := r.pairSource()
	// The least preferred first, so that the preferred one overwrites it.
	for _, lastKnown := range [...]bool{true, false} {
		for k := len(r.sources) - 1; k >= 0; k-- {
			if source := &r.sources[k]; source.current {
				groups := groupMask(source.sample.LastKnown)
				if !lastKnown {
					groups = ^groups
				}
				mergeGroups(out, &source.sample, groups&^unpaired(pair, &source.sample))
			}
		}
	}
	if pair != nil {
		mergeGroups(out, pair, pairGroups)
		if pair.Values.Has(metric.CPUUsageRate) {
			out.Rates[metric.CPU] = pair.Rates[metric.CPU] // also if it has no window
		}
	}
	return out.Values.Len() > 0
}

// pairGroups are the groups of the two numbers that metrics.k8s.io serves together.
const pairGroups groupMask = 1<<metric.CPU | 1<<metric.Memory

// pairSource returns the sample whose CPU and memory are used; nil if no source serves one.
func (r *sampleReader) pairSource() (pair *metric.Sample) {
	best := 0
	for k := range r.sources {
		source := &r.sources[k]
		if !source.current {
			continue
		}
		rank, s := 0, &source.sample
		switch cpu, memory := served(s.Reasons[metric.CPU]), served(s.Reasons[metric.Memory]); {
		case cpu && memory && k == r.pod.lead:
			rank = 4
		case cpu && memory && groupMask(s.LastKnown)&pairGroups == 0:
			rank = 3
		case cpu && memory:
			rank = 2
		case cpu || memory:
			rank = 1
		}
		if rank > best {
			pair, best = s, rank
		}
	}
	return pair
}

// unpaired returns the groups of s that must not be used beside pair, because s may be of another
// instance.
func unpaired(pair, s *metric.Sample) (groups groupMask) {
	if pair == nil || pair == s || run.Compare(&pair.Instance, &s.Instance) == run.Same {
		return 0
	}
	for _, g := range [...]metric.Group{metric.CPU, metric.Memory} {
		if served(s.Reasons[g]) && !served(pair.Reasons[g]) {
			groups |= 1 << g
		}
	}
	return groups
}

// dropOlderInstances skips sources that report an older instance than another source, or another
// one than the lead of the pod.
func (r *sampleReader) dropOlderInstances() {
	var latest *metric.Instance
	for k := range r.sources {
		if source := &r.sources[k]; source.current && (latest == nil || source.sample.Instance.Start > latest.Start) {
			latest = &source.sample.Instance
		}
	}
	if k := r.pod.lead; k >= 0 && r.sources[k].current {
		latest = &r.sources[k].sample.Instance
	}
	for k := range r.sources {
		source := &r.sources[k]
		source.current = source.current && mayBeOne(&source.sample.Instance, latest)
	}
}

// mayBeOne reports whether two sources may report one instance.
func mayBeOne(a, b *metric.Instance) bool {
	l := run.Compare(a, b)
	return l == run.Same || l == run.Undecided
}

// fillInstance copies fields that i lacks from o, which is the same instance. The modification time of a cgroup does not
// count as a start.
func fillInstance(i, o *metric.Instance) {
	i.UID, i.ID = cmp.Or(i.UID, o.UID), cmp.Or(i.ID, o.ID)
	if i.Path == "" {
		i.Path, i.Inode = o.Path, o.Inode
	}
	if i.Start == 0 || i.Origin == metric.StartCgroup && o.Start != 0 {
		i.Start, i.Origin = o.Start, o.Origin
	}
	if i.Processes < 0 {
		i.Processes = o.Processes
	}
}

// mergeGroups copies groups of s to out.
func mergeGroups(out, s *metric.Sample, groups groupMask) {
	for g := range metric.NumGroups {
		if groups&(1<<g) == 0 {
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
		if groups&(1<<metric.Catalogue[id].Group) != 0 {
			out.Values.Set(id, v)
		}
	}
}
