package otlp

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/klauspost/compress/gzip"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/push"
)

// scope names weir as the origin of what is sent.
var scope = &commonpb.InstrumentationScope{Name: "github.com/weir-metrics/weir"}

// request is a request that is being filled.
type request struct {
	own       map[string]string // attributes of each resource
	resources []*metricspb.ResourceMetrics
	names     [metric.NumKinds]map[string]*[metric.NumMetrics]definition
}

func newRequest(own map[string]string) *request {
	r := &request{own: own}
	for k := range r.names {
		r.names[k] = map[string]*[metric.NumMetrics]definition{}
	}
	return r
}

// Add adds one data point.
func (r *request) Add(p push.Point[labels]) {
	d := r.define(p.Kind, p.Part, p.Metric)
	point := &metricspb.NumberDataPoint{
		Attributes: d.attributes, TimeUnixNano: uint64(p.Time) * 1e6,
		Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: p.Value},
	}
	if p.Labels.part != nil {
		point.Attributes = append(slices.Clip(point.Attributes), p.Labels.part)
	}
	if start := uint64(p.Labels.start); d.form == counter && start < point.TimeUnixNano {
		point.StartTimeUnixNano = start
	}
	if p.Ended {
		point.Value, point.Flags = nil, uint32(metricspb.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)
	}
	metrics := r.metricsOf(p.Labels)
	for _, m := range *metrics { // the points of both directions are in one metric
		if m.Name == d.name {
			if d.form == gauge {
				m.GetGauge().DataPoints = append(m.GetGauge().DataPoints, point)
			} else {
				m.GetSum().DataPoints = append(m.GetSum().DataPoints, point)
			}
			return
		}
	}
	m := &metricspb.Metric{Name: d.name, Unit: d.unit, Description: d.help}
	points := []*metricspb.NumberDataPoint{point}
	if d.form == gauge {
		m.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: points}}
	} else {
		m.Data = &metricspb.Metric_Sum{Sum: &metricspb.Sum{
			DataPoints: points, IsMonotonic: d.form == counter,
			AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE,
		}}
	}
	*metrics = append(*metrics, m)
}

// metricsOf returns the metrics of an entity in the request. Its points come one after another.
func (r *request) metricsOf(l *labels) *[]*metricspb.Metric {
	if n := len(r.resources); n == 0 || r.resources[n-1].Resource != l.resource {
		r.resources = append(r.resources, &metricspb.ResourceMetrics{
			Resource: l.resource, SchemaUrl: schemaURL, ScopeMetrics: []*metricspb.ScopeMetrics{{Scope: scope}},
		})
	}
	return &r.resources[len(r.resources)-1].ScopeMetrics[0].Metrics
}

func (r *request) define(k metric.Kind, part string, id metric.ID) *definition {
	all := r.names[k][part]
	if all == nil {
		all = new([metric.NumMetrics]definition)
		for id := range all {
			all[id] = define(k, part, metric.ID(id))
		}
		r.names[k][part] = all
	}
	return &all[id]
}

// Encode returns the compressed request, and empties it.
func (r *request) Encode() ([]byte, error) {
	packed, err := pack(&collectorpb.ExportMetricsServiceRequest{ResourceMetrics: r.resources})
	clear(r.resources)
	r.resources = r.resources[:0]
	return packed, err
}

// pack returns a message in the form in which it is sent. The error is about text that is not UTF-8.
func pack(m proto.Message) ([]byte, error) {
	message, err := proto.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(message) // a buffer never fails
	_ = w.Close()
	return out.Bytes(), nil
}
