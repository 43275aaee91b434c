package manager

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-metrics/weir/metric"
)

// nodeCollector has the metrics of each node that is read, so that alerts can name the node. They
// are gauges without buckets: three series a node.
type nodeCollector struct {
	status              func() []SourceStatus
	up, duration, ahead *prometheus.Desc
}

func newNodeCollector(status func() []SourceStatus) *nodeCollector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"node"}, nil)
	}
	return &nodeCollector{
		status:   status,
		up:       desc("weir_node_up", "1 if the last read of any source of the node brought numbers, else 0."),
		duration: desc("weir_node_read_duration_seconds", "Time the last read of the node took, of its slowest source."),
		ahead:    desc("weir_node_clock_ahead_seconds", "How far the node's clock is ahead of weir's, to about a second; negative if it is behind."),
	}
}

func (c *nodeCollector) Describe(to chan<- *prometheus.Desc) {
	to <- c.up
	to <- c.duration
	to <- c.ahead
}

// nodeState is the state of all sources of one node.
type nodeState struct {
	up, clockKnown  bool
	duration, ahead float64 // in seconds
}

func (c *nodeCollector) Collect(to chan<- prometheus.Metric) {
	nodes := map[metric.NodeName]nodeState{}
	for _, s := range c.status() {
		if s.Unread != nil || s.Rounds == 0 || s.Node == "" {
			continue
		}
		n := nodes[s.Node]
		n.up = n.up || s.Reached
		n.duration = max(n.duration, s.Took.Seconds())
		if s.ClockKnown {
			n.clockKnown, n.ahead = true, s.ClockAhead.Seconds()
		}
		nodes[s.Node] = n
	}
	for name, n := range nodes {
		up := 0.0
		if n.up {
			up = 1
		}
		to <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, up, string(name))
		to <- prometheus.MustNewConstMetric(c.duration, prometheus.GaugeValue, n.duration, string(name))
		if n.clockKnown {
			to <- prometheus.MustNewConstMetric(c.ahead, prometheus.GaugeValue, n.ahead, string(name))
		}
	}
}
