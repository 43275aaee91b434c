package push

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/config"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// Options are the receiver and the series to send. Only URL is required.
type Options struct {
	// URL is that of the receiver. Redirects are not followed. The log has the URL without user,
	// password and query.
	URL string
	// NotFound is advice for the case that the receiver answers 404.
	NotFound string
	// HTTP has certificates, credentials and headers of the receiver.
	HTTP config.HTTPClientConfig
	// Filter selects the series to send. The zero Filter sends all; Parse names the profile
	// series.Default if no profile and no metrics are given.
	series.Filter
	// Queue is how many bytes of packed requests may wait; default 128 MiB.
	Queue int64
	// WAL is the folder of the write-ahead log, which has the requests in the queue, so that the
	// next weir sends them if this one is killed. Default: there is none.
	WAL string
	// MaxSamples is how many samples a request has at most; default 5,000.
	MaxSamples int
	// Flush is the longest time that a sample waits until its request is full; default 2 s.
	Flush time.Duration
	// Timeout is the longest time of one try of a request; default 30 s.
	Timeout time.Duration
	// MaxBackoff is the longest wait between two tries; default 5 s.
	MaxBackoff time.Duration
	// Grace is how long Run continues to send the queue after its context has ended; default 5
	// s.
	Grace time.Duration

	// View returns the newest snapshot; nil before there is one. Its sums of namespaces and of
	// the cluster are sent every Interval. Default: no sums are sent.
	View func() SnapshotReader
	// Interval is the time between two sums; default 15 s.
	Interval time.Duration

	// IsLeader reports whether this replica sends. Two replicas may send at the same time for a while,
	// after a change of the leader. Default: it does.
	IsLeader func() bool

	// Logger gets a line when sending fails and when it works again. Default: none.
	Logger *zap.Logger
	// Registerer registers the sink's metrics. Default: none.
	Registerer prometheus.Registerer
}

// SnapshotReader is one immutable snapshot of measured values.
type SnapshotReader interface {
	// Each calls do for every entity of a kind that has a number to serve, until do returns
	// false.
	Each(kind metric.Kind, do func(*metric.Sample) bool)
}

