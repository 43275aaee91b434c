package informer

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
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
	"github.com/weir-metrics/weir/cluster/access"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/metric"
)

// Options configures a Cluster. The zero Options means the cluster that this process runs in.
type Options struct {
	// Kubeconfig is the path of a kubeconfig file. If it and Master are empty, the service account
	// of this pod is used.
	Kubeconfig string
	// Master is the URL of the API server. It overrides the kubeconfig's.
	Master string
	// Node limits the watches to one node and its pods, so that the weirs on thousands of nodes do
	// not all watch the whole cluster. Facts then contain nothing else, and NodePods returns the
	// pods. Default: every node.
	Node metric.NodeName
	// KubeletPods is the socket of the Pods API of Node's kubelet. It is asked for the pods every ten
	// seconds until the API server has listed them. Default: only the API server is asked.
	KubeletPods string
	// Logger gets a line when the API server cannot be reached. Default: none.
	Logger *zap.Logger
	// Now returns the time. Default: time.Now.
	Now func() time.Time
	// Debounce is how long changes are collected before new facts are published. Default: 50ms.
	Debounce time.Duration
	// MaxNodes is how many nodes the facts have at most. Default: DefaultMaxNodes.
	MaxNodes int
	// Ends records the runs and the pods that end. Default: nothing does.
	Ends *endlog.Log
	// Silence is how long the API server may send nothing about pods before that is logged. It
	// sends a bookmark about once a minute even if nothing changes. Default: 3m.
	Silence time.Duration
}

func (o Options) withDefaults() Options {
	o.Logger = cmp.Or(o.Logger, zap.NewNop())
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Debounce = cmp.Or(o.Debounce, 50*time.Millisecond)
	o.Silence = cmp.Or(o.Silence, 3*time.Minute)
	o.MaxNodes = cmp.Or(o.MaxNodes, DefaultMaxNodes)
	return o
}

// Cluster watches the nodes and pods of one cluster. Several goroutines may call its methods.
type Cluster struct {
	opts    Options
	client  kubernetes.Interface
	queue   *queue
	limit   nodeLimit
	facts   atomic.Pointer[cluster.Facts]
	pods    atomic.Pointer[nodePods] // nil unless Options.Node is set
	changed chan struct{}
	// followsEnds is set once the API server has listed pods. Only publish uses it.
	followsEnds bool
}

// New returns a Cluster for the API server that o names. Its only I/O is to read the kubeconfig or
// the service account's token.
func New(o Options) (*Cluster, error) {
	config, err := o.restConfig()
	if err != nil {
		return nil, fmt.Errorf("configure API client: %w", err)
	}
	config = access.ListConfig(config, maxList)
	config.UserAgent = "weir"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create API client: %w", err)
	}
	return NewForClient(client, o), nil
}

// NewForClient returns a Cluster that uses client. It ignores o.Kubeconfig and o.Master.
func NewForClient(client kubernetes.Interface, o Options) *Cluster {
	o = o.withDefaults()
	limit := nodeLimit{most: o.MaxNodes, seed: maphash.MakeSeed(), leftOut: map[uint64]struct{}{}}
	return &Cluster{opts: o, client: client, queue: newQueue(), limit: limit, changed: make(chan struct{}, 1)}
}

// maxList limits a list of all pods, which API servers before Kubernetes 1.34 send as one answer:
// 150,000 pods take about 700 MB.
const maxList = 1 << 30

// RESTConfig returns the address of the API server that o names, and our credentials for it, for
// callers that use the same credentials elsewhere. Its clients keep access.DefaultLimits. They send
// requests without client-go's limit of five a second: each HPA may ask for a list of objects every 15 s,
// and a new leader reads the Lease of each agent. It reads the kubeconfig or the service account's token.
func RESTConfig(o Options) (*rest.Config, error) {
	config, err := o.restConfig()
	if err != nil {
		return nil, err
	}
	config = access.DefaultLimits.Limit(config)
	config.QPS = -1
	return config, nil
}

func (o *Options) restConfig() (*rest.Config, error) {
	if o.Kubeconfig == "" && o.Master == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.Kubeconfig},
		&clientcmd.ConfigOverrides{ClusterInfo: clientcmdapi.Cluster{Server: o.Master}},
	).ClientConfig()
}

