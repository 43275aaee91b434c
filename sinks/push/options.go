package push

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/config"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/internal/options"
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
	// DeclaredInterval is the time between two samples of a request, a limit or a capacity that does
	// not change; default a minute.
	DeclaredInterval time.Duration

	// IsLeader reports whether this replica sends. Two replicas may send at the same time for a while,
	// after a change of the leader. Default: it does.
	IsLeader func() bool

	// Logger gets a line when sending fails and when it works again. Default: none.
	Logger *zap.Logger
	// Registerer registers the sink's metrics. Default: none.
	Registerer prometheus.Registerer

	auth auth // until authenticate has set HTTP
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
	set(&o.DeclaredInterval, time.Minute)
	if o.Queue <= 0 {
		o.Queue = 128 << 20
	}
	if o.MaxSamples <= 0 {
		o.MaxSamples = 5000
	}
	if o.IsLeader == nil {
		o.IsLeader = func() bool { return true }
	}
	o.Logger = cmp.Or(o.Logger, zap.NewNop())
	return o
}

// auth has the options about credentials, which exclude each other.
type auth struct{ user, passwordFile, tokenFile string }

// Table has the options of all protocols.
var Table = slices.Concat(options.Within(options.Filter, func(o *Options) *series.Filter { return &o.Filter }), options.Table[Options]{
	options.Field("ca", "file of CA certificates that verify the receiver", func(o *Options) *string { return &o.HTTP.TLSConfig.CAFile }, options.Text),
	options.Field("declared", "time between two samples of a request, limit or capacity that does not change (default 1m)", func(o *Options) *time.Duration { return &o.DeclaredInterval }, options.AtLeast(time.Millisecond)),
	options.Field("flush", "longest wait for a request to be full (default 2s)", func(o *Options) *time.Duration { return &o.Flush }, options.AtLeast(time.Millisecond)),
	{Name: "header", Help: "NAME=VALUE sent with each request; repeatable", SetAll: (*Options).headers},
	options.Field("insecure-tls", "accept any certificate (default false)", func(o *Options) *bool { return &o.HTTP.TLSConfig.InsecureSkipVerify }, options.Bool),
	options.Field("password-file", "of username", func(o *Options) *string { return &o.auth.passwordFile }, options.Text),
	options.Field("queue", "bytes that may wait for the receiver (default 128Mi)", func(o *Options) *int64 { return &o.Queue }, parseBytes),
	options.Field("samples", "most of one request (default 5000)", func(o *Options) *int { return &o.MaxSamples }, count),
	options.Field("timeout", "of one try (default 30s)", func(o *Options) *time.Duration { return &o.Timeout }, options.AtLeast(time.Millisecond)),
	options.Field("token-file", "file of a bearer token", func(o *Options) *string { return &o.auth.tokenFile }, options.Text),
	options.Field("username", "to send, with the password", func(o *Options) *string { return &o.auth.user }, options.Text),
	options.Field("wal", "folder for what waits, so that it survives a kill of weir", func(o *Options) *string { return &o.WAL }, options.NotEmpty),
})

// Parse sets the URL of a receiver, and o with the options of a table that contains Table. in is the
// part of o that has the options of all protocols. A question mark in the URL itself must be written
// as %3F.
func Parse[O any](address string, query url.Values, table options.Table[O], o *O, in *Options) error {
	in.HTTP = config.DefaultHTTPClientConfig
	address = strings.ReplaceAll(address, "%3F", "?")
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is not a URL of a receiver", humanize.URL(address))
	}
	in.URL = u.String()
	if err := table.Parse(o, query); err != nil {
		return err
	}
	in.Usual()
	return in.authenticate()
}

// authenticate sets the credentials.
func (o *Options) authenticate() error {
	switch user, password, token := o.auth.user, o.auth.passwordFile, o.auth.tokenFile; {
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
	all, err := options.Pairs(given)
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
