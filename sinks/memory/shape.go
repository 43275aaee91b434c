package memory

import (
	"math/bits"

	"github.com/weir-metrics/weir/metric"
)

// words is how many 64-bit words hold one bit for each metric.
const words = (int(metric.NumMetrics) + 63) / 64

// shape is what a sample is like but for its numbers. Few samples of a node
// differ in it.
type shape struct {
	present        [words]uint64 // the metrics served
	reasons        [metric.NumGroups]metric.Reason
	received, held uint16
	times, windows uint8 // the groups with a time, with a window
	// slots says, in four bits for each clockKey, which of a record's moments
	// it goes by: what is of one moment is kept once.
	slots     uint64
	keys      uint16 // one bit for each that has a moment
	moments   uint8  // how many there are
	processes bool   // their number is known
}

// clockKey tells apart the moments that one entity's metrics may be of: a
// group's time, and the end of the window of its rates.
type clockKey uint8

const numClockKeys = 2 * metric.NumGroups

func timeOf(g metric.Group) clockKey { return clockKey(2 * g) }
func endOf(g metric.Group) clockKey  { return clockKey(2*g + 1) }

// slot returns which moment k goes by, of a slots or the clocks of a row.
func slot(slots uint64, k clockKey) int { return int(slots >> (4 * k) & 15) }

// serves reports whether group g has numbers that may be served.
func (s *shape) serves(g metric.Group) bool { return served(s.reasons[g]) }

// empty reports whether there is nothing to serve.
func (s *shape) empty() bool { return s.present == [words]uint64{} }

// dated reports whether the shape has a moment of key k.
func (s *shape) dated(k clockKey) bool { return s.keys>>k&1 != 0 }

// head is how many words of a record come before its values.
func (s *shape) head() int {
	n := int(s.moments) + bits.OnesCount8(s.windows)
	if s.processes {
		n++
	}
	return n
}

// size is how many words a record takes.
func (s *shape) size() int {
	n := s.head()
	for _, w := range s.present {
		n += bits.OnesCount64(w)
	}
	return n
}

// value returns where in a record the value of id is, and whether there is one.
func (s *shape) value(id metric.ID) (int, bool) {
	word, bit := id/64, id%64
	if s.present[word]>>bit&1 == 0 {
		return 0, false
	}
	n := s.head() + bits.OnesCount64(s.present[word]&(1<<bit-1))
	for w := range word {
		n += bits.OnesCount64(s.present[w])
	}
	return n, true
}

// served reports whether a group with reason r is served.
func served(r metric.Reason) bool { return r == metric.Measured || r == metric.Ambiguous }

// shapeOf returns the shape of s. Moments share a slot if they are equal, and
// were in the entity's shape before, if that is known: what once differed is
// kept apart from then on, so that shapes come to rest.
func shapeOf(s *metric.Sample, before *shape) shape {
	sh := shape{reasons: s.Reasons, received: s.Received, held: s.Held, processes: s.Instance.Processes != -1}
	sh.times, sh.windows = moments(s)
	sh.keys, sh.present = keys(sh.times, sh.windows), presentIn(s)
	var first [numClockKeys]clockKey
	for k := range clockKey(numClockKeys) {
		if !sh.dated(k) {
			continue
		}
		n := 0
		for n < int(sh.moments) && (momentOf(s, first[n]) != momentOf(s, k) || before.tells(first[n], k)) {
			n++
		}
		if n == int(sh.moments) {
			first[n] = k
			sh.moments++
		}
		sh.slots |= uint64(n) << (4 * k)
	}
	return sh
}

// tells reports whether s keeps the moments of a and b apart. s may be nil.
func (s *shape) tells(a, b clockKey) bool {
	return s != nil && s.dated(a) && s.dated(b) && slot(s.slots, a) != slot(s.slots, b)
}

func momentOf(s *metric.Sample, k clockKey) int64 {
	if k&1 != 0 {
		return s.Rates[k/2].End
	}
	return s.Times[k/2]
}

// moments returns the groups of s with a time and those with a window.
func moments(s *metric.Sample) (times, windows uint8) {
	for g := range metric.NumGroups {
		if s.Times[g] != 0 {
			times |= 1 << g
		}
		if s.Rates[g] != (metric.Window{}) {
			windows |= 1 << g
		}
	}
	return times, windows
}

// presentIn returns the metrics of s that may be served.
func presentIn(s *metric.Sample) (present [words]uint64) {
	for id := range s.Values.All() {
		present[id/64] |= 1 << (id % 64)
	}
	for g, r := range s.Reasons {
		if !served(r) {
			for w := range present {
				present[w] &^= membersOf[g][w]
			}
		}
	}
	return present
}

// membersOf are the metrics of each group, one bit each.
var membersOf = func() (of [metric.NumGroups][words]uint64) {
	for id, d := range metric.Catalogue {
		of[d.Group][id/64] |= 1 << (id % 64)
	}
	return of
}()

// fits reports whether s is of this shape.
func (s *shape) fits(sample *metric.Sample) bool {
	if s.reasons != sample.Reasons || s.received != sample.Received || s.held != sample.Held ||
		s.processes != (sample.Instance.Processes != -1) || s.present != presentIn(sample) {
		return false
	}
	if times, windows := moments(sample); times != s.times || windows != s.windows {
		return false
	}
	var at [numClockKeys]int64
	var seen uint16
	for m := s.keys; m != 0; m &= m - 1 {
		k := clockKey(bits.TrailingZeros16(m))
		n := slot(s.slots, k)
		if when := momentOf(sample, k); seen>>n&1 == 0 {
			at[n] = when
			seen |= 1 << n
		} else if at[n] != when {
			return false
		}
	}
	return true
}

// keys returns the clockKeys of groups with times and with windows, one bit
// each.
func keys(times, windows uint8) (set uint16) {
	for g := range metric.NumGroups {
		set |= uint16(times>>g&1)<<(2*g) | uint16(windows>>g&1)<<(2*g+1)
	}
	return set
}
