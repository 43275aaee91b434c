package app

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/inspect"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// openInspector opens the inspector of this machine's pod cgroups, and the sink for the kubelet's
// endpoints.
func (w *process) openInspector(context.Context) (err error) {
	host := w.plan.Host
	if host == nil {
		return nil
	}
	if w.inspector, err = inspect.New(inspect.Options{}); err != nil {
		w.log.Warn("pod cgroups are not inspected", zap.Error(err))
	} else {
		w.registry.MustRegister(inspect.NewCollector(w.inspector, func() *inspect.Pods { return inspect.PodsOn(host.Node, w.facts()) }))
	}
	if w.plan.Agents == nil {
		w.newest = kubeletapi.NewNewest("host")
		w.addSink("kubelet", w.newest)
	}
	return nil
}

// openNodeAPI opens the API of node agents. In a cluster it asks the agents of all nodes; on an
// agent it serves this machine.
func openNodeAPI(ctx context.Context, w *process) (http.Handler, error) {
	switch {
	case w.plan.Agents != nil:
		agents, err := newAgents(w.plan, w.facts)
		if err != nil {
			return nil, err
		}
		w.eviction = askAgents(agents)
		return agents, nil
	case w.plan.Host != nil:
		return openThisNode(ctx, w)
	}
	return nil, nil
}

// localNode reads this machine at the time of a request.
type localNode struct {
	now  func(context.Context) (*stats.Summary, error) // nil if it cannot be read
	pods nodePods
}

// openThisNode opens what reads this machine outside the rounds of the pipeline: the summary for a
// request, the eviction guard, and the report on pod cgroups. If this machine cannot be read, it
// logs a warning. That is an error only for an agent that evicts.
func openThisNode(ctx context.Context, w *process) (http.Handler, error) {
	p := w.plan
	w.node = &localNode{pods: func() []*corev1.Pod { return nil }}
	if w.cluster != nil {
		w.node.pods = w.cluster.NodePods
	}
	devices := newKubeletDevices(p.Host)
	w.registry.MustRegister(devices)
	o := nodeapi.Options{Node: string(p.Host.Node), Devices: devices.read}
	if w.inspector != nil {
		o.PodCgroups = podCgroups(w.inspector, p.Host.Node, w.facts)
	}
	machine, err := openMachine(p.Host, w.node.pods, w.log)
	switch {
	case err != nil && p.Eviction != nil && p.Eviction.Mode != execute.Observe:
		return nil, err
	case err != nil:
		w.log.Warn("this machine cannot be watched: there is no eviction and no disk usage", zap.Error(err))
		return nodeapi.NewHandler(o), nil
	}
	w.node.now = machine.readAll
	w.add(Part{Name: "disk scan", Run: machine.scan, Close: machine.close})
	if p.Eviction != nil {
		e, err := openEvictor(ctx, p, machine, w.node.pods, w.cluster, w.registry, w.log)
		if err != nil {
			return nil, err
		}
		w.add(Part{Name: "eviction guard", Run: e.run, Close: e.Close})
		o.Eviction, w.eviction = e.report, e.page
	}
	return nodeapi.NewHandler(o), nil
}

// openKubeletAPI opens the kubelet's endpoints of an agent.
func openKubeletAPI(_ context.Context, w *process) (http.Handler, error) {
	if w.node == nil {
		return nil, nil
	}
	return kubeletapi.NewHandler(kubeletapi.Options{
		Newest: w.newest, Facts: w.facts, Base: w.node.now, CAdvisor: w.readCAdvisor,
		Image: func(pod metric.PodRef, container string) string { return imageOf(w.node.pods(), pod, container) },
	}), nil
}

// imageOf returns the image of a container from its pod's status, or "" if it is not known.
func imageOf(pods []*corev1.Pod, ref metric.PodRef, container string) string {
	for _, p := range pods {
		if p.Name != string(ref.Name) || p.Namespace != string(ref.Namespace) {
			continue
		}
		for _, c := range containerStatuses(p) {
			if c.Name == container {
				return c.Image
			}
		}
	}
	return ""
}

func containerStatuses(p *corev1.Pod) []corev1.ContainerStatus {
	s := &p.Status
	return slices.Concat(s.ContainerStatuses, s.InitContainerStatuses, s.EphemeralContainerStatuses)
}

