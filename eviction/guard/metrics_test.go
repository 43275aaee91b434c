package guard

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
)

func TestMetricsOfTheLastRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.pod("app", gib)
		n.free, n.stall = 2*gib, 12.5
		r := prometheus.NewPedanticRegistry()
		config := eviction.ThresholdConfig{
			EvictionHard: map[string]string{"memory.available": "1Gi", "imagefs.available": "5%"},
			EvictionSoft: map[string]string{"memory.available": "3Gi"}, EvictionSoftGracePeriod: map[string]string{"memory.available": "30s"},
			Pressure: []string{"memory.pressure.some.avg10>20"},
		}
		g := n.guard(execute.Observe, config, func(o *Options) { o.Registerer = r })
		if families, err := r.Gather(); err != nil || len(families) != 4 {
			t.Errorf("before the first round: %v, %v; want two counters and two histograms", families, err)
		}
		n.timer(g)
		if err := testutil.GatherAndCompare(r, strings.NewReader(`
# HELP weir_eviction_condition Whether the node is under this pressure by this agent's thresholds; the node's own conditions may differ.
# TYPE weir_eviction_condition gauge
weir_eviction_condition{condition="MemoryPressure"} 1
# HELP weir_eviction_rounds_total Rounds of reading the node and deciding, by what started them.
# TYPE weir_eviction_rounds_total counter
weir_eviction_rounds_total{source="poll"} 0
weir_eviction_rounds_total{source="threshold"} 0
weir_eviction_rounds_total{source="timer"} 1
weir_eviction_rounds_total{source="trigger"} 0
# HELP weir_eviction_signal_available Available amount of an eviction signal, in bytes, inodes or process ids.
# TYPE weir_eviction_signal_available gauge
weir_eviction_signal_available{signal="memory.available"} 2.147483648e+09
weir_eviction_signal_available{signal="nodefs.available"} 5.36870912e+10
# HELP weir_eviction_signal_capacity Capacity of an eviction signal, in bytes, inodes or process ids.
# TYPE weir_eviction_signal_capacity gauge
weir_eviction_signal_capacity{signal="memory.available"} 8.589934592e+09
weir_eviction_signal_capacity{signal="nodefs.available"} 1.073741824e+11
# HELP weir_eviction_signal_distance Distance of a signal from its threshold, in its unit; zero or less if the threshold is met.
# TYPE weir_eviction_signal_distance gauge
weir_eviction_signal_distance{kind="hard",signal="memory.available"} 1.073741824e+09
weir_eviction_signal_distance{kind="hard",signal="memory.pressure.some.avg10"} 7.5
weir_eviction_signal_distance{kind="soft",signal="memory.available"} -1.073741824e+09
# HELP weir_eviction_signal_stall_percent Share of the time in which tasks stall, in percent, for pressure signals with a threshold.
# TYPE weir_eviction_signal_stall_percent gauge
weir_eviction_signal_stall_percent{signal="memory.pressure.some.avg10"} 12.5
# HELP weir_eviction_signal_threshold Threshold of a signal at which pods are evicted, in its unit.
# TYPE weir_eviction_signal_threshold gauge
weir_eviction_signal_threshold{kind="hard",signal="memory.available"} 1.073741824e+09
weir_eviction_signal_threshold{kind="hard",signal="memory.pressure.some.avg10"} 20
weir_eviction_signal_threshold{kind="soft",signal="memory.available"} 3.221225472e+09
`), "weir_eviction_condition", "weir_eviction_rounds_total", "weir_eviction_signal_available", "weir_eviction_signal_capacity",
			"weir_eviction_signal_distance", "weir_eviction_signal_stall_percent", "weir_eviction_signal_threshold"); err != nil {
			t.Error(err)
		}
	})
}
