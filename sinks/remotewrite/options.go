package remotewrite

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/internal/options"
	"github.com/weir-metrics/weir/sinks/push"
)

// Options are the receiver and the series to send. Only URL is required. It has the path:
// http://prometheus:9090/api/v1/write.
type Options struct {
	push.Options
	// ExternalLabels are added to each series without a label of that name.
	ExternalLabels map[string]string
}

// Table has the options of --sink=remotewrite.
var Table = slices.Concat(options.Within(push.Table, func(o *Options) *push.Options { return &o.Options }), options.Table[Options]{
	{Name: "external-label", Help: "NAME=VALUE added to each series; repeatable", SetAll: func(o *Options, given []string) (err error) {
		if o.ExternalLabels, err = options.Pairs(given); err != nil {
			return err
		}
		for name := range o.ExternalLabels {
			if !model.LegacyValidation.IsValidLabelName(name) || strings.HasPrefix(name, "__") {
				return fmt.Errorf("%q is not a valid label name", name)
			}
		}
		return nil
	}},
}).Sorted()

// ParseOptions parses --sink=remotewrite:URL[?OPTIONS]. A question mark in the URL itself must be
// written as %3F.
func ParseOptions(config string, query url.Values) (o Options, err error) {
	err = push.Parse(config, query, Table, &o, &o.Options)
	if err != nil && o.URL == "" {
		return o, fmt.Errorf("%w: write remotewrite:http://HOST:PORT/api/v1/write", err)
	}
	if err != nil {
		return o, err
	}
	if u, err := url.Parse(o.URL); err != nil || strings.Trim(u.Path, "/") == "" {
		return o, fmt.Errorf("%q has no path: for a Prometheus, write remotewrite:%s://%s/api/v1/write", humanize.URL(o.URL), u.Scheme, u.Host)
	}
	return o, nil
}
