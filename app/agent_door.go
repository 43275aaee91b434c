package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/app/httpserver"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/inspect"
)

// agentPort is where an agent serves whom the cluster lets read.
const agentPort = 10290

// newAgentSecure returns the secured server's options for an agent. No Service has to
// learn that it ends. And it begins to measure, and to watch over its node, where the API
// server is away: what cannot be looked up is by which proxies requests come, and none
// come to an agent.
func newAgentSecure() *server.Options {
	o := server.NewOptions()
	o.SecureServing.BindPort = agentPort
	o.Authentication.TolerateInClusterLookupFailure = true
	o.ShutdownDelay, o.ShutdownGrace = 0, grace/2
	return o
}

// standIn is what an agent serves in its kubelet's stead.
type standIn struct {
	http.Handler
	node metric.NodeName
}

// newStandIn returns it. Base reads the machine anew and pods are the node's, for their
// images; both may be nil.
func newStandIn(node metric.NodeName, newest *kubeletapi.Newest, facts func() *cluster.Facts,
	base func(context.Context) (*stats.Summary, error), pods func() []*corev1.Pod) *standIn {
	o := kubeletapi.Options{Newest: newest, Facts: facts, Base: base}
	if pods != nil {
		o.Image = func(pod metric.PodRef, container string) string { return imageOf(pods(), pod, container) }
	}
	return &standIn{kubeletapi.NewHandler(o), node}
}

// imageOf returns the image of a container as its pod's status names it; empty if
// nobody knows.
func imageOf(pods []*corev1.Pod, of metric.PodRef, container string) string {
	for _, p := range pods {
		if p.Name != string(of.Name) || p.Namespace != string(of.Namespace) {
			continue
		}
		s := &p.Status
		for _, all := range [...][]corev1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses, s.EphemeralContainerStatuses} {
			for i := range all {
				if all[i].Name == container {
					return all[i].Image
				}
			}
		}
	}
	return ""
}

// local puts it before whoever is on this machine.
func (k *standIn) local(mux *httpserver.Mux) {
	mux.Handle(kubeletapi.ResourcePath, "this node's CPU and memory, as a kubelet has them there", k)
	mux.Handle(kubeletapi.CAdvisorPath, "this node's cgroups, as a kubelet has them there", k)
	mux.Handle(kubeletapi.SummaryPath, "this node's and its pods' use, as a kubelet has it there", k)
}

// handle puts it behind the cluster's door, for the rights that a kubelet asks for.
func (k *standIn) handle(s *server.Server) {
	for _, path := range kubeletapi.Paths() {
		right := server.GetNodeMetrics(string(k.node))
		if path == kubeletapi.SummaryPath {
			right = server.GetNodeStats(string(k.node))
		}
		s.Handle(path, func(*http.Request) []server.Review { return []server.Review{right} }, k)
	}
}

// podCgroups returns what inspects this machine's pod cgroups for whoever asks.
func podCgroups(i *inspect.Inspector, node metric.NodeName, facts func() *cluster.Facts) func(context.Context) (any, error) {
	return func(context.Context) (any, error) {
		tree, err := i.Read()
		if err != nil {
			return nil, fmt.Errorf("read cgroups: %w", err)
		}
		return inspect.Judge(tree, podsOn(node, facts()), time.Now()), nil
	}
}
