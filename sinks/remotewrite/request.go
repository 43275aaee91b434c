package remotewrite

import (
	"math"

	"github.com/klauspost/compress/s2"
	writev2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-metrics/weir/metric"
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
	layouts  [metric.NumKinds]map[string]*layout

	number  uint32            // of the request: references to symbols of another one mean nothing
	refs    map[string]uint32 // the references of the symbols
	symbols []byte            // encoded fields
	series  []byte            // encoded fields
	packed  []byte            // the last request, compressed

	entity    *metric.Entity // whose points are being added; nil if there is none
	layout    *layout        // of entity
	labelRefs []byte         // the encoded references of its labels; the one of the metric's name belongs at nameAt
	nameAt    int
}

// names are the texts of a metric.
type names struct {
	name, help symbol
	request    uint32 // for which metadata is valid
	metadata   []byte // encoded field of a series
}

// symbol is a text with its reference in a request.
type symbol struct {
	text    string
	request uint32 // for which ref is valid
	ref     uint32
}

func newRequest(external map[string]string) *request {
	r := &request{external: external, refs: map[string]uint32{}}
	for k := range r.layouts {
		r.layouts[k] = map[string]*layout{}
	}
	r.empty()
	return r
}

// empty begins an empty request. The first symbol is always the empty one.
func (r *request) empty() {
	clear(r.refs)
	r.number++
	r.symbols, r.series, r.entity = r.symbols[:0], r.series[:0], nil
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

// Describe keeps nothing of an entity: its labels never change, and are made again for each request.
func (*request) Describe(struct{}, *metric.Sample) (_ struct{}, renamed bool) {
	return struct{}{}, false
}

// Add adds one sample.
func (r *request) Add(p push.Point[struct{}]) {
	if p.Entity != r.entity {
		r.begin(p.Entity)
	}
	n := &r.layout.metrics[p.Metric]
	name := uint64(r.refOf(&n.name))
	if n.request != r.number {
		n.request, n.metadata = r.number, r.appendMetadata(n.metadata[:0], p.Metric, r.refOf(&n.help))
	}
	value := p.Value
	if p.Ended {
		value = stale
	}
	refs := len(r.labelRefs) + protowire.SizeVarint(name)
	sample := 1 + 8 + 1 + protowire.SizeVarint(uint64(p.Time))

	to := protowire.AppendTag(r.series, fieldSeries, protowire.BytesType)
	to = protowire.AppendVarint(to, uint64(1+protowire.SizeBytes(refs)+1+protowire.SizeBytes(sample)+len(n.metadata)))
	to = protowire.AppendTag(to, fieldLabelRefs, protowire.BytesType)
	to = protowire.AppendVarint(to, uint64(refs))
	to = append(to, r.labelRefs[:r.nameAt]...)
	to = protowire.AppendVarint(to, name)
	to = append(to, r.labelRefs[r.nameAt:]...)
	to = protowire.AppendTag(to, fieldSamples, protowire.BytesType)
	to = protowire.AppendVarint(to, uint64(sample))
	to = protowire.AppendTag(to, fieldValue, protowire.Fixed64Type)
	to = protowire.AppendFixed64(to, math.Float64bits(value))
	to = protowire.AppendTag(to, fieldTime, protowire.VarintType)
	to = protowire.AppendVarint(to, uint64(p.Time))
	to = append(to, n.metadata...)
	r.series = to
}

// appendMetadata appends the field of a series that describes a metric.
func (r *request) appendMetadata(to []byte, id metric.ID, help uint32) []byte {
	kind := writev2.Metadata_METRIC_TYPE_GAUGE
	if metric.Catalogue[id].Type == metric.Cumulative {
		kind = writev2.Metadata_METRIC_TYPE_COUNTER
	}
	to = protowire.AppendTag(to, fieldMetadata, protowire.BytesType)
	to = protowire.AppendVarint(to, uint64(1+protowire.SizeVarint(uint64(kind))+1+protowire.SizeVarint(uint64(help))))
	to = protowire.AppendTag(to, fieldMetadataType, protowire.VarintType)
	to = protowire.AppendVarint(to, uint64(kind))
	to = protowire.AppendTag(to, fieldMetadataHelp, protowire.VarintType)
	return protowire.AppendVarint(to, uint64(help))
}

// Encode appends the compressed request to a slice, and empties the request.
func (r *request) Encode(to []byte) []byte {
	r.symbols = append(r.symbols, r.series...) // one buffer: the symbols come first
	r.packed = s2.EncodeSnappy(r.packed[:cap(r.packed)], r.symbols)
	r.empty()
	return append(to, r.packed...) // it waits, so it takes no more memory than it needs
}
