package clustermetrics

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/options"
	"github.com/weir-metrics/weir/metric/series"
)

// Options describe what is shown. The zero Options means the defaults. The query parameters of a request
// may show fewer series, never more, and may turn timestamps on or off.
type Options struct {
	// Timestamps adds to each series the time when the node read it. Default: none, and with
	// KubernetesNames all, as kubelets do. Without them Prometheus uses the time of its scrape and
	// sees the end of a series at once; with them it takes five minutes.
	Timestamps bool
	// Filter shows which series are shown. Default: all entities, and the metrics of the profile
	// series.Default. A request may name a wider profile if the Filter names no profile and no
	// metrics.
	series.Filter
	// Names are those of the series. Default: WeirNames. A request may name others.
	Names Names
	// Facts returns what the API server reports. Default: nothing is known, and there are no series
	// of it.
	Facts func() *cluster.Facts
	// MaxSeries is the largest number of series in one answer. A longer answer stops there with a
	// comment, and weir_exposition_truncated is 1. Default 5,000,000.
	MaxSeries int
	// MaxRequests is how many requests are answered at once. Further ones get status 503. Default
	// 4.
	MaxRequests int
}

func (o Options) withDefaults() Options {
	if o.MaxSeries <= 0 {
		o.MaxSeries = 5_000_000
	}
	if o.MaxRequests <= 0 {
		o.MaxRequests = 4
	}
	return o
}

// queryTable has the options that are also query parameters of a request.
var queryTable = slices.Concat(options.Within(options.Filter, func(o *Options) *series.Filter { return &o.Filter }), options.Table[Options]{
	options.Field("limit", "most series of one answer", func(o *Options) *int { return &o.MaxSeries }, options.Positive),
	options.Field("names", "weir, or kubernetes: those of cAdvisor and kube-state-metrics (default weir)", func(o *Options) *Names { return &o.Names }, parseNames),
	options.Field("timestamps", "give each sample its node's time (default false; true with names=kubernetes)", func(o *Options) *bool { return &o.Timestamps }, strconv.ParseBool),
}).Sorted()

// Table has all options. A request cannot set those that it adds.
var Table = slices.Concat(queryTable, options.Table[Options]{
	options.Field("requests", "answered at once (default 4)", func(o *Options) *int { return &o.MaxRequests }, options.Positive),
}).Sorted()

// ParseOptions parses --sink=prometheus:[?OPTIONS], for instance
// "?timestamps=true&level=pod,node&metric=cpu_*&limit=100000". Commas separate the elements of
// lists. In a pattern * means any text and ? one character. label=node=worker-* may be repeated.
func ParseOptions(config string, query url.Values) (o Options, err error) {
	if err := options.NoConfig(config, "prometheus:?level=pod"); err != nil {
		return o, err
	}
	return o, o.read(Table, query)
}

// read sets the options of a table.
func (o *Options) read(table options.Table[Options], query url.Values) error {
	if err := table.Parse(o, query); err != nil {
		return err
	}
	// A rate over the times of scrapes differs from one over the times of the kubelet's own series.
	if query.Has("names") && o.Names == KubernetesNames && !query.Has("timestamps") {
		o.Timestamps = true
	}
	return nil
}

// Names selects the names and labels of series.
type Names string

// The names. The empty Names are WeirNames.
const (
	// WeirNames are weir_<kind>_<name>, with the labels of series.LabelsOf.
	WeirNames Names = "weir"
	// KubernetesNames are those of cAdvisor and kube-state-metrics that the recording rules and the
	// dashboards "Compute Resources" of kubernetes-mixin ask for. Other metrics have no series.
	KubernetesNames Names = "kubernetes"
)

func parseNames(name string) (Names, error) {
	switch n := Names(name); n {
	case WeirNames, KubernetesNames:
		return n, nil
	}
	return "", fmt.Errorf("unknown names %q: use weir or kubernetes", name)
}
