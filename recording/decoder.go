package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// apart is by how much our time of day may move against the monotonic clock
// without being taken for a step. Readings of the two are taken one after the other.
const apart = 100 * time.Millisecond

var (
	errShort = errors.New("a frame ends too early")
	errPlace = errors.New("a reference to what is not there")
)

// decoder reads a frame. Its first error stays, and makes all that follows zero.
type decoder struct {
	buf     []byte
	err     error
	strings []string
	names   vocabulary
	begin   int64
	wall    int64
	skew    int64
	budget  int64 // bytes that may still be remembered
}

// reset forgets everything that may be referred to.
func (d *decoder) reset(budget int64) {
	*d = decoder{buf: d.buf, err: d.err, strings: append(d.strings[:0], ""), budget: budget}
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.buf = nil
}

// spend notes that n bytes will be remembered.
func (d *decoder) spend(n int) {
	if d.budget -= int64(n); d.budget < 0 {
		d.fail(errors.New("it names more than this reader has memory for"))
	}
}

func (d *decoder) byte() byte {
	if len(d.buf) == 0 {
		d.fail(errShort)
		return 0
	}
	b := d.buf[0]
	d.buf = d.buf[1:]
	return b
}

// among reads a byte that is one of n, from 0.
func (d *decoder) among(n int) byte {
	b := d.byte()
	if int(b) >= n {
		d.fail(fmt.Errorf("%d where there are %d", b, n))
		return 0
	}
	return b
}

func (d *decoder) unsigned() uint64 {
	v, n := binary.Uvarint(d.buf)
	if n <= 0 {
		d.fail(errShort)
		return 0
	}
	d.buf = d.buf[n:]
	return v
}

func (d *decoder) signed() int64 {
	v, n := binary.Varint(d.buf)
	if n <= 0 {
		d.fail(errShort)
		return 0
	}
	d.buf = d.buf[n:]
	return v
}

// count reads how many follow, each of which takes at least a byte.
func (d *decoder) count() int {
	n := d.unsigned()
	if n > uint64(len(d.buf)) {
		d.fail(errShort)
		return 0
	}
	return int(n)
}

func (d *decoder) float() float64 {
	return math.Float64frombits(bits.ReverseBytes64(d.unsigned()))
}

func (d *decoder) text() string {
	n := d.count()
	s := string(d.buf[:n])
	d.buf = d.buf[n:]
	return s
}

func decodeName[S ~string](d *decoder) S {
	at := d.unsigned()
	if at == 0 {
		s := d.text()
		d.spend(len(s) + 16)
		if d.err != nil {
			return ""
		}
		d.strings = append(d.strings, s)
		return S(s)
	}
	if at > uint64(len(d.strings)) {
		d.fail(errPlace)
		return ""
	}
	return S(d.strings[at-1])
}

// instant returns a time that differs from others of its run by what the
// monotonic clock said: where the time of day was stepped, it is that of
// the clock as it was when the run began.
func (d *decoder) instant() time.Time {
	delta := d.signed()
	if delta == zeroTime || d.err != nil {
		return time.Time{}
	}
	d.wall += delta
	d.skew += d.signed()
	if d.skew > int64(apart) || d.skew < -int64(apart) {
		return time.Unix(0, d.wall-d.skew)
	}
	return time.Unix(0, d.wall)
}

func (d *decoder) stamp(there bool) time.Time {
	if !there {
		return time.Time{}
	}
	return time.Unix(0, d.begin+d.signed())
}

func (d *decoder) values() (v metric.Values) {
	n := d.count()
	d.spend(16 * n)
	for range n {
		id, known := d.metric()
		if value := d.float(); known && d.err == nil {
			v.Set(id, value)
		}
	}
	return v
}

func (d *decoder) requirements() cluster.Requirements {
	v := d.values()
	return cluster.NewRequirements(&v)
}

// metric reads which metric; it is unknown if this weir has none of its name.
func (d *decoder) metric() (metric.ID, bool) {
	at := d.unsigned()
	if at >= uint64(len(d.names.metrics)) {
		d.fail(fmt.Errorf("metric %d of %d", at, len(d.names.metrics)))
		return 0, false
	}
	m := d.names.metrics[at]
	return metric.ID(max(m, 0)), m >= 0
}

func (d *decoder) labels() map[string]string {
	n := d.count()
	if n == 0 {
		return nil
	}
	d.spend(48 * n)
	if d.err != nil {
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		k := decodeName[string](d)
		m[k] = decodeName[string](d)
	}
	return m
}

func (d *decoder) entity() metric.Entity {
	return metric.Entity{
		Kind: metric.Kind(d.among(metric.NumKinds)), Node: decodeName[metric.NodeName](d), Namespace: decodeName[metric.Namespace](d),
		Pod: decodeName[metric.PodName](d), Name: decodeName[string](d), Part: decodeName[string](d),
	}
}

func (d *decoder) instance() metric.Instance {
	return metric.Instance{
		UID: decodeName[metric.PodUID](d), ID: decodeName[metric.ContainerID](d), Path: decodeName[metric.CgroupPath](d),
		Sandbox: decodeName[metric.ContainerID](d), Inode: d.unsigned(), Origin: metric.StartOrigin(d.among(int(metric.StartRuntime) + 1)), Line: uint32(d.unsigned()),
	}
}

// column reads n differences into into, which it returns.
func (d *decoder) column(into []int64, n int) []int64 {
	into = grown(into, n)
	g := int64(d.unsigned())
	if g == 0 {
		clear(into)
		return into
	}
	for i := range into {
		into[i] = d.signed() * g
	}
	return into
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
