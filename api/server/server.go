package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/path"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/kube-openapi/pkg/common"

	"github.com/weir-metrics/weir/api/replicas/peer"
	"github.com/weir-metrics/weir/cluster/access"
)

// Config is what the rest of the program passes to the server. The zero Config serves discovery and
// health.
type Config struct {
	// Kubeconfig is the file that describes how to reach the cluster's API server for reviews, unless
	// --authentication-kubeconfig or --authorization-kubeconfig names another. Empty: the service
	// account of this pod.
	Kubeconfig string
	// OpenAPI returns the definitions of the served types. The library ends the process if one is
	// missing.
	OpenAPI []common.GetOpenAPIDefinitions
	// Schemes have the types that OpenAPI defines.
	Schemes []*runtime.Scheme
	// Version is what /version answers.
	Version version.Info
	// Ready are the conditions of /readyz, in addition to the server's own.
	Ready []HealthCheck
	// Alive are the conditions of /livez and /healthz, in addition to the server's own. Kubernetes
	// restarts a container for which one fails.
	Alive []HealthCheck
	// Metrics are served at /metrics, together with the library's. It may be nil.
	Metrics prometheus.Gatherer
	// Data wraps all handlers that serve measurements, behind authentication and authorization;
	// forward.New returns one. Nil: they are not wrapped.
	Data func(http.Handler) http.Handler
	// Audience is an audience of tokens that this server accepts, in addition to those of the
	// cluster's API server. Empty: none.
	Audience string
	// Peer is the certificate by which other replicas recognise this one. It may be nil.
	Peer *peer.Certificate
	// Logger gets the server's own messages. The zero Logger discards them. The library logs
	// through klog, which main must connect.
	Logger logr.Logger
}

// Server is the HTTPS server. Install further API groups on Generic and add paths with Handle, then
// call Run.
type Server struct {
	opts      Options
	log       logr.Logger
	generic   *genericapiserver.GenericAPIServer
	listener  *trackingListener
	serving   dynamiccertificates.CertKeyContentProvider
	routes    *routeTable
	access    routeAuthorizer
	announced map[string]bool
	streams   map[string]bool // the paths of Stream
}

