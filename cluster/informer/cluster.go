package informer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Options configures a Cluster. The zero Options means the cluster this process
// runs in.
type Options struct {
	// Kubeconfig is the path of a kubeconfig file. If it and Master are empty,
	// the service account of the pod this process runs in is used.
	Kubeconfig string
	// Master is the URL of the API server; it overrides the kubeconfig's.
	Master string
	// Node limits all that is followed to one node and its pods, so that a weir on
	// each of thousands of nodes does not follow the whole cluster. Facts then know
	// of nothing else, and NodePods has the pods. Default: every node.
	Node metric.NodeName
	// Logger gets a line when the API server cannot be reached. Default: none.
	Logger *zap.Logger
	// Now reads our clock. Default: time.Now.
	Now func() time.Time
	// Debounce is how long changes are collected before new facts are
	// published. Default: 50ms.
	Debounce time.Duration
	// Silence is how long the API server may say nothing before that is
	// logged. It sends a bookmark about once a minute even if nothing changes.
	// Default: 3m.
	Silence time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Debounce == 0 {
		o.Debounce = 50 * time.Millisecond
	}
	if o.Silence == 0 {
		o.Silence = 3 * time.Minute
	}
	return o
}

// Cluster follows the nodes and pods of one cluster. Its methods may be called
// by several goroutines.
type Cluster struct {
	opts    Options
	client  kubernetes.Interface
	queue   *queue
	facts   atomic.Pointer[cluster.Facts]
	pods    atomic.Pointer[nodePods] // nil unless Options.Node is set
	changed chan struct{}
}

// New returns a Cluster for the API server that o names. It does no I/O but
// reading the kubeconfig or the service account's token.
func New(o Options) (*Cluster, error) {
	config, err := RESTConfig(o)
	if err != nil {
		return nil, fmt.Errorf("configure API client: %w", err)
	}
	// Protobuf costs both sides a fraction of what JSON does.
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.UserAgent = "weir"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create API client: %w", err)
	}
	return NewForClient(client, o), nil
}

// NewForClient returns a Cluster that asks client; o's Kubeconfig and Master
// are ignored.
func NewForClient(client kubernetes.Interface, o Options) *Cluster {
	o = o.withDefaults()
	return &Cluster{opts: o, client: client, queue: newQueue(), changed: make(chan struct{}, 1)}
}

// RESTConfig returns how the API server that o names is reached, and who we are
// to it: for whoever shows the same credentials elsewhere. It reads the
// kubeconfig or the service account's token.
func RESTConfig(o Options) (*rest.Config, error) {
	if o.Kubeconfig == "" && o.Master == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.Kubeconfig},
		&clientcmd.ConfigOverrides{ClusterInfo: clientcmdapi.Cluster{Server: o.Master}},
	).ClientConfig()
}

// Facts returns what is known now: nil until the API server has answered.
// Facts.Synced is set once both nodes and pods have been listed; Facts.At is
// when the API server last answered. It takes no lock.
func (c *Cluster) Facts() *cluster.Facts { return c.facts.Load() }

// Changed returns a channel that receives after facts have changed: at once
// for the first change, and once for all that happen before it is read. It is
// always the same channel and has one value for one reader, the manager. That
// time passed without a change (Facts.At moved) is not signalled.
func (c *Cluster) Changed() <-chan struct{} { return c.changed }

// Run follows the cluster until ctx ends, and returns when everything it began
// has ended. Trouble with the API server is logged and retried, never returned.
// Run is called once.
func (c *Cluster) Run(ctx context.Context) error {
	// Reflectors log what they cannot do about their own retries. What an
	// operator should know is logged in watch.go.
	quiet := klog.NewContext(ctx, logr.Discard())
	var wg sync.WaitGroup
	for _, r := range c.reflectors() {
		wg.Go(func() { r.RunWithContext(quiet) })
	}
	c.loop(ctx)
	wg.Wait()
	return nil
}

// loop publishes what the queue has collected.
func (c *Cluster) loop(ctx context.Context) {
	debounce := time.NewTimer(0)
	defer debounce.Stop()
	<-debounce.C
	silence := time.NewTimer(c.opts.Silence)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-silence.C:
			f := c.facts.Load()
			if f == nil {
				c.opts.Logger.Warn("the API server has not answered yet; weir serves without its facts")
				continue
			}
			c.opts.Logger.Warn("the API server has sent nothing for a while; weir keeps serving with the last known facts",
				zap.Time("lastWord", f.At))
		case <-c.queue.ready:
			debounce.Reset(c.opts.Debounce)
			select {
			case <-ctx.Done():
				return
			case <-debounce.C:
			}
			silence.Reset(c.opts.Silence)
			c.publish(c.queue.take())
		}
	}
}

// publish replaces the facts by ones that know of the changes in p.
func (c *Cluster) publish(p pending) {
	old := c.facts.Load()
	facts, changed := p.apply(old)
	if c.opts.Node != "" {
		c.pods.Store(c.pods.Load().with(&p))
	}
	c.facts.Store(facts)
	if !changed {
		return
	}
	select {
	case c.changed <- struct{}{}:
	default: // the last signal has not been read yet: it will do for both
	}
}
