package rate

import (
	"math"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// countersPerGroup is how many counters of one group of the catalogue may have rates.
// CPU, Memory, Network and IO have four. It may be raised to 14, for which packedTrack
// has bits.
const countersPerGroup = 8

// counter is a counter that has a rate.
type counter struct {
	of, rate  metric.ID
	perSecond float64 // turns its increase in a window of one nanosecond into the rate's unit
}

// counters lists, for each group, the counters that have rates. The first is
// the one whose fall is a reset of the instance.
var counters = func() (list [metric.NumGroups][]counter) {
	for i := range metric.Catalogue {
		if d := &metric.Catalogue[i]; d.Type == metric.Rate {
			c := counter{of: d.RateOf, rate: metric.ID(i), perSecond: float64(time.Second)}
			if d.Unit == metric.Ratio {
				c.perSecond = 1
			}
			list[d.Group] = append(list[d.Group], c)
		}
	}
	for _, l := range list {
		if len(l) > countersPerGroup {
			panic("rate: a group of the catalogue has more rates than countersPerGroup, in processors/rate/series.go")
		}
	}
	return list
}()

// entry is a sample of one group's counters; NaN marks an absent one.
type entry struct {
	time     int64 // by the node's clock
	counters [countersPerGroup]float64
}

// noCounters are the counters of an entry that has none.
var noCounters = func() (c [countersPerGroup]float64) {
	for i := range c {
		c[i] = math.NaN()
	}
	return c
}()

// maxEntries is more than a series comes to hold: steps of a quarter of the window,
// from one that is a window old to the newest.
const maxEntries = 8

// series holds the samples of one group of one instance which later ones may be
// paired with, oldest first, in steps of about a quarter of the window. The zero series
// is of a group that has no counters.
type series struct {
	on         bool          // there was a counter
	received   bool          // the times are ours
	reset      bool          // the counter once fell or leapt: it does not count from the start
	stepped    bool          // the clock stepped, and nothing was measured since
	unsure     bool          // the next reading may be from before the clock stepped
	impossible uint8         // pairs in a row that were, inARow at most
	since      time.Duration // when the newest entry came, by our clock
	newest     int64         // the time of the newest reading, in store or not; 0 for none
	doubt      int64         // the time of a reading that may be from before the clock stepped
	least      float64       // the fewest cores such a pair measured
	n          int
	entries    [maxEntries]entry // the first n
}

// last returns the newest entry; the zero entry if there is none.
func (sr *series) last() entry {
	if sr.n == 0 {
		return entry{}
	}
	return sr.entries[sr.n-1]
}

// counts reports whether v holds a counter of group g.
func counts(g metric.Group, v *metric.Values) bool {
	for i := range counters[g] {
		if v.Has(counters[g][i].of) {
			return true
		}
	}
	return false
}

// read takes the counters of group g from v.
func read(g metric.Group, v *metric.Values) [countersPerGroup]float64 {
	c := noCounters
	for i := range counters[g] {
		if value, ok := v.Get(counters[g][i].of); ok {
			c[i] = value
		}
	}
	return c
}

// fell reports whether the first counter is below the newest in store.
func (sr *series) fell(e *entry) bool {
	return sr.n > 0 && sr.entries[sr.n-1].counters[0] > e.counters[0]
}

// advances reports whether a sample's time is after the newest in store.
func (sr *series) advances(at int64) bool {
	return at != sr.doubt && (sr.n == 0 || at > sr.entries[sr.n-1].time)
}

// forget drops what is in store: later pairs begin with a sample yet to come,
// and none with the instance's start.
func (sr *series) forget() { sr.n, sr.reset = 0, true }

// baseline returns the newest entry at least target older than at; failing
// that, the oldest, if it is at least least older; nil if there is none.
func (sr *series) baseline(at int64, target, least time.Duration) *entry {
	for i := sr.n - 1; i >= 0; i-- {
		if at-sr.entries[i].time >= int64(target) {
			return &sr.entries[i]
		}
	}
	if sr.n > 0 && at-sr.entries[0].time >= int64(least) {
		return &sr.entries[0]
	}
	return nil
}

// lacks returns for how long the oldest in store has yet to age before a reading
// can be paired with it; 0 if there is none.
func (sr *series) lacks(at int64, least time.Duration) time.Duration {
	if sr.n == 0 {
		return 0
	}
	return least - time.Duration(at-sr.entries[0].time)
}

// store adds e and drops what no later sample will be paired with. Entries
// closer together than a quarter of the window are thinned out, so that a
// source read every second keeps no more of them than one read every five.
func (sr *series) store(e *entry, now, target time.Duration) {
	sr.since, sr.newest = now, e.time
	if n := sr.n; n == maxEntries || n >= 2 && sr.entries[n-1].time-sr.entries[n-2].time < int64(target/4) {
		sr.n--
	}
	sr.entries[sr.n] = *e
	sr.n++
	drop := 0
	for drop+1 < sr.n && e.time-sr.entries[drop+1].time >= int64(target) {
		drop++
	}
	sr.dropOldest(drop)
}

// dropOldest drops the n oldest entries.
func (sr *series) dropOldest(n int) {
	if n > 0 {
		copy(sr.entries[:], sr.entries[n:sr.n])
		sr.n -= n
	}
}

// pair sets the rates of group g from two entries, unless they cannot be right.
func (s *Calculator) pair(g metric.Group, sample *metric.Sample, prev, cur *entry, b *metric.Batch, sr *series) metric.Reason {
	if sr.fell(cur) {
		return metric.CounterReset
	}
	window := cur.time - prev.time
	if g == metric.CPU {
		if used := cur.counters[0] - prev.counters[0]; !s.cores.allow(used, window, b.Resolution, sr) {
			return metric.Impossible
		}
	}
	for i := range counters[g] {
		c := &counters[g][i]
		delta := cur.counters[i] - prev.counters[i]
		if delta >= 0 { // false for NaN, and for a lesser counter that fell
			sample.Values.Set(c.rate, delta/float64(window)*c.perSecond)
		}
	}
	sample.Rates[g] = metric.Window{End: cur.time, Length: time.Duration(window)}
	return metric.Measured
}

// coarse reports whether the source cuts its timestamps to whole seconds.
func coarse(b *metric.Batch) bool { return b.Resolution >= time.Second }

// coarseWindows is how many times longer a window is to be where its ends are
// known only to the second.
const coarseWindows = 3

// shortest returns the shortest window that a rate may be over: two ends that are
// each known to the second say little over ten.
func (s *Calculator) shortest(b *metric.Batch) time.Duration {
	if coarse(b) {
		return coarseWindows * s.options.MinWindow
	}
	return s.options.MinWindow
}

// target returns the window to aim for.
func (s *Calculator) target(b *metric.Batch) time.Duration {
	return early(max(s.shortest(b), b.Interval*2/3))
}

// least returns the shortest window to serve where no longer one can be had.
func (s *Calculator) least(b *metric.Batch) time.Duration { return early(s.shortest(b)) }

// early lets a pair pass that was read a scheduler's delay too early.
func early(window time.Duration) time.Duration { return window - window/20 }

// cores bounds how much CPU time a window can hold.
type cores struct {
	capacity float64 // as the API server or the source says; 0 if unknown
	raised   float64 // as pairs in a row have measured
}

// inARow is how many impossible pairs in a row prove the capacity wrong.
const inARow = 3

// allow reports whether used CPU nanoseconds can have been used in window
// nanoseconds whose ends are known to clock.
func (c *cores) allow(used float64, window int64, clock time.Duration, sr *series) bool {
	n := max(c.capacity, c.raised)
	if c.capacity <= 0 {
		return true
	}
	if !(used > n*float64(window+2*int64(clock)+int64(250*time.Millisecond))*1.05) { // NaN proves nothing
		sr.impossible = 0
		return true
	}
	measured := used / float64(window)
	if sr.impossible == 0 || measured < sr.least {
		sr.least = measured
	}
	if sr.impossible < inARow {
		sr.impossible++
	}
	if sr.impossible == inARow {
		c.raised = max(c.raised, sr.least)
		return true
	}
	return false
}
