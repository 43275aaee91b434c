package app

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/uuid"
	kubeversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/replicas/forward"
	"github.com/weir-metrics/weir/api/replicas/leader"
	"github.com/weir-metrics/weir/api/replicas/members"
	"github.com/weir-metrics/weir/api/replicas/peer"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/cmd/app/logging"
	"github.com/weir-metrics/weir/cmd/app/version"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/sources/shared"
)

// openSecureServer opens the server that asks the cluster who may read, and adds everything that is
// served to it.
func (w *process) openSecureServer(ctx context.Context) error {
	if w.plan.Secure == nil {
		return nil
	}
	v := version.Get()
	c := server.Config{
		Kubeconfig: w.plan.Cluster.Kubeconfig,
		Version:    kubeversion.Info{GitVersion: v.Version, GitCommit: v.Commit, GoVersion: v.Go, Platform: v.System},
		Ready:      []server.HealthCheck{w.pipelineCheck()},
		Metrics:    w.registry,
		Audience:   peer.Audience,
		Logger:     logging.Logr(w.log).WithName("server"),
	}
	if w.plan.Agents == nil {
		c.Audience = nodeapi.Audience
	}
	for i := range w.apis {
		if describe := w.apis[i].describe; describe != nil {
			if err := describe(&c); err != nil {
				return err
			}
		}
	}
	if w.plan.Lease != nil {
		if err := w.joinReplicas(*w.plan.Lease, &c); err != nil {
			return fmt.Errorf("join the replicas: %w", err)
		}
	}
	w.log.Info("reading the cluster's authentication configuration")
	secured, err := makeServer(ctx, w.plan.Secure, c)
	if err != nil {
		return fmt.Errorf("open the secured server: %w", err)
	}
	w.urls = append(w.urls, "https://"+connectAddress(secured.Address()))
	w.add(Part{Name: "secured server", Run: secured.Run, Close: secured.Close, Ends: EndsFirst})
	for i := range w.apis {
		if err := w.apis[i].serveSecurely(w, secured); err != nil {
			return err
		}
	}
	if w.shares != nil {
		secured.Stream(sharedPath, w.shares)
	}
	return secured.Announce(ownGroup())
}

// makeServer is server.New, but it returns when ctx ends: server.New waits without limit for an API
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

// joinReplicas makes this replica take part in the election of the leader. All replicas answer with
// the leader's numbers.
func (w *process) joinReplicas(l lease, c *server.Config) error {
	kube, err := informer.RESTConfig(*w.plan.Cluster)
	if err != nil {
		return fmt.Errorf("configure API client: %w", err)
	}
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return err
	}
	certificate, err := peer.NewCertificate()
	if err != nil {
		return err
	}
	leases := ownLeases(client.CoordinationV1(), kube.BearerTokenFile)
	// A pod that restarts in place is another process, so it needs another identity.
	self := members.Member{Identity: l.identity + "_" + string(uuid.NewUUID()), Address: l.address, Certificate: string(certificate.PEM())}
	w.elector, err = leader.New(leader.Options{
		Client: leases, Namespace: l.namespace, Name: l.name,
		Identity: self.Identity, Address: self.Address, Certificate: certificate.PEM(),
		Ready:  func() bool { return len(w.pipelineCheck().WaitsFor()) == 0 },
		Reads:  w.freshReads,
		Logger: c.Logger.WithName("leader"),
	})
	if err != nil {
		return err
	}
	w.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_leader",
		Help: "1 if this replica is the last known holder of the Lease, which answers readers and sends to receivers; else 0.",
	}, func() float64 {
		if w.elector.IsLastKnownLeader() {
			return 1
		}
		return 0
	}))
	// The election ends after the server, the parts that act and the pipeline: until then the other
	// replicas forward requests to this one, no other replica may act, and sinks that send take the
	// last round, because this replica leads.
	w.add(Part{Name: "leader election", Run: w.elector.Run, Ends: EndsLast})
	if w.shares != nil {
		registry, err := members.New(members.Options{
			Client: leases, Namespace: l.namespace, Name: l.name, Replica: l.identity, Self: self,
			Changed: memberUpdater(withTokenFile(kube, w.plan.ReplicaTokenFile), w.shares, self.Identity), Logger: c.Logger.WithName("members"),
		})
		if err != nil {
			return err
		}
		// It ends at once: the others then read this replica's nodes while it still answers its
		// last requests.
		w.add(Part{Name: "membership of replicas", Run: registry.Run, Ends: EndsFirst})
	}
	transports := peer.NewTransports(withTokenFile(kube, w.plan.ReplicaTokenFile))
	w.add(Part{Name: "connections to replicas", Close: func() error { transports.Close(); return nil }})
	c.Peer = certificate
	c.Data = forward.New(forward.Options{Leader: transports.Route(w.elector.Leader), Logger: c.Logger.WithName("forward")})
	return nil
}

// lease says in which Lease the replicas of a weir elect their leader.
type lease struct{ namespace, name, identity, address string }

// podLease returns the Lease for the replicas of this pod, or nil if the environment does not name
// the pod.
func podLease(name string, port int, getenv func(string) string) *lease {
	l := &lease{namespace: getenv("POD_NAMESPACE"), name: name, identity: getenv("POD_NAME"), address: getenv("POD_IP")}
	if name == "" || l.namespace == "" || l.identity == "" || l.address == "" {
		return nil
	}
	l.address = net.JoinHostPort(l.address, fmt.Sprint(port))
	return l
}

// sharedPath is where a replica sends its reads to the others. It is outside /api and /apis, to
// which every user has the right.
const sharedPath = "/shared/reads"

// memberUpdater returns a function that updates the members of an Exchange. It keeps the
// connections to members that stay.
func memberUpdater(kube *rest.Config, shares *shared.Exchange, self string) func([]members.Member) {
	transports := map[members.Member]*peer.Transports{}
	return func(all []members.Member) {
		there := map[members.Member]*peer.Transports{}
		known := []shared.Member{}
		for _, m := range all {
			if m.Identity == self {
				known = append(known, shared.Member{Name: self})
				continue
			}
			t := transports[m]
			if t == nil {
				t = peer.NewTransports(kube)
			}
			there[m] = t
			transport, err := t.For(m.Address, []byte(m.Certificate))
			if err != nil {
				continue // this replica cannot call that member, so it reads the member's nodes itself
			}
			known = append(known, shared.Member{Name: m.Identity, URL: "https://" + m.Address + sharedPath, Transport: transport})
		}
		shares.SetMembers(self, known)
		for m, t := range transports {
			if there[m] == nil {
				t.Close()
			}
		}
		transports = there
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
	o.ShutdownDelay, o.ShutdownGrace = 0, grace/2
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
				words, is := commonSecureFlags[f.Name]
				if is != wanted {
					return
				}
				if is {
					f.Usage = words
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
		return cli.Hintf(cli.Usage(errors.New("--secure-port needs a cluster, whose word decides who may read")),
			"Name it with --kubeconfig=FILE or --in-cluster, or leave --secure-port out: --listen serves without asking.")
	}
	if p.Cluster.Master != "" && (o.Authentication.RemoteKubeConfigFile == "" || o.Authorization.RemoteKubeConfigFile == "") {
		return cli.Hintf(cli.Usage(errors.New("--master is not for asking the API server who may read")),
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
