package remotewrite

import (
	"bytes"
	"math"

	"github.com/klauspost/compress/snappy"
	writev2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
	"github.com/weir-metrics/weir/sinks/push"
)

// stale is the value of a stale marker, which ends a series.
var stale = math.Float64frombits(0x7ff0000000000002)

// The field numbers of io.prometheus.write.v2.Request.
const (
	fieldSymbols, fieldSeries                   = 4, 5
	fieldLabelRefs, fieldSamples, fieldMetadata = 1, 2, 5
	fieldValue, fieldTime                       = 1, 2
	fieldMetadataType, fieldMetadataHelp        = 1, 3
)

// request is a request of version 2.0 that is being filled. It is written as bytes while it fills,
// because a message of objects costs five allocations a sample: `go test -bench Send ./sinks`.
type request struct {
	external map[string]string // labels for each series
	names    [metric.NumKinds]map[string]*names

	number  uint32            // of the request: references to symbols of another one mean nothing
	refs    map[string]uint32 // the references of the symbols
	symbols []byte            // encoded fields
	series  []byte            // encoded fields
	one     []byte            // the series that is being encoded
	packed  []byte            // the last request, compressed
}

// names are the names of all metrics for a kind of entity, or for a kind of its parts.
type names [metric.NumMetrics]struct{ name, help symbol }

// symbol is a text with its reference in a request.
type symbol struct {
	text    string
	request uint32 // for which ref is valid
	ref     uint32
}

func newRequest(external map[string]string) *request {
	r := &request{external: external}
	for k := range r.names {
		r.names[k] = map[string]*names{}
	}
	r.begin()
	return r
}

// begin begins an empty request. The first symbol is always the empty one.
func (r *request) begin() {
	if r.refs == nil {
		r.refs = map[string]uint32{}
	}
	clear(r.refs)
	r.number++
	r.symbols, r.series = r.symbols[:0], r.series[:0]
	r.ref("")
}

// ref returns the reference of a text in the request.
func (r *request) ref(text string) uint32 {
	ref, known := r.refs[text]
	if !known {
		ref = uint32(len(r.refs))
		r.refs[text] = ref
		r.symbols = appendField(r.symbols, fieldSymbols, text)
	}
	return ref
}

// refOf returns the reference of a symbol in the request.
func (r *request) refOf(s *symbol) uint32 {
	if s.request != r.number {
		s.request, s.ref = r.number, r.ref(s.text)
	}
	return s.ref
}

// Add adds one sample.
func (r *request) Add(p push.Point[labels]) {
	n := &r.namesOf(p.Kind, p.Part)[p.Metric]
	l := p.Labels
	if l.request != r.number {
		l.encode(r)
	}
	kind := writev2.Metadata_METRIC_TYPE_GAUGE
	if metric.Catalogue[p.Metric].Type == metric.Cumulative {
		kind = writev2.Metadata_METRIC_TYPE_COUNTER
	}
	value := p.Value
	if p.Ended {
		value = stale
	}
	name, help := uint64(r.refOf(&n.name)), uint64(r.refOf(&n.help))

	one := protowire.AppendTag(r.one[:0], fieldLabelRefs, protowire.BytesType)
	one = protowire.AppendVarint(one, uint64(len(l.refs)+protowire.SizeVarint(name)))
	one = append(one, l.refs[:l.nameAt]...)
	one = protowire.AppendVarint(one, name)
	one = append(one, l.refs[l.nameAt:]...)

	one = protowire.AppendTag(one, fieldSamples, protowire.BytesType)
	one = protowire.AppendVarint(one, uint64(1+8+1+protowire.SizeVarint(uint64(p.Time))))
	one = protowire.AppendTag(one, fieldValue, protowire.Fixed64Type)
	one = protowire.AppendFixed64(one, math.Float64bits(value))
	one = protowire.AppendTag(one, fieldTime, protowire.VarintType)
	one = protowire.AppendVarint(one, uint64(p.Time))

	one = protowire.AppendTag(one, fieldMetadata, protowire.BytesType)
	one = protowire.AppendVarint(one, uint64(1+protowire.SizeVarint(uint64(kind))+1+protowire.SizeVarint(help)))
	one = protowire.AppendTag(one, fieldMetadataType, protowire.VarintType)
	one = protowire.AppendVarint(one, uint64(kind))
	one = protowire.AppendTag(one, fieldMetadataHelp, protowire.VarintType)
	one = protowire.AppendVarint(one, help)

	r.one, r.series = one, appendField(r.series, fieldSeries, one)
}

// Encode returns the compressed request, and empties it.
func (r *request) Encode() []byte {
	r.symbols = append(r.symbols, r.series...) // one buffer: the symbols come first
	r.packed = snappy.Encode(r.packed[:cap(r.packed)], r.symbols)
	r.begin()
	return bytes.Clone(r.packed) // it waits, so it takes no more memory than it needs
}

func (r *request) namesOf(k metric.Kind, part string) *names {
	n := r.names[k][part]
	if n == nil {
		n = new(names)
		for id := range n {
			d := &metric.Catalogue[id]
			n[id].name.text, n[id].help.text = series.Name(k, part, d), series.Help(k, part, d)
		}
		r.names[k][part] = n
	}
	return n
}