// podCgroups returns a function that inspects the pod cgroups of this machine.
func podCgroups(i *inspect.Inspector, node metric.NodeName, facts func() *cluster.Facts) func(context.Context) (any, error) {
	return func(context.Context) (any, error) {
		tree, err := i.Read()
		if err != nil {
			return nil, fmt.Errorf("read cgroups: %w", err)
		}
		return inspect.Judge(tree, inspect.PodsOn(node, facts()), time.Now()), nil
	}
}

// nodePods returns the pods of this node.
type nodePods func() []*corev1.Pod

// find returns the pod with this UID in its cgroup's path, or nil. For a static pod that UID is the
// hash of its manifest.
func (n nodePods) find(uid metric.PodUID) *corev1.Pod {
	isStatic := podcgroup.IsStatic(uid)
	for _, p := range n() {
		if string(p.UID) == string(uid) || isStatic && p.Annotations[informer.ConfigHashAnnotation] == string(uid) {
			return p
		}
	}
	return nil
}

// running returns the names of a pod's running containers by ID, and whether there is such a pod.
func (n nodePods) running(uid metric.PodUID) (map[string]string, bool) {
	p := n.find(uid)
	if p == nil {
		return nil, false
	}
	names := map[string]string{}
	for _, c := range containerStatuses(p) {
		if c.State.Running != nil {
			_, id, _ := strings.Cut(c.ContainerID, "://")
			names[id] = c.Name
		}
	}
	return names, true
}

// machine reads this machine at any time, outside the rounds of the pipeline.
type machine struct {
	// peek reads only the node, readMemory also the memory of its pods, read also the rest of them, and
	// readAll also their containers.
	peek, readMemory, read, readAll func(context.Context) (*stats.Summary, error)
	// memoryLeft reads the figures of weir's own eviction signals; nil if they are not known.
	memoryLeft func() *eviction.MemoryLeft
	layout     func(context.Context) (images, containers bool, err error)
	// refresh measures the disk usage of pods now. scan measures it in the background.
	refresh func(context.Context)
	scan    func(context.Context) error
	cgroups func() eviction.Cgroups
	// workingSet reads only the working set that a memory signal is about.
	workingSet func(eviction.Signal) (int64, error)
	close      func() error
}

// The default directories of the node's disks.
const (
	defaultKubeletRoot   = "/var/lib/kubelet"
	defaultContainerRoot = "/var/lib/containerd"
)

// has reports whether the node has the pod now.
func (m *machine) has(ctx context.Context, uid types.UID) (bool, error) {
	s, err := m.readMemory(ctx)
	if s == nil {
		return false, err
	}
	return slices.ContainsFunc(s.Pods, func(p stats.PodStats) bool { return p.PodRef.UID == string(uid) }), nil
}

// capacities returns the present capacity of each signal by the kubelet's settings, or 0 if it is not
// known.
func (m *machine) capacities(ctx context.Context, kubelet *eviction.Settings) func(eviction.Signal) int64 {
	s, _ := m.read(ctx)
	d := eviction.Decide(&eviction.Input{Now: time.Now(), Settings: kubelet, Summary: s, MemoryLeft: m.memoryLeft()})
	return func(of eviction.Signal) int64 {
		for i := range d.Observations {
			if o := &d.Observations[i]; o.Signal == of {
				return o.Capacity
			}
		}
		return 0
	}
}

// withTokenFile returns the configuration with the token in a file as the only credentials. Without
// a file it returns the configuration unchanged.
func withTokenFile(kube *rest.Config, file string) *rest.Config {
	if file == "" {
		return kube
	}
	kube = rest.AnonymousClientConfig(kube)
	kube.BearerTokenFile = file
	return kube
}

// nodeTransport returns a transport for requests to a kubelet or agents, with the credentials of
// kube, which the kubelet and the agents ask the API server to verify. It trusts the certificates of
// caFile or, if that is empty, those of the cluster. If insecure, it trusts any certificate.
func nodeTransport(kube *rest.Config, caFile string, insecure bool) (http.RoundTripper, error) {
	c := rest.CopyConfig(kube)
	c.ServerName = ""
	c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } // nodes are not behind a proxy
	c.Insecure = insecure                                               // independent of the setting for the API server
	switch {
	case insecure:
		c.CAFile, c.CAData = "", nil
	case caFile != "":
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("read certificates: %w", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read certificates: %s has none in PEM", caFile)
		}
		c.CAFile, c.CAData = caFile, nil
	}
	return rest.TransportFor(c)
}
