package rate

import (
	"math"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// countersPerGroup is the largest number of counters with rates in a group of the catalogue.
// CPU, Memory, Network and IO have four. packedTrack has bits for 14.
const countersPerGroup = 8

// counter is a counter that has a rate.
type counter struct {
	counter, rate metric.ID
	perSecond     float64 // converts an increase per nanosecond to the rate's unit
}

// counters lists the counters with rates of each group. If the first one falls, that is a reset
// of the instance.
var counters = func() (list [metric.NumGroups][]counter) {
	for i := range metric.Catalogue {
		if d := &metric.Catalogue[i]; d.Type == metric.Rate {
			c := counter{counter: d.RateOf, rate: metric.ID(i), perSecond: float64(time.Second)}
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

// entry is one reading of a group's counters; NaN marks an absent one.
type entry struct {
	time     int64 // by the node's clock
	counters [countersPerGroup]float64
}

// noCounters are the counters of an entry without any.
var noCounters = func() (c [countersPerGroup]float64) {
	for i := range c {
		c[i] = math.NaN()
	}
	return c
}()

// maxEntries is more than a series needs: the entries are a quarter of the window apart, and
// the oldest is about one window old.
const maxEntries = 8

// series holds readings of one group of one instance with which later ones may be paired,
// oldest first, about a quarter of the window apart. The zero series is of a group without
// counters.
type series struct {
	on         bool          // the group has a counter
	received   bool          // the times are by our clock
	reset      bool          // readings were dropped: no pair begins at the instance's start
	stepped    bool          // the clock stepped, and no rate was measured since
	unsure     bool          // the next readings may be from before the clock stepped
	impossible uint8         // impossible pairs in a row, at most inARow
	since      time.Duration // our clock when the newest entry came
	newest     int64         // time of the newest reading, stored or not; 0 if none
	doubt      int64         // time of a reading that may be from before the clock stepped; 0 if none
	least      float64       // smallest number of cores that an impossible pair measured
	n          int
	entries    [maxEntries]entry // the first n
}

// last returns the newest entry; the zero entry if there is none.
func (s *series) last() entry {
	if s.n == 0 {
		return entry{}
	}
	return s.entries[s.n-1]
}

// counts reports whether v has a counter of group g with a rate.
func counts(g metric.Group, v *metric.Values) bool {
	for i := range counters[g] {
		if v.Has(counters[g][i].counter) {
			return true
		}
	}
	return false
}

// read sets an entry to the counters of group g in v.
func (e *entry) read(at int64, g metric.Group, v *metric.Values) {
	e.time, e.counters = at, noCounters
	for i := range counters[g] {
		if value, ok := v.Get(counters[g][i].counter); ok {
			e.counters[i] = value
		}
	}
}

// fell reports whether the first counter is lower than in the newest entry.
func (s *series) fell(e *entry) bool {
	return s.n > 0 && s.entries[s.n-1].counters[0] > e.counters[0]
}

// advances reports whether a reading at this time is newer than the newest entry.
func (s *series) advances(at int64) bool {
	return at != s.doubt && (s.n == 0 || at > s.entries[s.n-1].time)
}

// forget drops all entries. Later pairs begin with a reading that is still to come, and not
// with the instance's start.
func (s *series) forget() { s.n, s.reset = 0, true }

// baseline returns the newest entry that is at least target older than at. If there is none, it
// returns the oldest entry if that is at least least older; else nil.
func (s *series) baseline(at int64, target, least time.Duration) *entry {
	for i := s.n - 1; i >= 0; i-- {
		if at-s.entries[i].time >= int64(target) {
			return &s.entries[i]
		}
	}
	if s.n > 0 && at-s.entries[0].time >= int64(least) {
		return &s.entries[0]
	}
	return nil
}

// addBaseline stores the earlier CPU reading that identity knows of sample i, if t has none. It is
// not used after a step of the node's clock.
func (t *track) addBaseline(i int32, b *metric.Batch) {
	sr := &t.groups[metric.CPU].series
	for _, base := range b.Baselines {
		if base.Sample == i && sr.n == 0 && !sr.stepped && !sr.unsure && b.Samples[i].Received&(1<<metric.CPU) == 0 {
			sr.entries[0] = entry{time: base.Time, counters: noCounters}
			sr.entries[0].counters[0] = base.CPU
			sr.on, sr.received, sr.n = true, false, 1
		}
	}
}

// lacks returns how much older the oldest entry must become before a reading can be paired with
// it; 0 if there is no entry.
func (s *series) lacks(at int64, least time.Duration) time.Duration {
	if s.n == 0 {
		return 0
	}
	return least - time.Duration(at-s.entries[0].time)
}

// store adds e and drops entries that no later reading will be paired with. It keeps entries
// about a quarter of the window apart, so that a source that is read every second needs no more
// entries than one that is read every five.
func (s *series) store(e *entry, now, target time.Duration) {
	s.since, s.newest = now, e.time
	if n := s.n; n == maxEntries || n >= 2 && s.entries[n-1].time-s.entries[n-2].time < int64(target/4) {
		s.n--
	}
	s.entries[s.n] = *e
	s.n++
	drop := 0
	for drop+1 < s.n && e.time-s.entries[drop+1].time >= int64(target) {
		drop++
	}
	s.dropOldest(drop)
}

// dropOldest drops the n oldest entries.
func (s *series) dropOldest(n int) {
	if n > 0 {
		copy(s.entries[:], s.entries[n:s.n])
		s.n -= n
	}
}

// pair sets the rates from an earlier entry to a reading and returns Measured. If the rates cannot
// be right, it sets none and returns the reason.
func (ca *Calculator) pair(r *reading, prev *entry) metric.Reason {
	if r.series.fell(&r.entry) {
		return metric.CounterReset
	}
	window := r.time - prev.time
	if r.group == metric.CPU {
		if used := r.counters[0] - prev.counters[0]; !ca.cores.allow(used, window, r.batch.Resolution, r.series) {
			return metric.Impossible
		}
	}
	for i := range counters[r.group] {
		c := &counters[r.group][i]
		delta := r.counters[i] - prev.counters[i]
		if delta >= 0 { // false for NaN, and if one of the other counters fell
			r.sample.Values.Set(c.rate, delta/float64(window)*c.perSecond)
		}
	}
	r.sample.Rates[r.group] = metric.Window{End: r.time, Length: time.Duration(window)}
	return metric.Measured
}

// coarse reports whether the source cuts its timestamps to whole seconds.
func coarse(b *metric.Batch) bool { return b.Resolution >= time.Second }

// shortest returns the shortest window of a rate. It is longer if both ends are cut to the
// second, because ten seconds are too few then.
func (ca *Calculator) shortest(b *metric.Batch) time.Duration {
	if coarse(b) {
		return ca.options.CoarseWindow
	}
	return minWindow
}

// target returns the preferred window.
func (ca *Calculator) target(b *metric.Batch) time.Duration {
	return early(max(ca.shortest(b), b.Interval*2/3))
}

// least returns the shortest window that is served if no longer one is possible.
func (ca *Calculator) least(b *metric.Batch) time.Duration { return early(ca.shortest(b)) }

// early shortens a window by 5%, for a reading that came a little early.
func early(window time.Duration) time.Duration { return window - window/20 }

// cores limits how much CPU time a window can have.
type cores struct {
	capacity float64 // as the API server or the source reports it; 0 if unknown
	raised   float64 // as inARow pairs in a row measured
}

// inARow is how many impossible pairs in a row show that the capacity is wrong.
const inARow = 3

// coresMargin is for what CounterLag and the resolution do not cover. It is not from measurements: a
// counter that is wrong is mostly off by far more.
const coresMargin = 1.05

// allow reports whether used CPU nanoseconds are possible in window nanoseconds. clock is the
// resolution of the window's ends.
func (c *cores) allow(used float64, window int64, clock time.Duration, sr *series) bool {
	n := max(c.capacity, c.raised)
	if c.capacity <= 0 {
		return true
	}
	if !(used > n*float64(window+2*int64(clock)+int64(run.CounterLag))*coresMargin) { // true for NaN
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
