package prometheus

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// Options say what is shown. The zero Options means the defaults. Query
// parameters of a request may show fewer series than that, never more, and may
// turn timestamps on or off.
type Options struct {
	// Timestamps adds to each series when the node read it. Default: none, and
	// Prometheus takes the time of its scrape, which lets it see at once when
	// a series ends; with timestamps it takes five minutes.
	Timestamps bool
	// Levels are the kinds of entity shown. Default: all.
	Levels []metric.Kind
	// Metrics are patterns of which a metric's name must match one: Heapster's
	// ("cpu/*"), Prometheus' without prefix ("cpu_*") or whole
	// ("weir_pod_cpu_*"). Default: all.
	Metrics []string
	// Namespaces are patterns of which an entity's namespace must match one;
	// what is in no namespace is then left out. Default: all.
	Namespaces []string
	// Labels are patterns that labels of a series must match, all of them; a
	// label that a series does not have is empty. Default: none.
	Labels map[string]string
	// MaxSeries bounds one exposition. Beyond, it stops with a comment, and
	// weir_exposition_truncated is 1. Default 5,000,000.
	MaxSeries int
	// MaxRequests bounds how many requests are answered at once; others get
	// status 503. Default 4.
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

// known are the options and query parameters, and knownOnlyHere the options a
// request cannot set.
const (
	known         = "label, level, limit, metric, namespace, timestamps"
	knownOnlyHere = "requests"
)

// ParseOptions reads what follows "prometheus:" in
// --sink=prometheus:[?OPTIONS], for instance
// "?timestamps=true&level=pod,node&metric=cpu_*&limit=100000". Lists are
// separated by commas; * in a pattern stands for any text, ? for one
// character. label=node=worker-* may be repeated.
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
		if o.MaxRequests, err = positive(v); err != nil {
			return o, fmt.Errorf("parse option requests of sink prometheus: %w", err)
		}
	}
	values.Del("requests")
	if err := o.read(values); err != nil {
		return o, fmt.Errorf("sink prometheus: %w", err)
	}
	return o, nil
}

// read sets what both options and requests can say.
func (o *Options) read(values url.Values) error {
	for name, given := range values {
		var err error
		last := given[len(given)-1]
		switch name {
		case "timestamps":
			o.Timestamps, err = strconv.ParseBool(last)
		case "level", "levels":
			o.Levels, err = kinds(split(given))
		case "metric", "metrics":
			o.Metrics = split(given)
		case "namespace", "namespaces":
			o.Namespaces = split(given)
		case "label":
			o.Labels, err = labels(given)
		case "limit":
			o.MaxSeries, err = positive(last)
		default:
			return fmt.Errorf("no option is called %q: there are %s; and, for the sink alone, %s", name, known, knownOnlyHere)
		}
		if err != nil {
			return fmt.Errorf("parse %s: %w", name, err)
		}
	}
	return nil
}

func split(given []string) (all []string) {
	for _, list := range given {
		for s := range strings.SplitSeq(list, ",") {
			if s != "" {
				all = append(all, s)
			}
		}
	}
	return all
}

func kinds(names []string) ([]metric.Kind, error) {
	var all []metric.Kind
	for _, name := range names {
		k := metric.Kind(0)
		for int(k) < metric.NumKinds && k.String() != name {
			k++
		}
		if int(k) == metric.NumKinds {
			return nil, fmt.Errorf("no level is called %q: there are cluster, namespace, node, system, pod, container", name)
		}
		all = append(all, k)
	}
	return all, nil
}

func labels(given []string) (map[string]string, error) {
	all := map[string]string{}
	for _, s := range given {
		name, pattern, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is no label=pattern, such as node=worker-*", s)
		}
		all[name] = pattern
	}
	return all, nil
}

func positive(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%d is not above 0", n)
	}
	return n, err
}
