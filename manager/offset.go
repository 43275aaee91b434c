package manager

import "time"

// settle is the time from a source's first read to its second: long enough for
// a rate, and short enough that a restart of weir costs little.
const settle = 10 * time.Second

// firstSpread is how far apart the first reads of sources that appear together
// lie on average. Each begins with a handshake, which takes about as much CPU.
const firstSpread = time.Millisecond

// beat is how long after each other the steady places of sources lie, unless they are
// the same. A process that wakes up for one source finds its code and tables gone from
// the processor's caches; one that then reads a dozen pays for that once. For a thousand
// nodes that halves what a read costs.
const beat = 250 * time.Millisecond

// timetable says when the rounds of one source are due: the first at once, the
// second when a rate can be had, all others at the source's steady place,
// which is every instant whose Unix time is offset modulo interval. The offset
// is a hash of the source's name, in whole beats, so sources are spread over the
// interval and replicas of weir agree on it without talking.
type timetable struct {
	offset, interval time.Duration
}

func newTimetable(name string, interval time.Duration) timetable {
	offset := time.Duration(hash(name) % uint64(interval))
	return timetable{offset: offset.Truncate(min(beat, interval/10)), interval: interval}
}

// first returns how long the first read waits if so many sources appear at
// once: not at all for one, and in the order of their steady places for more, over
// half an interval at most.
func (t timetable) first(together int) time.Duration {
	spread := min(time.Duration(together-1)*firstSpread, t.interval/2)
	return time.Duration(float64(t.offset) / float64(t.interval) * float64(spread))
}

// next returns when the next round is due, given that the round'th (from 1) was
// due at due and has ended now, and how many places were missed meanwhile. A
// round that met newcomers is followed by one halfway to the next place.
//
// Rounds keep a third of an interval between them. Without that, a clock that is
// slewed forwards while we wait would have the same place come twice, and the
// second read and a place right after it would both be read.
func (t timetable) next(round int, due, now time.Time, newcomers bool) (next time.Time, missed int) {
	if round == 1 {
		return now.Add(min(settle, t.interval)), 0
	}
	// Elapsed time is monotonic where due and now are readings of this
	// machine's clock: setting the clock misses nothing.
	missed = t.placesWithin(due, now.Sub(due))
	places := t
	if newcomers {
		places = t.halved()
	}
	next = places.place(now)
	if next.Sub(due) < t.interval/3 {
		next = next.Add(places.interval)
	}
	return next, missed
}

// halved returns t with a place halfway between each two.
func (t timetable) halved() timetable {
	half := t.interval / 2
	return timetable{offset: t.offset % half, interval: half}
}

// place returns the first steady place after now.
func (t timetable) place(now time.Time) time.Time {
	return now.Add(t.interval - t.phase(now))
}

// phase returns how long after a steady place now is: 0 at the place itself.
func (t timetable) phase(now time.Time) time.Duration {
	p := (now.UnixNano() - int64(t.offset)) % int64(t.interval)
	if p < 0 {
		p += int64(t.interval)
	}
	return time.Duration(p)
}

// placesWithin counts the steady places in (from, from+d].
func (t timetable) placesWithin(from time.Time, d time.Duration) int {
	return int((t.phase(from) + max(d, 0)) / t.interval)
}

// hash is FNV-1a with a finaliser. Names that differ in their last digit have
// FNV hashes that differ by a small multiple of its prime, which would put
// neighbours of a numbered fleet at regular distances; the finaliser
// (splitmix64's) scatters them.
func hash(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
