// Package replicas lets several replicas of weir answer as one: it is a feature with the election of a
// leader (leader), the list of members (members) and what forwards requests to the leader (forward).
// README.md has the rules.
//
//	replicas.go     Replicas: flags, and the start of the election
//	peers.go        transports to the other members
//	leaseowner.go   the Leases belong to weir's service account
//	pods.go         verifies that a Lease names a pod of weir
package replicas

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/weir-metrics/weir/api/replicas/forward"
	"github.com/weir-metrics/weir/api/replicas/leader"
	"github.com/weir-metrics/weir/api/replicas/members"
	"github.com/weir-metrics/weir/api/replicas/peer"
	"github.com/weir-metrics/weir/cluster/access"
	"github.com/weir-metrics/weir/internal/feature"
)

// Replicas is the feature by which several replicas answer with the numbers of one, the leader.
type Replicas struct {
	// LeaseName is the Lease by which replicas choose a leader. It is empty if there is one replica.
	LeaseName string
	// TokenFile has the token that other replicas are shown. Empty: they are shown the credentials for
	// the API server.
	TokenFile string
	// SharesReads is set if the replicas share the reads of kubelets.
	SharesReads bool

	// IsReady and FreshReads are the state of this replica, for the election: whether its pipeline is
	// ready, and how many sources it has read of late. They are set before Open, and so is SetMembers,
	// which takes each new list of members if reads are shared.
	IsReady    func() bool
	FreshReads func() int
	SetMembers func(self string, all []Peer)

	lease       *lease // nil for a weir without other replicas
	certificate *peer.Certificate
	forward     func(http.Handler) http.Handler
}

// lease names the Lease in which the replicas of a weir elect their leader.
type lease struct{ namespace, name, identity, address, port string }

// Flags adds the flags.
func (r *Replicas) Flags(f *pflag.FlagSet) {
	f.StringVar(&r.LeaseName, "lease", "weir", "`NAME` of the Lease by which replicas choose a leader, whose numbers all of them serve; empty if there is only one replica. Needs POD_NAME, POD_NAMESPACE and POD_IP in the environment")
	f.StringVar(&r.TokenFile, "replica-token-file", "", "`FILE` of the token that other replicas are shown, of weir's account and for the audience "+peer.Audience+" (default, outside of pods: the kubeconfig's credentials)")
	f.BoolVar(&r.SharesReads, "share-reads", false, "each node is read by one replica, which sends what it read to the others; replicas find each other by Leases. Needs what --lease needs")
}

// Join takes the name and address of this pod from the environment. Without them there are no other
// replicas.
func (r *Replicas) Join(port int, getenv func(string) string) {
	l := &lease{namespace: getenv("POD_NAMESPACE"), name: r.LeaseName, identity: getenv("POD_NAME"), address: getenv("POD_IP"), port: strconv.Itoa(port)}
	if l.name == "" || l.namespace == "" || l.identity == "" || l.address == "" {
		return
	}
	l.address = net.JoinHostPort(l.address, l.port)
	r.lease = l
}

// HasJoined reports whether there may be other replicas.
func (r *Replicas) HasJoined() bool { return r.lease != nil }

// Instance is the name of this pod, or empty.
func (r *Replicas) Instance() string {
	if r.lease == nil {
		return ""
	}
	return r.lease.identity
}

// Certificate returns the certificate by which other replicas recognise this one. It is nil without
// other replicas.
func (r *Replicas) Certificate() *peer.Certificate { return r.certificate }

// Forward returns a function that wraps handlers so that the leader answers. It is nil without other
// replicas.
func (r *Replicas) Forward() func(http.Handler) http.Handler { return r.forward }

// Open makes this replica take part in the election of the leader, unless there are no others. All
// replicas answer with the leader's numbers.
func (r *Replicas) Open(_ context.Context, h *feature.Host) error {
	if r.lease == nil {
		return nil
	}
	if err := r.open(h); err != nil {
		return fmt.Errorf("join the replicas: %w", err)
	}
	return nil
}

func (r *Replicas) open(h *feature.Host) error {
	kube, err := h.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(leader.ClientConfig(kube, leader.DefaultRenew))
	if err != nil {
		return fmt.Errorf("create API client for Leases: %w", err)
	}
	if r.certificate, err = peer.NewCertificate(); err != nil {
		return err
	}
	log := h.Logr.WithName("server")
	var leases coordinationv1.LeasesGetter = client.CoordinationV1()
	var verify func(ctx context.Context, identity, address string) error
	if own := readAccount(kube.BearerTokenFile); own != nil {
		leases = ownedLeases{leases, own}
		verify = replicaPods{client.CoreV1().Pods(r.lease.namespace), own.reference.Name, r.lease.port}.verify
	}
	// A pod that restarts in place is another process, so it needs another identity.
	self := members.Member{Identity: r.lease.identity + "_" + string(uuid.NewUUID()), Address: r.lease.address, Certificate: string(r.certificate.PEM())}
	elector, err := leader.New(leader.Options{
		Client: leases, Namespace: r.lease.namespace, Name: r.lease.name,
		Identity: self.Identity, Address: self.Address, Certificate: r.certificate.PEM(),
		Verify: verify, Ready: r.IsReady, Reads: r.FreshReads, Logger: log.WithName("leader"),
	})
	if err != nil {
		return err
	}
	h.Leader = elector
	h.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_leader",
		Help: "1 if this replica is the last known holder of the Lease, which answers readers and sends to receivers; else 0.",
	}, func() float64 {
		if elector.IsLastKnownLeader() {
			return 1
		}
		return 0
	}))
	// The election ends after the server, the parts that act and the pipeline: until then the other
	// replicas forward requests to this one, no other replica may act, and sinks that send take the
	// last round, because this replica leads.
	h.Add(feature.Part{Name: "leader election", Run: elector.Run, Ends: feature.EndsLast})
	shown := access.WithTokenFile(kube, r.TokenFile)
	if r.SharesReads {
		registry, err := members.New(members.Options{
			Client: leases, Namespace: r.lease.namespace, Name: r.lease.name, Replica: r.lease.identity, Self: self,
			Changed: peerUpdater(shown, self.Identity, r.SetMembers), Verify: verify, Logger: log.WithName("members"),
		})
		if err != nil {
			return err
		}
		// It ends at once: the others then read this replica's nodes while it still answers its
		// last requests.
		h.Add(feature.Part{Name: "membership of replicas", Run: registry.Run, Ends: feature.EndsFirst})
	}
	transports := peer.NewTransports(shown)
	h.Add(feature.Part{Name: "connections to replicas", Close: func() error { transports.Close(); return nil }})
	r.forward = forward.New(forward.Options{Leader: transports.Route(elector.Leader), Logger: log.WithName("forward")})
	return nil
}