// WithDefaults returns o with its defaults.
func (o Options) WithDefaults() Options {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&o.Flush, 2*time.Second)
	set(&o.Timeout, 30*time.Second)
	set(&o.MaxBackoff, 5*time.Second)
	set(&o.Grace, 5*time.Second)
	set(&o.Interval, 15*time.Second)
	if o.Queue <= 0 {
		o.Queue = 128 << 20
	}
	if o.MaxSamples <= 0 {
		o.MaxSamples = 5000
	}
	if o.IsLeader == nil {
		o.IsLeader = func() bool { return true }
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

// help are the lines of OptionsHelp.
var help = []string{
	"  ca                    file of CA certificates that verify the receiver",
	"  flush                 longest wait for a request to be full (default 2s)",
	"  header                NAME=VALUE sent with each request; repeatable",
	"  insecure-tls          accept any certificate (default false)",
	"  label                 only series with NAME=VALUE; * and ? stand for others",
	"  level                 only these: cluster, namespace, node, system, pod, container",
	"  metric                only names that match",
	"  namespace             only these",
	"  password-file         of username",
	"  profile               default, what most people use, or all",
	"  queue                 bytes that may wait for the receiver (default 128Mi)",
	"  samples               most of one request (default 5000)",
	"  timeout               of one try (default 30s)",
	"  token-file            file of a bearer token",
	"  username              to send, with the password",
	"  wal                   folder for what waits, so that it survives a kill of weir",
}

// OptionsHelp describes the options of Parse, and those of one protocol in the same form.
func OptionsHelp(own ...string) string {
	return strings.Join(slices.Sorted(slices.Values(append(own, help...))), "\n")
}

// known are the options that are neither those of the filter nor of one protocol.
var known = []string{"ca", "flush", "header", "insecure-tls", "password-file", "queue", "samples", "timeout", "token-file", "username", "wal"}

// Parse parses the text after the name and colon of a sink: URL[?OPTIONS]. A question mark in the URL
// itself must be written as %3F. own are the options of one protocol, with functions that set them.
func Parse(sink, spec string, own map[string]func(given []string) error) (Options, error) {
	o := Options{HTTP: config.DefaultHTTPClientConfig}
	address, query, _ := strings.Cut(spec, "?")
	address = strings.ReplaceAll(address, "%3F", "?")
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return o, fmt.Errorf("%q is not a URL of a receiver", humanize.URL(address))
	}
	o.URL = u.String()
	values, err := url.ParseQuery(query)
	if err != nil {
		return o, fmt.Errorf("parse options of sink %s: %w", sink, err)
	}
	var user, password, token string
	for name, given := range values {
		last := given[len(given)-1]
		var err error
		switch name {
		case "ca":
			o.HTTP.TLSConfig.CAFile = last
		case "insecure-tls":
			o.HTTP.TLSConfig.InsecureSkipVerify, err = Flag(last)
		case "username":
			user = last
		case "password-file":
			password = last
		case "token-file":
			token = last
		case "header":
			err = o.headers(given)
		case "queue":
			o.Queue, err = parseBytes(last)
		case "samples":
			o.MaxSamples, err = count(last)
		case "flush":
			o.Flush, err = duration(last)
		case "timeout":
			o.Timeout, err = duration(last)
		case "wal":
			if o.WAL = last; last == "" {
				err = errors.New("it needs a folder")
			}
		default:
			if set := own[name]; set != nil {
				err = set(given)
				break
			}
			var filters bool
			if filters, err = o.Set(name, given); !filters {
				all := slices.Sorted(slices.Values(slices.AppendSeq(slices.Clone(known), maps.Keys(own))))
				return o, fmt.Errorf("sink %s: no option is called %q: there are %s, and %s", sink, name, strings.Join(all, ", "), series.FilterOptions)
			}
		}
		if err != nil {
			return o, fmt.Errorf("sink %s: option %s: %w", sink, name, err)
		}
	}
	o.Usual()
	if err := o.authenticate(user, password, token); err != nil {
		return o, fmt.Errorf("sink %s: %w", sink, err)
	}
	return o, nil
}

// authenticate sets the credentials.
func (o *Options) authenticate(user, password, token string) error {
	switch {
	case user != "" && token != "":
		return errors.New("give either username or token-file, not both")
	case (user == "") != (password == ""):
		return errors.New("username and password-file need each other: give both")
	case user != "":
		o.HTTP.BasicAuth = &config.BasicAuth{Username: user, PasswordFile: password}
	case token != "":
		o.HTTP.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: token}
	}
	return o.HTTP.Validate()
}

func (o *Options) headers(given []string) error {
	all, err := Pairs(given)
	if err != nil {
		return err
	}
	o.HTTP.HTTPHeaders = &config.Headers{Headers: map[string]config.Header{}}
	for name, value := range all {
		if slices.ContainsFunc([]string{"content-encoding", "content-type", "x-prometheus-remote-write-version"}, func(ours string) bool { return strings.EqualFold(ours, name) }) {
			return fmt.Errorf("the header %s is set by the protocol", name)
		}
		o.HTTP.HTTPHeaders.Headers[name] = config.Header{Values: []string{value}}
	}
	return nil
}

// Pairs parses options of the form NAME=VALUE.
func Pairs(given []string) (map[string]string, error) {
	all := map[string]string{}
	for _, s := range given {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, errors.New("it is not of the form NAME=VALUE")
		}
		all[name] = value
	}
	return all, nil
}

// Flag parses true, false, or nothing, which is true.
func Flag(s string) (bool, error) {
	switch s {
	case "", "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s)
}

func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%v is not above 0", d)
	}
	return d, err
}

func parseBytes(s string) (int64, error) {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not an amount of bytes, such as 128Mi", s)
	}
	if q.Value() < 1<<20 {
		return 0, fmt.Errorf("%s is too little: at least 1Mi", s)
	}
	return q.Value(), nil
}

func count(s string) (int, error) {
	q, err := resource.ParseQuantity(s)
	if err != nil || q.Value() < 1 || q.Value() > 1e6 {
		return 0, fmt.Errorf("%q is not a number of samples from 1 to 1000000", s)
	}
	return int(q.Value()), nil
}
