package remotewrite

import (
	"fmt"
	"math"

	"github.com/klauspost/compress/snappy"
	writev2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
	"github.com/weir-metrics/weir/sinks/push"
)

// stale is the value of a stale marker, which ends a series.
var stale = math.Float64frombits(0x7ff0000000000002)

// request is a request of version 2.0 that is being filled.
type request struct {
	external map[string]string // labels for each series
	symbols  writev2.SymbolsTable
	series   []*writev2.TimeSeries
	names    [metric.NumKinds]map[string]*names
}

// names are the names of all metrics for a kind of entity, or for a kind of its parts.
type names [metric.NumMetrics]struct{ name, help string }

func newRequest(external map[string]string) *request {
	r := &request{external: external, symbols: writev2.NewSymbolTable()}
	for k := range r.names {
		r.names[k] = map[string]*names{}
	}
	return r
}

// Add adds one sample.
func (r *request) Add(p push.Point[labels]) {
	n := &r.namesOf(p.Kind, p.Part)[p.Metric]
	refs := make([]uint32, 0, 2*len(p.Labels.pairs)+2)
	pair := func(name, value string) { refs = append(refs, r.symbols.Symbolize(name), r.symbols.Symbolize(value)) }
	for _, l := range p.Labels.pairs[:p.Labels.before] {
		pair(l.Name, l.Value)
	}
	pair("__name__", n.name)
	for _, l := range p.Labels.pairs[p.Labels.before:] {
		pair(l.Name, l.Value)
	}
	kind := writev2.Metadata_METRIC_TYPE_GAUGE
	if metric.Catalogue[p.Metric].Type == metric.Cumulative {
		kind = writev2.Metadata_METRIC_TYPE_COUNTER
	}
	value := p.Value
	if p.Ended {
		value = stale
	}
	r.series = append(r.series, &writev2.TimeSeries{
		LabelsRefs: refs,
		Samples:    []*writev2.Sample{{Value: value, Timestamp: p.Time}},
		Metadata:   &writev2.Metadata{Type: kind, HelpRef: r.symbols.Symbolize(n.help)},
	})
}

// Encode returns the compressed request, and empties it.
func (r *request) Encode() ([]byte, error) {
	message, err := (&writev2.Request{Symbols: r.symbols.Symbols(), Timeseries: r.series}).MarshalVT()
	r.symbols.Reset()
	clear(r.series)
	r.series = r.series[:0]
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	return snappy.Encode(nil, message), nil
}

func (r *request) namesOf(k metric.Kind, part string) *names {
	n := r.names[k][part]
	if n == nil {
		n = new(names)
		for id := range n {
			d := &metric.Catalogue[id]
			n[id].name, n[id].help = series.Name(k, part, d), series.Help(k, part, d)
		}
		r.names[k][part] = n
	}
	return n
}
