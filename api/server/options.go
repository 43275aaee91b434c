package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	genericoptions "k8s.io/apiserver/pkg/server/options"
)

// Options are the flags of the server. NewOptions returns them with their defaults.
type Options struct {
	// SecureServing is the port, the certificate and the versions of TLS. Port 0 means that nothing
	// is served. If SecureServing.Listener is set, it is used and the address is not.
	SecureServing *genericoptions.SecureServingOptionsWithLoopback
	// Authentication describes how callers are recognised.
	Authentication *genericoptions.DelegatingAuthenticationOptions
	// Authorization describes how their rights are found.
	Authorization *genericoptions.DelegatingAuthorizationOptions
	// Audit shows where requests are logged, if anywhere.
	Audit *genericoptions.AuditOptions
	// Features turns profiles on. They are off by default.
	Features *genericoptions.FeatureOptions

	// RequestTimeout is how long a request may take.
	RequestTimeout time.Duration
	// MaxRequests is how many read requests are answered at the same time. Further ones get 429, as
	// those of one caller above an eighth of it, and above three quarters those that do not come
	// through the cluster's API server.
	MaxRequests int
	// MaxMutatingRequests is the same for all other requests.
	MaxMutatingRequests int
	// ShutdownDelay is how long the server still serves, while /readyz fails, before it takes no
	// more requests. In this time the Endpoints are updated.
	ShutdownDelay time.Duration
	// ShutdownGrace is how long requests under way may take after that; then they are cut off.
	ShutdownGrace time.Duration
	// BodyTimeout is how long the body of a request may take to arrive.
	BodyTimeout time.Duration
	// StallTimeout is how long a client may take to read the next 64 KiB of an answer.
	StallTimeout time.Duration
}

// maxBodyBytes is the maximum size of a body.
const maxBodyBytes = 1 << 20

// NewOptions returns the defaults. They are those of metrics-server, with three exceptions: a
// self-signed certificate stays in memory unless --cert-dir names a directory, profiles are off,
// and the server still serves for 5s after the signal to stop.
func NewOptions() *Options {
	o := &Options{
		SecureServing:       genericoptions.NewSecureServingOptions().WithLoopback(),
		Authentication:      genericoptions.NewDelegatingAuthenticationOptions(),
		Authorization:       genericoptions.NewDelegatingAuthorizationOptions(),
		Audit:               genericoptions.NewAuditOptions(),
		Features:            genericoptions.NewFeatureOptions(),
		RequestTimeout:      time.Minute,
		MaxRequests:         400,
		MaxMutatingRequests: 200,
		ShutdownDelay:       5 * time.Second,
		ShutdownGrace:       15 * time.Second,
		BodyTimeout:         10 * time.Second,
		StallTimeout:        10 * time.Second,
	}
	o.SecureServing.MinTLSVersion = "VersionTLS12"
	o.SecureServing.ServerCert.CertDirectory = ""
	o.SecureServing.ServerCert.PairName = "weir"
	o.Features.EnableProfiling = false
	o.Features.EnableContentionProfiling = false
	o.Features.EnablePriorityAndFairness = false
	return o
}

// AddFlags adds the flags that set o. Their defaults are the present values of o, their names those
// of metrics-server.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	o.SecureServing.AddFlags(f)
	o.Authentication.AddFlags(f)
	o.Authorization.AddFlags(f)
	o.Audit.AddFlags(f)
	o.Features.AddFlags(f)
	f.DurationVar(&o.RequestTimeout, "request-timeout", o.RequestTimeout, "how long a request may take")
	f.IntVar(&o.MaxRequests, "max-requests-inflight", o.MaxRequests, "how many reading requests are answered at the same time, an eighth of them for one caller; a quarter is kept for the API server; further ones get 429")
	f.IntVar(&o.MaxMutatingRequests, "max-mutating-requests-inflight", o.MaxMutatingRequests, "the same for requests that do not read")
	f.DurationVar(&o.ShutdownDelay, "shutdown-delay-duration", o.ShutdownDelay, "how long to go on serving, with /readyz failing, after the signal to stop")
}

// Enabled reports whether anything is served: --secure-port is not 0.
func (o *Options) Enabled() bool {
	return o.SecureServing.BindPort != 0 || o.SecureServing.Listener != nil
}

// Validate returns all mistakes in o in one error, with what to write instead.
func (o *Options) Validate() error {
	errs := slices.Concat(o.SecureServing.Validate(), o.Authentication.Validate(), o.Authorization.Validate(), o.Audit.Validate(), o.Features.Validate())
	cert := o.SecureServing.ServerCert.CertKey
	if (cert.CertFile == "") != (cert.KeyFile == "") {
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file go together: give both, or neither for a self-signed certificate"))
	}
	switch v := o.SecureServing.MinTLSVersion; v {
	case "", "VersionTLS12", "VersionTLS13":
	case "VersionTLS10", "VersionTLS11":
		errs = append(errs, fmt.Errorf("--tls-min-version cannot be %s: weir supports TLS 1.2 and later; use VersionTLS12 or VersionTLS13", v))
	default:
		errs = append(errs, fmt.Errorf("--tls-min-version cannot be %q: use VersionTLS12 or VersionTLS13", v))
	}
	if o.Features.EnablePriorityAndFairness {
		errs = append(errs, errors.New("--enable-priority-and-fairness cannot be true: weir bounds requests with --max-requests-inflight; leave the flag out"))
	}
	positive := func(flag string, ok bool) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s must be greater than 0: without a limit one client could exhaust the server", flag))
		}
	}
	positive("--request-timeout", o.RequestTimeout > 0)
	positive("--max-requests-inflight", o.MaxRequests > 0)
	positive("--max-mutating-requests-inflight", o.MaxMutatingRequests > 0)
	positive("the shutdown grace", o.ShutdownGrace > 0)
	positive("the body timeout", o.BodyTimeout > 0)
	positive("the stall timeout", o.StallTimeout > 0)
	if o.ShutdownDelay < 0 {
		errs = append(errs, errors.New("--shutdown-delay-duration cannot be negative; 0 means no delay"))
	}
	for _, path := range o.Authorization.AlwaysAllowPaths {
		if strings.Contains(strings.TrimSuffix(path, "*"), "*") {
			errs = append(errs, fmt.Errorf("--authorization-always-allow-paths: %q may have a * only at its end", path))
		}
	}
	return errors.Join(errs...)
}
