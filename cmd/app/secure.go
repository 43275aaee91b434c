package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/nodeapi/agents"
	"github.com/weir-metrics/weir/api/replicas"
	"github.com/weir-metrics/weir/api/replicas/peer"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/cmd/app/version"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/sources/shared"
)

// openSecureServer opens the server that asks the cluster who may read, and adds everything that is
// served to it.
func (w *weirProcess) openSecureServer(ctx context.Context, h *feature.Host) error {
	if w.plan.Secure == nil {
		return nil
	}
	v := version.Get()
	others := w.plan.features.replicas
	c := server.Config{
		Kubeconfig: w.plan.Cluster.Kubeconfig,
		Version:    v.Kubernetes(),
		Ready:      []server.HealthCheck{w.readyCheck()},
		Alive:      []server.HealthCheck{healthCheck("metric-collection-timely", w.pipeline.Collecting)},
		Metrics:    h.Registry,
		Audience:   peer.Audience,
		Logger:     h.Logr.WithName("server"),
		Peer:       others.Certificate(),
		Data:       others.Forward(),
	}
	if !w.plan.asksAgents() {
		c.Audience = nodeapi.Audience
		if err := w.publishCertificate(&c, h); err != nil {
			return err
		}
	}
	for i := range w.served.apis {
		if describe := w.served.apis[i].describe; describe != nil {
			if err := describe(&c); err != nil {
				return err
			}
		}
	}
	h.Log.Info("reading the cluster's authentication configuration")
	secured, err := makeServer(ctx, w.plan.Secure, c)
	if err != nil {
		return fmt.Errorf("open the secured server: %w", err)
	}
	w.served.urls = append(w.served.urls, shownURL(secured.Address()))
	promauto.With(h.Registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_serving_certificate_expiry_timestamp_seconds",
		Help: "When the certificate that weir serves with ends; 0 if it cannot be read.",
	}, func() float64 {
		expiry, err := secured.CertificateExpiry()
		if err != nil {
			return 0
		}
		return float64(expiry.Unix())
	})
	h.Add(feature.Part{Name: "secured server", Run: secured.Run, Close: secured.Close, Ends: feature.EndsFirst})
	for i := range w.served.apis {
		if err := w.served.apis[i].serveSecurely(w, secured); err != nil {
			return err
		}
	}
	if w.kubelets.shares != nil {
		secured.Stream(sharedPath, w.kubelets.shares)
	}
	if err := secured.Announce(ownGroup()); err != nil {
		return err
	}
	if !h.HasWholeCluster() || w.plan.Cluster.Kubeconfig != "" { // only a pod is behind a Service
		return nil
	}
	config, err := h.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	claims, err := secured.NewClaims(config, h.Registry, h.Log)
	if err != nil {
		return err
	}
	h.Add(feature.Part{Name: "claims of APIs", Run: claims.Run})
	return nil
}

// publishCertificate makes the certificate by which weir's server recognises an agent. Outside of pods
// there is none: only the token of a pod names its node.
func (w *weirProcess) publishCertificate(c *server.Config, h *feature.Host) error {
	pod := w.plan.AgentPod
	if h.Cluster == nil || pod.Namespace == "" || pod.Name == "" || pod.UID == "" {
		return nil
	}
	client, err := h.Cluster.Client()
	if err != nil {
		return err
	}
	if c.Peer, err = peer.NewCertificate(); err != nil {
		return err
	}
	p := agents.Publisher{Client: client, Node: string(w.plan.Host.Node), Pod: pod, Certificate: c.Peer, Log: h.Log}
	h.Add(feature.Part{Name: "agent's certificate", Run: p.Run})
	return nil
}