// New opens the port, reads from the cluster how callers are recognised, and returns a Server that
// serves nothing yet. It fails if o turns serving off.
func New(o *Options, c Config) (*Server, error) {
	if !o.Enabled() {
		return nil, errors.New("--secure-port is 0: there is nothing to serve")
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(newScheme())
	g := genericapiserver.NewConfig(codecs)
	s := &Server{opts: *o, log: c.Logger, routes: newRoutes(codecs), announced: map[string]bool{}, streams: map[string]bool{}}
	ln, err := openPort(g, o.SecureServing, c.Peer)
	if err != nil {
		return nil, err
	}
	s.listener, s.serving = ln, g.SecureServing.Cert
	if err := s.build(g, c); err != nil {
		_ = ln.Close() // nothing was accepted yet
		return nil, err
	}
	return s, nil
}

// build makes the library's server with our parts around it and in it.
func (s *Server) build(g *genericapiserver.Config, c Config) error {
	o := s.opts
	open, err := authenticate(g, o, c.Kubeconfig)
	if err != nil {
		return err
	}
	if err := o.Audit.ApplyTo(g); err != nil {
		return fmt.Errorf("set up audit: %w", err)
	}
	if err := o.Features.ApplyTo(g, nil, nil); err != nil {
		return fmt.Errorf("set up features: %w", err)
	}
	if trusts := g.Authentication.RequestHeaderConfig; trusts != nil && !o.Authentication.TolerateInClusterLookupFailure {
		c.Ready = append([]HealthCheck{proxyCheck(trusts)}, c.Ready...)
	}
	s.configure(g, c)

	completed := g.Complete(nil)
	// Complete adds the authentication of callers over loopback. Our wrappers must be outside it.
	if c.Audience != "" {
		g.Authentication.Authenticator = ownAudience{g.Authentication.Authenticator, c.Audience}
	}
	g.Authentication.Authenticator = rejectAnonymous{g.Authentication.Authenticator, open, g.Authentication.RequestHeaderConfig}
	s.access = routeAuthorizer{g.Authorization.Authorizer, open}
	g.Authorization.Authorizer = s.access
	g.RequestInfoResolver = pathInfoResolver{g.RequestInfoResolver}
	if s.generic, err = completed.New("weir", genericapiserver.NewEmptyDelegate()); err != nil {
		return fmt.Errorf("build API server: %w", err)
	}
	s.generic.ShutdownTimeout = o.ShutdownGrace
	s.generic.Handler.NonGoRestfulMux.Handle("/metrics", metricsHandler(c.Metrics))
	return nil
}

// configure sets what neither flags nor the cluster set.
func (s *Server) configure(g *genericapiserver.Config, c Config) {
	configureOpenAPI(g, c)
	g.EffectiveVersion = ownVersion{compatibility.DefaultBuildEffectiveVersion(), c.Version}
	g.EnableMetrics = false // weir serves its own metrics together with the library's
	g.RequestTimeout = s.opts.RequestTimeout
	g.MaxRequestsInFlight = s.opts.MaxRequests
	g.MaxMutatingRequestsInFlight = s.opts.MaxMutatingRequests
	g.MaxRequestBodyBytes = maxBodyBytes
	g.ShutdownDelayDuration = s.opts.ShutdownDelay
	g.LongRunningFunc = s.isLongRunning(g.LongRunningFunc)
	// There is no check that logging is not blocked: that check is klog's, and it starts a
	// goroutine that never ends.
	g.HealthzChecks = []healthz.HealthChecker{healthz.PingHealthz}
	g.LivezChecks = []healthz.HealthChecker{healthz.PingHealthz}
	g.ReadyzChecks = []healthz.HealthChecker{healthz.PingHealthz}
	for _, check := range c.Alive {
		g.AddHealthzChecks(check.checker())
		g.AddLivezChecks(check.checker())
	}
	for _, check := range c.Ready {
		g.AddReadyzChecks(check.checker())
	}
	g.BuildHandlerChainFunc = func(api http.Handler, g *genericapiserver.Config) http.Handler {
		h := s.addReviewer(s.routes.serveMatched(api))
		if c.Data != nil {
			h = wrapData(c.Data, h)
		}
		h = newCallerLimits(s.opts.MaxRequests, g.LongRunningFunc).apply(h)
		h = showReasons(h, "/readyz", c.Ready)
		h = showReasons(h, "/livez", c.Alive)
		h = showReasons(h, "/healthz", c.Alive)
		h = genericapiserver.DefaultBuildHandlerChain(h, g)
		h = newFailureLimits().apply(h)
		h = withProduct(s.routes.matchRoute(h))
		return requestLimits{body: s.opts.BodyTimeout, write: s.opts.RequestTimeout + answerGrace, stall: s.opts.StallTimeout, bytes: maxBodyBytes, streams: s.isStream}.apply(h)
	}
}

// Generic returns the library's server. API groups are installed on it.
func (s *Server) Generic() *genericapiserver.GenericAPIServer { return s.generic }

// Address returns the HOST:PORT that the server listens on.
func (s *Server) Address() string { return s.listener.Addr().String() }

// CertificateExpiry returns when the certificate that is served now ends. Files are read again when
// they change.
func (s *Server) CertificateExpiry() (time.Time, error) {
	pair, err := tls.X509KeyPair(s.serving.CurrentCertKeyContent())
	if err != nil {
		return time.Time{}, fmt.Errorf("read the serving certificate: %w", err)
	}
	return pair.Leaf.NotAfter, nil
}

// Close closes the port of a Server that will not run. It does not end the library's watches of the
// cluster.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves until ctx ends. Then /readyz fails at once, and the server still serves everything for
// ShutdownDelay. Requests that are under way after that have ShutdownGrace to end; then they are
// cut off. Run returns when no request is answered any more. Call it once.
func (s *Server) Run(ctx context.Context) error {
	prepared := s.generic.PrepareRun()
	s.log.V(1).Info("serving", "address", "https://"+s.Address())
	done := make(chan error, 1)
	go func() {
		err := prepared.RunWithContext(ctx)
		if err != nil {
			err = fmt.Errorf("serve: %w", err)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(s.opts.ShutdownDelay + s.opts.ShutdownGrace):
	}
	s.log.Info("requests were cut off at shutdown", "connections", s.listener.closeAll(), "after", s.opts.ShutdownGrace)
	return <-done
}

// openPort opens the port with the serving certificates.
func openPort(g *genericapiserver.Config, serving *genericoptions.SecureServingOptionsWithLoopback, known *peer.Certificate) (*trackingListener, error) {
	if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}); err != nil {
		return nil, fmt.Errorf("make self-signed certificate: %w", err)
	}
	// Read the files here first: this error names the file. If the library cannot read them, it
	// does not end what it has already started.
	if pair := serving.ServerCert.CertKey; pair.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile); err != nil {
			return nil, fmt.Errorf("read serving certificate %s and its key: %w", pair.CertFile, err)
		}
	}
	if err := serving.ApplyTo(&g.SecureServing, &g.LoopbackClientConfig); err != nil {
		if g.SecureServing == nil { // the library opens the port first
			return nil, fmt.Errorf("open secure port: %w; --secure-port and --bind-address choose another", err)
		}
		_ = g.SecureServing.Listener.Close() // nothing was accepted yet
		return nil, fmt.Errorf("set up TLS: %w", err)
	}
	ln := newListener(g.SecureServing.Listener)
	g.SecureServing.Listener = ln
	if known == nil {
		return ln, nil
	}
	sni, err := dynamiccertificates.NewStaticSNICertKeyContent("peer", known.PEM(), known.KeyPEM(), peer.Name)
	if err != nil {
		_ = ln.Close() // as above
		return nil, fmt.Errorf("take peer certificate: %w", err)
	}
	g.SecureServing.SNICerts = append(g.SecureServing.SNICerts, sni)
	return ln, nil
}

