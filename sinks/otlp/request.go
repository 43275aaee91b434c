package otlp

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/push"
)

// The field numbers of an ExportMetricsServiceRequest.
const (
	fieldResourceMetrics                          = 1
	fieldResource, fieldScopeMetrics, fieldSchema = 1, 2, 3
	fieldScope, fieldMetrics                      = 1, 2
	fieldName, fieldHelp, fieldUnit               = 1, 2, 3
	fieldGauge, fieldSum                          = 5, 7
	fieldPoints, fieldTemporality, fieldMonotonic = 1, 2, 3
	fieldStart, fieldTime, fieldDouble            = 2, 3, 4
	fieldAttributes, fieldFlags                   = 7, 8
	fieldResourceAttributes                       = 1
	fieldKey, fieldAnyValue, fieldString          = 1, 2, 1
)

// scope names weir as the origin of what is sent.
var scope = &commonpb.InstrumentationScope{Name: "github.com/weir-metrics/weir"}

// request is a request that is being filled. It is written as bytes, entity by entity, because a
// message of objects costs seven allocations a point: `go test -bench Send ./sinks`.
type request struct {
	own   []*commonpb.KeyValue // attributes of each resource
	scope []byte               // encoded field
	names [metric.NumKinds]map[string]*[metric.NumMetrics]definition

	message []byte
	// entity is whose points are being added, and what they have in common; nil if there is none.
	entity        *metric.Entity
	uid           metric.PodUID
	id            metric.ContainerID
	definitions   *[metric.NumMetrics]definition
	resource      []byte       // encoded
	resourceNames []string     // names of the attributes of resource
	part          []byte       // encoded field of each point; empty for a whole entity
	added         metric.IDSet // to the entity: another point of one of them begins a second message
	metrics       []byte       // encoded fields, of entity
	directions    []point      // of entity, which are not in metrics yet: a metric has those of all directions
	packer        packer
}

// point is one data point.
type point struct {
	*definition
	value       float64
	time, start uint64 // in nanoseconds since the Unix epoch; start is 0 if unknown
	ended       bool
}

func newRequest(o *Options) *request {
	r := &request{own: attributes(o.Attributes), packer: packer{uncompressed: o.Uncompressed}}
	r.scope = protowire.AppendBytes(appendTag(nil, fieldScope, protowire.BytesType), encode(scope))
	for k := range r.names {
		r.names[k] = map[string]*[metric.NumMetrics]definition{}
	}
	return r
}

// encode returns a message whose texts are all valid UTF-8.
func encode(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("otlp: encode %v: %v", m, err)) // attribute makes all texts valid
	}
	return b
}

// Add adds one data point. The points of an entity come one after another.
func (r *request) Add(p push.Point[labels]) {
	if l := p.Labels; p.Entity != r.entity || l.uid != r.uid || l.id != r.id || r.added.Has(p.Metric) {
		r.begin(p.Entity, l)
	}
	r.added.Add(p.Metric)
	d := &r.definitions[p.Metric]
	added := point{definition: d, value: p.Value, time: uint64(p.Time) * 1e6, ended: p.Ended}
	if start := uint64(p.Labels.start); d.form == counter && start < added.time {
		added.start = start
	}
	if d.attributes != nil {
		r.directions = append(r.directions, added)
		return
	}
	r.addMetric([]point{added})
}

// addEntity adds the points of an entity to the message.
func (r *request) addEntity() {
	slices.SortStableFunc(r.directions, func(a, b point) int { return strings.Compare(a.name, b.name) })
	for rest := r.directions; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].name == rest[0].name {
			n++
		}
		r.addMetric(rest[:n])
		rest = rest[n:]
	}
	if len(r.metrics) == 0 {
		return
	}
	metrics := len(r.scope) + len(r.metrics)
	to := appendSize(r.message, fieldResourceMetrics, fieldSize(len(r.resource))+fieldSize(metrics)+fieldSize(len(schemaURL)))
	to = appendMessage(to, fieldResource, r.resource)
	to = append(appendSize(to, fieldScopeMetrics, metrics), r.scope...)
	to = append(to, r.metrics...)
	r.message = append(appendSize(to, fieldSchema, len(schemaURL)), schemaURL...)
	r.added, r.metrics, r.directions = metric.IDSet{}, r.metrics[:0], r.directions[:0]
}