// makeServer is server.New, but it returns when ctx ends: server.New waits half a minute for an API
// server that does not answer.
func makeServer(ctx context.Context, o *server.Options, c server.Config) (*server.Server, error) {
	type made struct {
		server *server.Server
		err    error
	}
	done := make(chan made)
	go func() {
		s, err := server.New(o, c)
		select {
		case done <- made{s, err}:
		case <-ctx.Done():
			if err == nil {
				_ = s.Close() // makeServer has already returned
			}
		}
	}()
	select {
	case m := <-done:
		return m.server, m.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sharedPath is where a replica sends its reads to the others. It is outside /api and /apis, to
// which every user has the right.
const sharedPath = "/shared/reads"

// shareReads opens what exchanges reads with the other replicas.
func (w *weirProcess) shareReads() {
	exchange := shared.New(shared.Options{Logger: w.Log, Registerer: w.Registry})
	w.Add(feature.Part{Name: "shared reads", Close: exchange.Close})
	w.kubelets.shares = exchange
	w.plan.features.replicas.SetMembers = func(self string, all []replicas.Peer) {
		known := make([]shared.Member, len(all))
		for i, p := range all {
			known[i] = shared.Member{Name: p.Identity, Transport: p.Transport}
			if p.URL != "" {
				known[i].URL = p.URL + sharedPath
			}
		}
		exchange.SetMembers(self, known)
	}
}

// agentPort is the port of an agent's secured server.
const agentPort = 10290

// newAgentSecure returns the options of the secured server of an agent. No Service has to stop
// sending requests to it, so it has no shutdown delay. It also starts without the API server: what
// it then cannot look up is the configuration of the aggregator in front of it, and an agent has
// none.
func newAgentSecure() *server.Options {
	o := server.NewOptions()
	o.SecureServing.BindPort = agentPort
	o.Authentication.TolerateInClusterLookupFailure = true
	o.ShutdownDelay, o.ShutdownGrace = 0, feature.Grace/2
	return o
}

// secureTopic is the page of help with the flags that are not in weir server's own help.
const secureTopic = "secure-serving"

// commonSecureFlags are the flags of the secured server that users may need, with weir's own texts.
// The many others keep the texts of Kubernetes' servers and have their own page of help.
var commonSecureFlags = map[string]string{
	"secure-port":                    "port to serve HTTPS on; 0 for none. Outside of pods only if given",
	"bind-address":                   "`ADDRESS` to serve HTTPS on; 0.0.0.0 and :: mean all addresses",
	"tls-cert-file":                  "`FILE` of the certificate to serve with, and of those that signed it; read again when it changes. Without one weir signs its own",
	"tls-private-key-file":           "`FILE` of its key",
	"cert-dir":                       "`DIR` to keep the certificate in that weir signs itself; in memory if empty",
	"tls-min-version":                "lowest `VERSION` of TLS to accept: VersionTLS12 or VersionTLS13",
	"request-timeout":                "how long a request may take",
	"max-requests-inflight":          "how many reading requests are answered at the same time, an eighth of them for one caller; a quarter is kept for the API server; further ones get 429",
	"max-mutating-requests-inflight": "like --max-requests-inflight, for requests that do not read",
	"shutdown-delay-duration":        "how long to go on serving after SIGTERM, while /readyz fails",
}

// secureFlags splits the flags of the secured server into the common ones and the others.
func secureFlags(o *server.Options) (common, others func(*pflag.FlagSet)) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(all)
	part := func(wanted bool) func(*pflag.FlagSet) {
		return func(to *pflag.FlagSet) {
			all.VisitAll(func(f *pflag.Flag) {
				usage, common := commonSecureFlags[f.Name]
				if common != wanted {
					return
				}
				if common {
					f.Usage = usage
				}
				to.AddFlag(f)
			})
		}
	}
	return part(true), part(false)
}

// secureWith adds the secured server to p if it is to be served: in a pod of the cluster, or
// elsewhere if the port is given.
func (p *plan) secureWith(o *server.Options, given func(flag string) bool, inPod bool) error {
	if !o.Enabled() || !given("secure-port") && (!inPod || p.Cluster == nil) {
		return nil
	}
	if err := o.Validate(); err != nil {
		return cli.Usage(err)
	}
	if p.Cluster == nil {
		return cli.Hintf(cli.Usage(errors.New("--secure-port needs a cluster to authorize requests")),
			"Name it with --kubeconfig=FILE or --in-cluster, or leave --secure-port out: --listen serves without asking.")
	}
	if p.Cluster.Master != "" && (o.Authentication.RemoteKubeConfigFile == "" || o.Authorization.RemoteKubeConfigFile == "") {
		return cli.Hintf(cli.Usage(errors.New("--master cannot be used for authorization")),
			"Name the API server in --kubeconfig=FILE, or give --authentication-kubeconfig=FILE and --authorization-kubeconfig=FILE too.")
	}
	p.Secure = o
	return nil
}

// newSecureTopic returns the page of help with the other flags.
func newSecureTopic() *cobra.Command {
	_, others := secureFlags(server.NewOptions())
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	others(set)
	return &cobra.Command{
		Use:   secureTopic,
		Short: "Flags of weir server that are Kubernetes' own",
		Long: "Flags of weir server that it has in common with Kubernetes' own servers and with\n" +
			"metrics-server, in Kubernetes' words. None is needed in a pod of the cluster.\n\n" +
			set.FlagUsagesWrapped(helpWidth),
	}
}