// authenticate sets up authentication and authorization. It returns the authorizer of the paths
// that are open to everyone.
func authenticate(g *genericapiserver.Config, o Options, kubeconfig string) (open authorizer.Authorizer, err error) {
	authn, authz := *o.Authentication, *o.Authorization
	authn.RemoteKubeConfigFile = cmp.Or(authn.RemoteKubeConfigFile, kubeconfig)
	authz.RemoteKubeConfigFile = cmp.Or(authz.RemoteKubeConfigFile, kubeconfig)
	authn.CustomRoundTripperFn, authz.CustomRoundTripperFn = access.DefaultLimits.Transport, access.DefaultLimits.Transport
	if err := authn.ApplyTo(&g.Authentication, g.SecureServing, nil); err != nil {
		return nil, fmt.Errorf("set up authentication: %w; it reads the ConfigMap extension-apiserver-authentication in kube-system: "+
			"bind the Role extension-apiserver-authentication-reader there, or set --authentication-skip-lookup and give --client-ca-file and --requestheader-client-ca-file", err)
	}
	if err := authz.ApplyTo(&g.Authorization); err != nil {
		return nil, fmt.Errorf("set up authorization: %w", err)
	}
	open, err = path.NewAuthorizer(authz.AlwaysAllowPaths)
	if err != nil {
		return nil, fmt.Errorf("read --authorization-always-allow-paths: %w", err)
	}
	return open, nil
}

// proxyCheck passes when the CA of the aggregating API server's certificate is known. The library
// reads it only after it has begun to listen, and until then it answers 401 to every request that
// comes through the aggregator.
func proxyCheck(trusts *authenticatorfactory.RequestHeaderConfig) HealthCheck {
	return HealthCheck{Name: "authentication", WaitsFor: func() []string {
		if _, ok := trusts.CAContentProvider.VerifyOptions(); !ok {
			return []string{"requestheader-client-ca-file was not read yet from the ConfigMap extension-apiserver-authentication"}
		}
		return nil
	}}
}
