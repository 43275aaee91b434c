package otlp

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/sinks/push"
)

// Options are the receiver and the metrics to send. Only URL is required. It is that of the receiver
// without a path: http://collector:4318. Paths of OTLP are appended.
type Options struct {
	push.Options
	// Attributes are added to each resource.
	Attributes map[string]string
	// Events sends the Events of the cluster, too: see NewEvents.
	Events bool
}

// OptionsHelp describes the options of ParseOptions.
func OptionsHelp() string {
	return push.OptionsHelp(
		"  attribute             NAME=VALUE of each resource, such as k8s.cluster.name=prod; repeatable",
		"  events                also send the cluster's Events, as log records (default false)")
}

// ParseOptions parses the text after "otlp:" in --sink=otlp:URL[?OPTIONS].
func ParseOptions(spec string) (o Options, err error) {
	o.Options, err = push.Parse("otlp", spec, map[string]func([]string) error{
		"attribute": func(given []string) (err error) {
			o.Attributes, err = push.Pairs(given)
			return err
		},
		"events": func(given []string) (err error) {
			o.Events, err = push.Flag(given[len(given)-1])
			return err
		},
	})
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
		if base, has := strings.CutSuffix(strings.TrimSuffix(u.Path, "/"), path); has {
			u.Path = base
			return o, fmt.Errorf("weir appends %s itself: write otlp:%s", path, humanize.URL(u.String()))
		}
	}
	return o, nil
}