// addMetric adds a metric with points, which have one name.
func (r *request) addMetric(points []point) {
	d := points[0].definition
	size := len(d.trailer)
	for i := range points {
		size += fieldSize(points[i].size() + len(r.part))
	}
	form := protowire.Number(fieldGauge)
	if d.form != gauge {
		form = fieldSum
	}
	to := appendSize(r.metrics, fieldMetrics, len(d.encoded)+fieldSize(size))
	to = append(to, d.encoded...)
	to = appendSize(to, form, size)
	for i := range points {
		to = append(points[i].append(to, len(r.part)), r.part...)
	}
	to = append(to, d.trailer...)
	r.metrics = to
}

// size returns the size of a point without the field of its part.
func (p *point) size() int {
	size := 9 + 9 + len(p.pointAttributes)
	if p.start != 0 {
		size += 9
	}
	if p.ended {
		size += 2 - 9
	}
	return size
}

// append appends a point to to, without the field of its part, whose size is part.
func (p *point) append(to []byte, part int) []byte {
	to = appendSize(to, fieldPoints, p.size()+part)
	if p.start != 0 {
		to = protowire.AppendFixed64(appendTag(to, fieldStart, protowire.Fixed64Type), p.start)
	}
	to = protowire.AppendFixed64(appendTag(to, fieldTime, protowire.Fixed64Type), p.time)
	if p.ended {
		to = appendTag(to, fieldFlags, protowire.VarintType)
		to = protowire.AppendVarint(to, uint64(metricspb.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK))
	} else {
		to = protowire.AppendFixed64(appendTag(to, fieldDouble, protowire.Fixed64Type), math.Float64bits(p.value))
	}
	return append(to, p.pointAttributes...)
}

// appendTag appends the number and the type of a field. The numbers of all fields here are less than 16, so that
// both take one byte.
func appendTag(to []byte, field protowire.Number, form protowire.Type) []byte {
	return append(to, byte(protowire.EncodeTag(field, form)))
}

// fieldSize returns the size of a field with a message of a size.
func fieldSize(message int) int {
	if message < 1<<7 {
		return 2 + message
	}
	return 1 + protowire.SizeBytes(message)
}

// appendSize appends the beginning of a field with a message of a size, which takes one byte mostly.
func appendSize(to []byte, field protowire.Number, message int) []byte {
	to = appendTag(to, field, protowire.BytesType)
	if message < 1<<7 {
		return append(to, byte(message))
	}
	return protowire.AppendVarint(to, uint64(message))
}

// appendMessage appends an encoded message as a field.
func appendMessage(to []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(appendTag(to, field, protowire.BytesType), message)
}

// define returns the definitions of all metrics for a kind of entity, or for a kind of its parts.
func (r *request) define(k metric.Kind, part string) *[metric.NumMetrics]definition {
	all := r.names[k][part]
	if all == nil {
		all = new([metric.NumMetrics]definition)
		for id := range all {
			all[id] = define(k, part, metric.ID(id))
			all[id].encode()
		}
		r.names[k][part] = all
	}
	return all
}

// encode sets the encoded fields.
func (d *definition) encode() {
	for _, field := range []struct {
		number protowire.Number
		text   string
	}{{fieldName, d.name}, {fieldHelp, d.help}, {fieldUnit, d.unit}} {
		d.encoded = protowire.AppendString(appendTag(d.encoded, field.number, protowire.BytesType), field.text)
	}
	if d.form != gauge {
		d.trailer = appendTag(d.trailer, fieldTemporality, protowire.VarintType)
		d.trailer = protowire.AppendVarint(d.trailer, uint64(metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE))
	}
	if d.form == counter {
		d.trailer = protowire.AppendVarint(appendTag(d.trailer, fieldMonotonic, protowire.VarintType), 1)
	}
	for _, a := range d.attributes {
		d.pointAttributes = appendMessage(d.pointAttributes, fieldAttributes, encode(a))
	}
}

// Encode appends the request to a slice in the form in which it is sent, and empties it.
func (r *request) Encode(to []byte) []byte {
	r.addEntity()
	packed := r.packer.pack(to, r.message)
	r.message, r.entity = r.message[:0], nil
	return packed
}

// packer compresses requests. It keeps its buffers.
type packer struct {
	uncompressed bool
	zip          *gzip.Writer
	out          bytes.Buffer
}

// pack appends a message to a slice in the form in which it is sent. It takes no more memory than it
// needs, because it waits.
func (p *packer) pack(to, message []byte) []byte {
	if p.uncompressed {
		return append(to, message...)
	}
	if p.zip == nil {
		p.zip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level exists
	}
	p.out.Reset()
	p.zip.Reset(&p.out)
	_, _ = p.zip.Write(message) // a buffer never fails
	_ = p.zip.Close()
	return append(to, p.out.Bytes()...)
}
