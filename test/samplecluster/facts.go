package samplecluster

import (
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Facts returns the API server's facts about a node.
func (n *Node) Facts(ready bool) *cluster.Node {
	f := &cluster.Node{Name: n.name, Ready: ready}
	f.Spec.Set(metric.CPUNodeCapacity, n.cores*1e9)
	f.Spec.Set(metric.CPUNodeAllocatable, n.cores*1e9-1e8)
	f.Spec.Set(metric.MemoryNodeCapacity, n.bytes)
	f.Spec.Set(metric.MemoryNodeAllocatable, n.bytes-256*(1<<20))
	return f
}

// PodFacts returns the API server's facts about a pod. All its containers run. Its label app is its
// name up to the first hyphen. It belongs to a StatefulSet of that name, except for import.
func PodFacts(node, namespace, pod string, containers ...string) *cluster.Pod {
	app, _, _ := strings.Cut(pod, "-")
	f := &cluster.Pod{
		PodRef: metric.PodRef{Namespace: metric.Namespace(namespace), Name: metric.PodName(pod)}, UID: UID(namespace, pod),
		Node: metric.NodeName(node), Phase: cluster.Running, QoS: "Burstable", Labels: map[string]string{"app": app},
		Started: Noon.Add(-30 * time.Hour), KnownAt: Noon.Add(-21 * time.Minute),
	}
	if strings.HasPrefix(pod, app+"-") && app != "import" {
		f.Owner = &cluster.Owner{Kind: "StatefulSet", Name: app}
	}
	for _, name := range containers {
		c := cluster.Container{Name: name, State: cluster.StateRunning, ID: id(namespace, pod, name), StartedAt: Noon.Add(-30 * time.Hour)}
		c.Spec.Set(metric.CPURequest, 2e8)
		c.Spec.Set(metric.CPULimit, 5e8)
		c.Spec.Set(metric.MemoryRequest, 128<<20)
		c.Spec.Set(metric.MemoryLimit, 256<<20)
		f.Containers = append(f.Containers, c)
	}
	return f
}
