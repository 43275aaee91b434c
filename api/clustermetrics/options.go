package clustermetrics

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric/series"
)

// Options say what is shown. The zero Options means the defaults. The query parameters of a request
// may show fewer series, never more, and may turn timestamps on or off.
type Options struct {
	// Timestamps adds to each series the time when the node read it. Default: none, and with
	// KubernetesNames all, as kubelets do. Without them Prometheus uses the time of its scrape and
	// sees the end of a series at once; with them it takes five minutes.
	Timestamps bool
	// Filter says which series are shown. Default: all entities, and the metrics of the profile
	// series.Default. A request may name a wider profile if the Filter names no profile and no
	// metrics.
	series.Filter
	// Names are those of the series. Default: WeirNames. A request may name others.
	Names Names
	// Facts returns what the API server says. Default: nothing is known, and there are no series
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

// optionNames are the options that are also query parameters. startOptionNames are the options that
// a request cannot set.
const (
	optionNames      = "label, level, limit, metric, names, namespace, profile, timestamps"
	startOptionNames = "requests"
)

// ParseOptions reads the text after "prometheus:" in --sink=prometheus:[?OPTIONS], for instance
// "?timestamps=true&level=pod,node&metric=cpu_*&limit=100000". Commas separate the elements of
// lists. In a pattern * means any text and ? one character. label=node=worker-* may be repeated.
func ParseOptions(spec string) (Options, error) {
	var o Options
	config, query, _ := strings.Cut(spec, "?")
	if config != "" {
		return o, fmt.Errorf("sink prometheus takes no configuration, got %q: write prometheus:?level=pod", config)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return o, fmt.Errorf("parse options of sink prometheus: %w", err)
	}
	if v := values.Get("requests"); v != "" {
		if o.MaxRequests, err = parsePositive(v); err != nil {
			return o, fmt.Errorf("parse option requests of sink prometheus: %w", err)
		}
	}
	values.Del("requests")
	if err := o.read(values); err != nil {
		return o, fmt.Errorf("sink prometheus: %w", err)
	}
	return o, nil
}

// read sets the fields that both options and requests can set.
func (o *Options) read(values url.Values) error {
	for name, given := range values {
		var err error
		last := given[len(given)-1]
		switch name {
		case "timestamps":
			o.Timestamps, err = strconv.ParseBool(last)
		case "names":
			o.Names, err = parseNames(last)
		case "limit":
			o.MaxSeries, err = parsePositive(last)
		default:
			var ours bool
			if ours, err = o.Set(name, given); !ours {
				return fmt.Errorf("no option is called %q: there are %s; and, for the sink alone, %s", name, optionNames, startOptionNames)
			}
		}
		if err != nil {
			return fmt.Errorf("parse %s: %w", name, err)
		}
	}
	// A rate over the times of scrapes differs from one over the times of the kubelet's own series.
	if values.Has("names") && o.Names == KubernetesNames && !values.Has("timestamps") {
		o.Timestamps = true
	}
	return nil
}

func parsePositive(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%d is not above 0", n)
	}
	return n, err
}

// OptionsHelp describes the options of ParseOptions.
func OptionsHelp() string {
	return `  label                 only series with NAME=VALUE
  level                 only these: cluster, namespace, node, system, pod, container
  limit                 most series of one answer
  metric                only names that match; * and ? stand for others
  names                 weir, or kubernetes: those of cAdvisor and kube-state-metrics (default weir)
  namespace             only these
  profile               default, what most people use, or all
  timestamps            give each sample its node's time (default false; true with names=kubernetes)`
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