// Facts returns the present cluster facts. It is nil until the API server has answered.
// Facts.Synced is set once both nodes and pods have been listed. Facts.At is when the API server
// last answered about pods; it is zero while the pods are the kubelet's. It takes no lock.
func (c *Cluster) Facts() *cluster.Facts { return c.facts.Load() }

// Changed returns a channel that receives a value after the facts have changed: at once for the
// first change, and once for all changes before the value is read. It is always the same channel,
// for one reader, the manager. It does not signal that only Facts.At has changed.
func (c *Cluster) Changed() <-chan struct{} { return c.changed }

// Run watches the cluster until ctx ends, and returns when everything it started has ended. Errors
// of the API server are logged and retried, not returned. Call it once.
func (c *Cluster) Run(ctx context.Context) error {
	// Reflectors log errors that they retry. watch.go logs what an operator should know.
	quiet := klog.NewContext(ctx, logr.Discard())
	var wg sync.WaitGroup
	for _, r := range c.reflectors() {
		wg.Go(func() { r.RunWithContext(quiet) })
	}
	if c.opts.KubeletPods != "" {
		wg.Go(func() { c.followKubelet(ctx) })
	}
	c.loop(ctx)
	wg.Wait()
	return nil
}

// loop publishes the changes that the queue has collected.
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
			if f == nil || f.At.IsZero() {
				c.opts.Logger.Warn("the API server has not answered yet; weir serves without its facts")
				continue
			}
			c.opts.Logger.Warn("the API server has sent nothing about pods for a while; weir keeps serving with the last known facts",
				zap.Time("lastWord", f.At))
		case <-c.queue.ready:
			debounce.Reset(c.opts.Debounce)
			select {
			case <-ctx.Done():
				return
			case <-debounce.C:
			}
			p := c.queue.take()
			if old := c.facts.Load(); old == nil || p.at.After(old.At) {
				silence.Reset(c.opts.Silence)
			}
			c.publish(p)
		}
	}
}

// publish replaces the facts with facts that include the changes in p.
func (c *Cluster) publish(p pending) {
	old := c.facts.Load()
	c.limit.keep(&p, old)
	facts, changed := p.apply(old)
	switch before, now := old.LeftOutNodes(), facts.LeftOutNodes(); {
	case before == 0 && now > 0:
		c.opts.Logger.Warn("the cluster has more nodes than --max-nodes: the others are not read; weir explain missing counts them", zap.Int("read", facts.Nodes()), zap.Int("others", now))
	case before > 0 && now == 0:
		c.opts.Logger.Info("the cluster has no more nodes than --max-nodes any more")
	}
	if c.opts.Node != "" {
		c.pods.Store(c.pods.Load().with(&p))
	}
	c.facts.Store(facts)
	c.recordEnds(old, facts, &p)
	if !changed {
		return
	}
	select {
	case c.changed <- struct{}{}:
	default: // the last signal was not read yet: it covers both changes
	}
}

// recordEnds shows the log of ends the pods that p changes. Pods that the kubelet listed have other UIDs
// than in the API server, and do not count.
func (c *Cluster) recordEnds(old, facts *cluster.Facts, p *pending) {
	if c.opts.Ends == nil || !p.fromServer {
		return
	}
	if !c.followsEnds {
		old, c.followsEnds = nil, true
		c.opts.Ends.Synced()
	}
	node := func(name metric.NodeName) endlog.NodeState { return endlog.StateOf(facts, name) }
	for ref, pod := range p.pods {
		if before := old.Pod(ref); before != nil {
			c.opts.Ends.Changed(before, pod, p.finals[before.UID], node)
		} else if pod != nil {
			c.opts.Ends.Changed(nil, pod, nil, node)
		}
	}
	if !p.allPods {
		return
	}
	old.EachPod(func(before *cluster.Pod) bool {
		if _, listed := p.pods[before.PodRef]; !listed {
			c.opts.Ends.Changed(before, nil, p.finals[before.UID], node)
		}
		return true
	})
}
