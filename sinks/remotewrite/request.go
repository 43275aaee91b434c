package remotewrite

import (
	"math"

	writev2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"

	"github.com/weir-metrics/weir/metric"
)

// stale is the value of a stale marker, which ends a series.
var stale = math.Float64frombits(0x7ff0000000000002)

// request is a request of version 2.0 that is being filled.
type request struct {
	symbols writev2.SymbolsTable
	series  []*writev2.TimeSeries
}

func newRequest() *request { return &request{symbols: writev2.NewSymbolTable()} }

// reset empties r and keeps its memory.
func (r *request) reset() {
	r.symbols.Reset()
	clear(r.series)
	r.series = r.series[:0]
}

// add appends one sample of the series with a name and other labels, which are sorted.
// labels[:before] come before the name. t is in milliseconds since the Unix epoch.
func (r *request) add(name, help string, shape metric.MetricType, labels []label, before int, value float64, t int64) {
	refs := make([]uint32, 0, 2*len(labels)+2)
	pair := func(name, value string) { refs = append(refs, r.symbols.Symbolize(name), r.symbols.Symbolize(value)) }
	for _, l := range labels[:before] {
		pair(l.Name, l.Value)
	}
	pair("__name__", name)
	for _, l := range labels[before:] {
		pair(l.Name, l.Value)
	}
	kind := writev2.Metadata_METRIC_TYPE_GAUGE
	if shape == metric.Cumulative {
		kind = writev2.Metadata_METRIC_TYPE_COUNTER
	}
	r.series = append(r.series, &writev2.TimeSeries{
		LabelsRefs: refs,
		Samples:    []*writev2.Sample{{Value: value, Timestamp: t}},
		Metadata:   &writev2.Metadata{Type: kind, HelpRef: r.symbols.Symbolize(help)},
	})
}

// encode returns the encoded request.
func (r *request) encode() []byte {
	message, _ := (&writev2.Request{Symbols: r.symbols.Symbols(), Timeseries: r.series}).MarshalVT() // it never fails
	return message
}
