package recording

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// zeroTime stands for the zero time.Time where an instant is written.
const zeroTime = math.MinInt64

// encoder writes a frame, with what may be referred to.
type encoder struct {
	buf     []byte
	strings map[string]uint64
	begin   time.Time
	wall    int64 // the last instant's
	skew    int64
}

// reset forgets everything that may be referred to.
func (e *encoder) reset(begin time.Time) {
	*e = encoder{buf: e.buf[:0], strings: map[string]uint64{"": 1}, begin: begin, wall: begin.UnixNano()}
}

func (e *encoder) byte(b byte)       { e.buf = append(e.buf, b) }
func (e *encoder) unsigned(v uint64) { e.buf = binary.AppendUvarint(e.buf, v) }
func (e *encoder) signed(v int64)    { e.buf = binary.AppendVarint(e.buf, v) }
func (e *encoder) count(n int)       { e.unsigned(uint64(n)) }

// float writes a number that is often a round one, whose bits end in zeros.
func (e *encoder) float(v float64) { e.unsigned(bits.ReverseBytes64(math.Float64bits(v))) }

// text writes a string that will hardly come again.
func (e *encoder) text(s string) {
	e.count(len(s))
	e.buf = append(e.buf, s...)
}

// encodeName writes a string that will come again: its place in the table, or 0 and the
// string, which then gets the next place.
func encodeName[S ~string](e *encoder, s S) {
	if at, ok := e.strings[string(s)]; ok {
		e.unsigned(at)
		return
	}
	e.strings[string(s)] = uint64(len(e.strings)) + 1
	e.unsigned(0)
	e.text(string(s))
}

// instant writes a reading of our clock: the time of day since the last instant,
// and by how much the time of day has moved against the monotonic clock since
// the run began, since the last one.
func (e *encoder) instant(t time.Time) {
	if t.IsZero() {
		e.signed(zeroTime)
		return
	}
	wall := t.UnixNano()
	skew := wall - e.begin.UnixNano() - int64(t.Sub(e.begin))
	delta := wall - e.wall
	if delta == zeroTime {
		delta++ // of three centuries
	}
	e.signed(delta)
	e.signed(skew - e.skew)
	e.wall, e.skew = wall, skew
}

// stamp writes a time of the API server's, if there is one; a flag tells.
func (e *encoder) stamp(t time.Time) {
	if !t.IsZero() {
		e.signed(t.UnixNano() - e.begin.UnixNano())
	}
}

// values writes numbers that stand alone.
func (e *encoder) values(v *metric.Values) {
	e.count(v.Len())
	for id, value := range v.All() {
		e.unsigned(uint64(id))
		e.float(value)
	}
}

// labels writes names with their values, sorted.
func (e *encoder) labels(m map[string]string) {
	e.count(len(m))
	if len(m) == 0 {
		return
	}
	keys := make([]string, 0, 16)
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		encodeName(e, k)
		encodeName(e, m[k])
	}
}

func (e *encoder) entity(n *metric.Entity) {
	e.byte(byte(n.Kind))
	encodeName(e, n.Node)
	encodeName(e, n.Namespace)
	encodeName(e, n.Pod)
	encodeName(e, n.Name)
	encodeName(e, n.Part)
}

// instance writes what of an instance does not change.
func (e *encoder) instance(i *metric.Instance) {
	encodeName(e, i.UID)
	encodeName(e, i.ID)
	encodeName(e, i.Path)
	encodeName(e, i.Sandbox)
	e.unsigned(i.Inode)
	e.byte(byte(i.Origin))
	e.unsigned(uint64(i.Line))
}

// column writes differences that have something in common: their greatest
// common divisor, and each divided by it; 0 alone if all are 0.
func (e *encoder) column(deltas []int64) {
	var g uint64
	for _, d := range deltas {
		if d != 0 && g != 1 {
			g = common(magnitude(d), g)
		}
	}
	e.unsigned(g)
	if g == 0 {
		return
	}
	for _, d := range deltas {
		q := int64(magnitude(d) / g)
		if d < 0 {
			q = -q
		}
		e.signed(q)
	}
}

// magnitude is |d|, which for the smallest int64 is no int64.
func magnitude(d int64) uint64 {
	if d < 0 {
		return -uint64(d)
	}
	return uint64(d)
}

// common is the greatest common divisor by Euclid; common(a, 0) is a.
func common(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// whole returns v as an integer, if it is one that comes back as the same bits.
func whole(v float64) (int64, bool) {
	if v != math.Trunc(v) || math.Abs(v) > 1<<53 || v == 0 && math.Signbit(v) {
		return 0, false
	}
	return int64(v), true
}

func appendLength(buf []byte, n int) []byte { return binary.AppendUvarint(buf, uint64(n)) }
