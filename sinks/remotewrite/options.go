package remotewrite

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/sinks/push"
)

// Options are the receiver and the series to send. Only URL is required. It has the path:
// http://prometheus:9090/api/v1/write.
type Options struct {
	push.Options
	// ExternalLabels are added to each series without a label of that name.
	ExternalLabels map[string]string
}

// OptionsHelp describes the options of ParseOptions.
func OptionsHelp() string {
	return push.OptionsHelp("  external-label        NAME=VALUE added to each series; repeatable")
}

// ParseOptions parses the text after "remotewrite:" in --sink=remotewrite:URL[?OPTIONS]. A
// question mark in the URL itself must be written as %3F.
func ParseOptions(spec string) (o Options, err error) {
	o.Options, err = push.Parse("remotewrite", spec, map[string]func([]string) error{
		"external-label": func(given []string) (err error) {
			o.ExternalLabels, err = push.Pairs(given)
			return err
		},
	})
	if err != nil && o.URL == "" {
		return o, fmt.Errorf("%w: write remotewrite:http://HOST:PORT/api/v1/write", err)
	}
	if err != nil {
		return o, err
	}
	if u, err := url.Parse(o.URL); err != nil || strings.Trim(u.Path, "/") == "" {
		return o, fmt.Errorf("%q has no path: for a Prometheus, write remotewrite:%s://%s/api/v1/write", humanize.URL(o.URL), u.Scheme, u.Host)
	}
	return o, o.checkLabels()
}

// checkLabels checks the names of external labels.
func (o *Options) checkLabels() error {
	for name := range o.ExternalLabels {
		if !model.LegacyValidation.IsValidLabelName(name) || strings.HasPrefix(name, "__") {
			return fmt.Errorf("sink remotewrite: option external-label: %q is not a valid label name", name)
		}
	}
	return nil
}
