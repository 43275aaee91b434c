package app

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/nodeapi/agents"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/eviction/agent"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/inspect"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// thisNode is this machine as a node. It is read outside the rounds of the pipeline: for requests, and
// for the eviction guard.
type thisNode struct {
	pods      nodePods
	inspector *inspect.Inspector // nil if cgroups cannot be read
	newest    *kubeletapi.Newest
	devices   *agents.KubeletDevices
	// readAll reads the node, its pods and their containers; nil if it cannot be read.
	readAll func(context.Context) (*stats.Summary, error)
	// readCAdvisor reads this machine in cAdvisor's form.
	readCAdvisor func(context.Context) (kubeletapi.CAdvisor, error)
}

// openNode opens what reads this machine if it is a source: the inspector of its pod cgroups and, unless
// this is a server, which asks the agents of nodes, what serves the node's own APIs and what the eviction
// guard reads. If this machine cannot be read, that is an error only if the guard may evict.
func (w *weirProcess) openNode(_ context.Context, h *feature.Host) (err error) {
	n, host := w.node, w.plan.Host
	if n == nil {
		return nil
	}
	if n.inspector, err = inspect.New(inspect.Options{}); err != nil {
		h.Log.Warn("pod cgroups are not inspected", zap.Error(err))
	} else {
		h.Registry.MustRegister(inspect.NewCollector(n.inspector, func() *inspect.Pods { return inspect.PodsOn(host.Node, h.Facts()) }))
	}
	if w.plan.asksAgents() {
		return nil
	}
	n.newest = kubeletapi.NewNewest("host")
	w.addSink("kubelet", n.newest)
	n.pods = func() []*corev1.Pod { return nil }
	if h.Cluster != nil {
		n.pods = h.Cluster.NodePods
	}
	n.devices = agents.NewKubeletDevices(host.Node, host.KubeletRoot)
	h.Registry.MustRegister(n.devices)
	kills := w.plan.features.kills
	if kills.Node = host.Node; h.Cluster != nil {
		if err := watchKills(kills, h.Log); err != nil {
			h.Log.Warn("kills by the kernel are not watched", zap.Error(err))
		}
	}
	guard := w.plan.features.guard
	machine, err := openMachine(host, n.pods, h)
	switch {
	case err != nil && guard.MayEvict():
		return err
	case err != nil:
		h.Log.Warn("this machine cannot be watched: there is no eviction and no disk usage", zap.Error(err))
		return nil
	}
	n.readAll = machine.readAll
	guard.Node, guard.Machine = host.Node, machine.Machine
	return nil
}

// openNodeAPI returns the handler of the API of node agents. In a cluster it asks the agents of all
// nodes; on an agent it serves this machine.
func openNodeAPI(w *weirProcess) (http.Handler, error) {
	f, n := w.plan.features, w.node
	switch {
	case w.plan.asksAgents():
		return f.agents.Proxy(), nil
	case n == nil:
		return nil, nil
	}
	o := nodeapi.Options{Node: string(w.plan.Host.Node), Devices: n.devices.Read, Kills: f.kills.Report()}
	if n.inspector != nil {
		o.PodCgroups = podCgroups(n.inspector, w.plan.Host.Node, w.Facts)
	}
	if f.guard.IsOpen() {
		o.Eviction = f.guard.Report
	}
	return nodeapi.NewHandler(o), nil
}

// evictionReports returns the page's function for the eviction report of a node, or nil if there are no
// reports.
func (w *weirProcess) evictionReports() func(context.Context, string) (*evictionreport.EvictionReport, error) {
	f := w.plan.features
	switch {
	case w.plan.asksAgents() && f.agents.Port != 0:
		return f.agents.Proxy().Eviction
	case !f.guard.IsOpen(): // nor is it open where agents are asked
		return nil
	}
	own := string(f.guard.Node)
	return func(_ context.Context, node string) (*evictionreport.EvictionReport, error) {
		if node != own {
			return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: fmt.Sprintf("this is the weir of node %s alone", own),
				Hint: "Ask the cluster's weir, or the one on that node."}
		}
		return f.guard.Report(), nil
	}
}

// openKubeletAPI returns the handler of the kubelet's endpoints of an agent.
func openKubeletAPI(w *weirProcess) (http.Handler, error) {
	n := w.node
	if n == nil || n.newest == nil {
		return nil, nil
	}
	return kubeletapi.NewHandler(kubeletapi.Options{
		Newest: n.newest, Facts: w.Facts, Base: n.readAll, CAdvisor: n.readCAdvisor,
		Image: func(pod metric.PodRef, container string) string { return imageOf(n.pods(), pod, container) },
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

// machine reads this machine at any time.
type machine struct {
	*agent.Machine
	readAll func(context.Context) (*stats.Summary, error)
}

// The default directories of the node's disks.
const (
	defaultKubeletRoot   = "/var/lib/kubelet"
	defaultContainerRoot = "/var/lib/containerd"
)
