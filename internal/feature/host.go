package feature

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/internal/usererror"
)

// Grace is how much time servers and the pipeline have to end after a signal, half of it each. Sinks
// that send have a time of their own after that. Kubernetes kills the process after 20 seconds at the
// earliest (terminationGracePeriodSeconds in deploy/).
const Grace = 10 * time.Second

// Host is what all features of one weir share.
type Host struct {
	Log  *zap.Logger
	Logr logr.Logger // Log, for packages that use logr
	// Registry has weir's own metrics.
	Registry *prometheus.Registry
	// Facts returns the cluster facts. They are nil only without a cluster.
	Facts func() *cluster.Facts
	// Now returns the present time or, if a recording is played, the time in the recording.
	Now func() time.Time
	// Cluster is nil without a cluster.
	Cluster *Cluster
	// Leader is nil for a weir without other replicas.
	Leader Leader
	// Resolution is the time between two reads of a source that does not set its own.
	Resolution time.Duration
	// Parts are what runs, in the order in which it was opened.
	Parts []Part
}

// Leader is the state of the election of the replica that acts for all.
type Leader interface {
	// IsLeader reports whether this replica may act.
	IsLeader() bool
	// IsLastKnownLeader also holds for the last leader while the API server is away.
	IsLastKnownLeader() bool
}

// Add adds an open part.
func (h *Host) Add(p Part) { h.Parts = append(h.Parts, p) }

// IsLeader reports whether this replica is the one that acts for all replicas.
func (h *Host) IsLeader() bool { return h.Leader == nil || h.Leader.IsLeader() }

// IsSender reports whether this replica is the one that sends numbers and Events to receivers. While
// the API server is away that is the last leader: numbers that two replicas send are the same series,
// and numbers that none sends are lost.
func (h *Host) IsSender() bool { return h.Leader == nil || h.Leader.IsLastKnownLeader() }

// HasWholeCluster reports whether weir watches a whole cluster. An agent watches only the pods of its
// node, so it knows no workloads.
func (h *Host) HasWholeCluster() bool { return h.Cluster != nil && h.Cluster.Options.Node == "" }

// Cluster is the cluster that weir watches.
type Cluster struct {
	*informer.Cluster
	// Options name its API server.
	Options informer.Options
}

// RESTConfig returns the address of the API server and weir's credentials for it.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	config, err := informer.RESTConfig(c.Options)
	if err != nil {
		return nil, NoCluster(err)
	}
	return config, nil
}

// Client returns a client of the API server.
func (c *Cluster) Client() (*kubernetes.Clientset, error) {
	client, _, err := c.ClientAs("")
	return client, err
}

// ClientAs returns a client of the API server that has a user agent, and its configuration.
func (c *Cluster) ClientAs(userAgent string) (*kubernetes.Clientset, *rest.Config, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, nil, err
	}
	config.UserAgent = userAgent
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("create API client: %w", err)
	}
	return client, config, nil
}

// NoCluster explains why the API server cannot be used.
func NoCluster(err error) error {
	return usererror.Hintf(err, "Name a cluster with --kubeconfig=FILE, use --in-cluster in a pod of it, or give the source a list of targets.")
}
