package manager

import (
	"hash/fnv"
	"time"
)

// settle is the time from a source's first read to its second: long enough for a rate, and short
// after a restart of weir.
const settle = 10 * time.Second

// firstSpread is the average time between the first reads of sources that appear together. Each
// begins with a handshake, which takes about as much CPU.
const firstSpread = time.Millisecond

// beat is the step of the places of sources in the interval, so that several sources share one.
// A process that wakes up has lost its code and tables from the processor's caches. If it then
// reads a dozen sources, it pays for that once: with a thousand nodes a read costs half
// (docs/performance.md).
const beat = 250 * time.Millisecond

// timetable holds when the rounds of one source are due: the first at once, the second when
// there can be a rate, all others at the source's fixed place: when the Unix time modulo
// interval is offset. The offset is a hash of the source's name, in whole beats. So sources are
// spread over the interval, and replicas of weir read a source at the same time.
type timetable struct {
	offset, interval time.Duration
}

func newTimetable(name string, interval time.Duration) timetable {
	offset := time.Duration(hash(name) % uint64(interval))
	return timetable{offset: offset.Truncate(min(beat, interval/10)), interval: interval}
}

// first returns how long the first read waits if together sources appear at once. A single
// source does not wait. Several are read in the order of their places, within half an interval.
func (t timetable) first(together int) time.Duration {
	spread := min(time.Duration(together-1)*firstSpread, t.interval/2)
	return time.Duration(float64(t.offset) / float64(t.interval) * float64(spread))
}

// next returns when the next round is due, and how many places were missed. Round number round
// (from 1) was due at due and has ended now. After a round with newcomers, the next one is
// halfway to the next place.
//
// There is at least a third of an interval between two rounds. Otherwise a clock that is
// adjusted forwards would give the same place twice, and the second read could be right before
// a place.
func (t timetable) next(round int, due, now time.Time, newcomers bool) (next time.Time, missed int) {
	if round == 1 {
		return now.Add(min(settle, t.interval)), 0
	}
	// Elapsed time is monotonic, so setting the clock misses nothing.
	missed = t.placesWithin(due, now.Sub(due))
	places := t
	if newcomers {
		places = t.halved()
	}
	next = places.upcoming(now)
	if next.Sub(due) < t.interval/3 {
		next = next.Add(places.interval)
	}
	return next, missed
}

// halved returns t with one more place halfway between each two.
func (t timetable) halved() timetable {
	half := t.interval / 2
	return timetable{offset: t.offset % half, interval: half}
}

// upcoming returns the first fixed place after now.
func (t timetable) upcoming(now time.Time) time.Time {
	return now.Add(t.interval - t.phase(now))
}

// phase returns how long ago the last fixed place was: 0 at the place itself.
func (t timetable) phase(now time.Time) time.Duration {
	p := (now.UnixNano() - int64(t.offset)) % int64(t.interval)
	if p < 0 {
		p += int64(t.interval)
	}
	return time.Duration(p)
}

// placesWithin counts the fixed places in (from, from+d].
func (t timetable) placesWithin(from time.Time, d time.Duration) int {
	return int((t.phase(from) + max(d, 0)) / t.interval)
}

// hash is FNV-1a with the finaliser of splitmix64, which spreads names that differ only in their
// last digit.
func hash(name string) uint64 {
	fnv1a := fnv.New64a()
	_, _ = fnv1a.Write([]byte(name))
	h := fnv1a.Sum64()
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
