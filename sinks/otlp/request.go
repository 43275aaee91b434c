package otlp

import (
	"bytes"
	"fmt"
	"math"

	"github.com/klauspost/compress/gzip"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
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
)

// scope names weir as the origin of what is sent.
var scope = &commonpb.InstrumentationScope{Name: "github.com/weir-metrics/weir"}

// request is a request that is being filled. It is written as bytes, entity by entity, because a
// message of objects costs seven allocations a point: `go test -bench Send ./sinks`.
type request struct {
	own   map[string]string // attributes of each resource
	scope []byte            // encoded field
	names [metric.NumKinds]map[string]*[metric.NumMetrics]definition

	message []byte
	labels  *resourcepb.Resource // of points
	encoded []byte               // labels
	points  []point              // of one entity, which are not in message yet
	// Parts of the message that are being encoded.
	point, data, metric, metrics []byte
	packer                       packer
}

// point is one data point.
type point struct {
	*definition
	part        []byte // encoded field
	value       float64
	time, start uint64 // in nanoseconds since the Unix epoch; start is 0 if unknown
	ended       bool
}

func newRequest(own map[string]string) *request {
	r := &request{own: own}
	r.scope = protowire.AppendBytes(protowire.AppendTag(nil, fieldScope, protowire.BytesType), encode(scope))
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
	if l := p.Labels; l.resource != r.labels {
		r.addEntity()
		r.labels, r.encoded = l.resource, l.encoded
	}
	d := r.define(p.Kind, p.Part, p.Metric)
	added := point{definition: d, part: p.Labels.part, value: p.Value, time: uint64(p.Time) * 1e6, ended: p.Ended}
	if start := uint64(p.Labels.start); d.form == counter && start < added.time {
		added.start = start
	}
	r.points = append(r.points, added)
}

// addEntity adds the points of an entity to the message. Those of both directions, such as sent and
// received bytes, are in one metric.
func (r *request) addEntity() {
	if len(r.points) == 0 {
		return
	}
	r.metrics = append(r.metrics[:0], r.scope...)
	for i := range r.points {
		if d := r.points[i].definition; d != nil {
			r.addMetric(d, r.points[i:])
		}
	}
	r.points = r.points[:0]
	entity := appendMessage(r.metric[:0], fieldResource, r.encoded)
	entity = appendMessage(entity, fieldScopeMetrics, r.metrics)
	entity = protowire.AppendString(protowire.AppendTag(entity, fieldSchema, protowire.BytesType), schemaURL)
	r.metric, r.message = entity, appendMessage(r.message, fieldResourceMetrics, entity)
}

// addMetric adds a metric with those of the points that have its name, and marks these as added.
func (r *request) addMetric(d *definition, points []point) {
	r.data = r.data[:0]
	for i := range points {
		if p := &points[i]; p.definition != nil && p.name == d.name {
			r.point = p.append(r.point[:0])
			r.data = appendMessage(r.data, fieldPoints, r.point)
			p.definition = nil
		}
	}
	form := protowire.Number(fieldGauge)
	if d.form != gauge {
		form = fieldSum
		r.data = protowire.AppendTag(r.data, fieldTemporality, protowire.VarintType)
		r.data = protowire.AppendVarint(r.data, uint64(metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE))
		if d.form == counter {
			r.data = protowire.AppendVarint(protowire.AppendTag(r.data, fieldMonotonic, protowire.VarintType), 1)
		}
	}
	r.metric = append(r.metric[:0], d.encoded...)
	r.metric = appendMessage(r.metric, form, r.data)
	r.metrics = appendMessage(r.metrics, fieldMetrics, r.metric)
}

// append appends a point to to.
func (p *point) append(to []byte) []byte {
	if p.start != 0 {
		to = protowire.AppendFixed64(protowire.AppendTag(to, fieldStart, protowire.Fixed64Type), p.start)
	}
	to = protowire.AppendFixed64(protowire.AppendTag(to, fieldTime, protowire.Fixed64Type), p.time)
	if p.ended {
		to = protowire.AppendTag(to, fieldFlags, protowire.VarintType)
		to = protowire.AppendVarint(to, uint64(metricspb.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK))
	} else {
		to = protowire.AppendFixed64(protowire.AppendTag(to, fieldDouble, protowire.Fixed64Type), math.Float64bits(p.value))
	}
	return append(append(to, p.pointAttributes...), p.part...)
}

// appendMessage appends an encoded message as a field.
func appendMessage(to []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), message)
}

func (r *request) define(k metric.Kind, part string, id metric.ID) *definition {
	all := r.names[k][part]
	if all == nil {
		all = new([metric.NumMetrics]definition)
		for id := range all {
			all[id] = define(k, part, metric.ID(id))
			all[id].encode()
		}
		r.names[k][part] = all
	}
	return &all[id]
}

// encode sets the encoded fields.
func (d *definition) encode() {
	for _, field := range []struct {
		number protowire.Number
		text   string
	}{{fieldName, d.name}, {fieldHelp, d.help}, {fieldUnit, d.unit}} {
		d.encoded = protowire.AppendString(protowire.AppendTag(d.encoded, field.number, protowire.BytesType), field.text)
	}
	for _, a := range d.attributes {
		d.pointAttributes = appendMessage(d.pointAttributes, fieldAttributes, encode(a))
	}
}

// Encode returns the compressed request, and empties it.
func (r *request) Encode() []byte {
	r.addEntity()
	packed := r.packer.pack(r.message)
	r.message, r.labels, r.encoded = r.message[:0], nil, nil
	return packed
}

// packer compresses requests. It keeps its buffers.
type packer struct {
	zip *gzip.Writer
	out bytes.Buffer
}

// pack returns a message in the form in which it is sent. It takes no more memory than it needs,
// because it waits.
func (p *packer) pack(message []byte) []byte {
	if p.zip == nil {
		p.zip = gzip.NewWriter(nil)
	}
	p.out.Reset()
	p.zip.Reset(&p.out)
	_, _ = p.zip.Write(message) // a buffer never fails
	_ = p.zip.Close()
	return bytes.Clone(p.out.Bytes())
}
