package remotewrite

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-metrics/weir/metric"
)

// The fields of io.prometheus.write.v2.Request that are written, by the numbers of
// https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/.
const (
	requestSymbols, requestSeries                      = 4, 5
	seriesLabels, seriesSamples, seriesMetadata        = 1, 2, 5
	sampleValue, sampleTime                            = 1, 2
	metadataType, metadataHelp                         = 1, 3
	typeCounter, typeGauge                      uint64 = 1, 2
)

// stale is the value that says a series has ended.
var stale = math.Float64frombits(0x7ff0000000000002)

// request is a request of version 2.0 that is being filled.
type request struct {
	symbols map[string]uint32
	head    []byte // the symbols, encoded
	body    []byte // the series, encoded
	samples int
	one     []byte // a series being encoded
}

func newRequest() *request {
	r := &request{symbols: map[string]uint32{}}
	r.reset()
	return r
}

// reset empties r and keeps its memory. The first symbol is always the empty one.
func (r *request) reset() {
	clear(r.symbols)
	r.head, r.body, r.samples = r.head[:0], r.body[:0], 0
	r.symbol("")
}

// symbol returns the number of s.
func (r *request) symbol(s string) uint64 {
	n, ok := r.symbols[s]
	if !ok {
		n = uint32(len(r.symbols))
		r.symbols[s] = n
		r.head = protowire.AppendTag(r.head, requestSymbols, protowire.BytesType)
		r.head = protowire.AppendString(r.head, s)
	}
	return uint64(n)
}

// add appends one sample of the series of a name and other labels, which are sorted
// and come after the name or, those below at, before it. t is in milliseconds since
// the Unix epoch.
func (r *request) add(name, help string, shape metric.MetricType, labels []label, before int, value float64, t int64) {
	var refs [2 * maxLabels * 5]byte // a symbol's number is at most five bytes
	packed := refs[:0]
	pair := func(name, value string) {
		packed = protowire.AppendVarint(packed, r.symbol(name))
		packed = protowire.AppendVarint(packed, r.symbol(value))
	}
	for _, l := range labels[:before] {
		pair(l.Name, l.Value)
	}
	pair("__name__", name)
	for _, l := range labels[before:] {
		pair(l.Name, l.Value)
	}
	s := protowire.AppendTag(r.one[:0], seriesLabels, protowire.BytesType)
	s = protowire.AppendBytes(s, packed)

	s = protowire.AppendTag(s, seriesSamples, protowire.BytesType)
	s = protowire.AppendVarint(s, uint64(1+8+1+protowire.SizeVarint(uint64(t))))
	s = protowire.AppendTag(s, sampleValue, protowire.Fixed64Type)
	s = protowire.AppendFixed64(s, math.Float64bits(value))
	s = protowire.AppendTag(s, sampleTime, protowire.VarintType)
	s = protowire.AppendVarint(s, uint64(t))

	kind := typeGauge
	if shape == metric.Cumulative {
		kind = typeCounter
	}
	ref := r.symbol(help)
	s = protowire.AppendTag(s, seriesMetadata, protowire.BytesType)
	s = protowire.AppendVarint(s, uint64(2+1+protowire.SizeVarint(ref)))
	s = protowire.AppendTag(s, metadataType, protowire.VarintType)
	s = protowire.AppendVarint(s, kind)
	s = protowire.AppendTag(s, metadataHelp, protowire.VarintType)
	s = protowire.AppendVarint(s, ref)

	r.one = s
	r.body = protowire.AppendTag(r.body, requestSeries, protowire.BytesType)
	r.body = protowire.AppendBytes(r.body, s)
	r.samples++
}

// appendTo appends the whole request.
func (r *request) appendTo(b []byte) []byte {
	b = append(b, r.head...)
	return append(b, r.body...)
}
