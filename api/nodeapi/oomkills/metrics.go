package oomkills

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
)

// The bounds of the series. Kills of further workloads are counted without a name, and of pods the newest
// kills are shown.
const (
	maxWorkloads = 500
	maxPods      = 200
)

var lastDesc = prometheus.NewDesc("weir_oom_kill_timestamp_seconds",
	"When the kernel last killed in a pod of this node, of the last hour.", []string{"scope", "namespace", "pod", "container"}, nil)

// collector counts kills by workload, and shows which pods they are of.
type collector struct {
	total     *prometheus.CounterVec
	kills     func() []endlog.Kill // the oldest first
	workloads map[[4]string]bool
}

func newCollector(kills func() []endlog.Kill) *collector {
	return &collector{kills: kills, workloads: map[[4]string]bool{}, total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_oom_kills_total",
		Help: "How often the kernel killed processes of pods of this node for memory, by whose limit: container, pod, slice, node; child if the container went on. Those of a group are killed together, which counts once.",
	}, []string{"scope", "namespace", "workload_kind", "workload"})}
}

// count counts a kill. Only one goroutine may call it.
func (c *collector) count(k *endlog.Kill, owner cluster.Owner) {
	labels := [4]string{string(k.Scope), string(k.Namespace), owner.Kind, owner.Name}
	if !c.workloads[labels] {
		if len(c.workloads) >= maxWorkloads {
			labels = [4]string{string(k.Scope)}
		}
		c.workloads[labels] = true
	}
	c.total.WithLabelValues(labels[:]...).Add(float64(k.New))
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	c.total.Describe(to)
	to <- lastDesc
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	c.total.Collect(to)
	seen := map[[4]string]bool{}
	for _, k := range slices.Backward(c.kills()) { // the newest first
		labels := [4]string{string(k.Scope), string(k.Namespace), string(k.Pod), k.Container}
		if k.Pod == "" || seen[labels] || len(seen) >= maxPods {
			continue
		}
		seen[labels] = true
		to <- prometheus.MustNewConstMetric(lastDesc, prometheus.GaugeValue, float64(k.At.UnixMilli())/1000, labels[:]...)
	}
}
