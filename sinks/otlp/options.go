package otlp

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/internal/options"
	"github.com/weir-metrics/weir/sinks/push"
)

// Options are the receiver and the metrics to send. Only URL is required. It is that of the receiver
// without a path: http://collector:4318. Paths of OTLP are appended.
type Options struct {
	push.Options
	// Attributes are added to each resource.
	Attributes map[string]string
	// Uncompressed sends requests without gzip, which take less CPU and many times the bytes, in the queue, too.
	Uncompressed bool
	// Events sends the Events of the cluster, too: see NewEvents.
	Events bool
}

// Table has the options of --sink=otlp.
var Table = slices.Concat(options.Within(push.Table, func(o *Options) *push.Options { return &o.Options }), options.Table[Options]{
	{Name: "attribute", Help: "NAME=VALUE of each resource, such as k8s.cluster.name=prod; repeatable", SetAll: func(o *Options, given []string) (err error) {
		o.Attributes, err = options.Pairs(given)
		return err
	}},
	options.Field("compression", "gzip or none, which takes less CPU and ten times the bytes (default gzip)", func(o *Options) *bool { return &o.Uncompressed }, parseCompression),
	options.Field("events", "also send the cluster's Events, as log records (default false)", func(o *Options) *bool { return &o.Events }, options.Bool),
}).Sorted()

// parseCompression reports whether a compression is none. Receivers must accept this and gzip, by the specification
// of OTLP.
func parseCompression(value string) (uncompressed bool, err error) {
	switch value {
	case "gzip":
		return false, nil
	case "none":
		return true, nil
	}
	return false, fmt.Errorf("%q is neither gzip nor none", value)
}

// ParseOptions parses --sink=otlp:URL[?OPTIONS].
func ParseOptions(config string, query url.Values) (o Options, err error) {
	err = push.Parse(config, query, Table, &o, &o.Options)
	if err != nil && o.URL == "" {
		return o, fmt.Errorf("%w: write otlp:http://HOST:4318", err)
	}
	if err != nil {
		return o, err
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		return o, fmt.Errorf("%q is not a URL of a receiver", humanize.URL(o.URL))
	}
	for _, path := range []string{metricsPath, logsPath} {
		if base, found := strings.CutSuffix(strings.TrimSuffix(u.Path, "/"), path); found {
			u.Path = base
			return o, fmt.Errorf("weir appends %s itself: write otlp:%s", path, humanize.URL(u.String()))
		}
	}
	return o, nil
}
