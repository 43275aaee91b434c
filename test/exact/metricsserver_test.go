package exact

import (
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// metricsServer is the rule of metrics-server, to compare with: the last two
// points of each container by pod and container name, from
// /metrics/resource alone. A later start or a smaller counter ends a series. A
// pod is absent if one of its containers is, or has a CPU or memory of 0. A nil metricsServer does nothing.
type metricsServer struct {
	last, before map[string]map[string]point // by pod, then by container
}

// point is what metrics-server keeps of a container's lines. Times are in
// nanoseconds.
type point struct {
	start, stamp int64
	cpu          float64 // nanoseconds of CPU time
	memory       float64 // bytes
}

// leastFresh is the least age at which a container that started within the
// resolution has a rate since its start.
const leastFresh = 10 * time.Second

// store reads the payload of one round; nil if there was no answer.
func (m *metricsServer) store(payload []byte, resolution time.Duration) {
	if m == nil {
		return
	}
	now, before := parsePoints(payload), map[string]map[string]point{}
	for pod, containers := range now {
		before[pod] = map[string]point{}
		for _, p := range containers {
			if p.cpu == 0 || p.memory == 0 {
				delete(now, pod)
			}
		}
		for name, p := range containers {
			age := p.stamp - p.start
			last, known := m.last[pod][name]
			switch previous, had := m.before[pod][name]; {
			case age >= int64(leastFresh) && age < int64(resolution):
				before[pod][name] = point{start: p.start, stamp: p.start}
			case !known || p.start >= last.stamp:
			case p.stamp > last.stamp:
				before[pod][name] = last
			case had && previous.stamp < p.stamp:
				before[pod][name] = previous
			}
		}
	}
	m.last, m.before = now, before
}

// parsePoints returns the points of a payload. Of two lines with one name, the
// later counts.
func parsePoints(payload []byte) map[string]map[string]point {
	pods := map[string]map[string]point{}
	for line := range strings.Lines(string(payload)) {
		family, rest, _ := strings.Cut(line, "{")
		labels, numbers, _ := strings.Cut(rest, "} ")
		if !strings.HasPrefix(family, "container_") {
			continue
		}
		quoted, fields := strings.Split(labels, `"`), strings.Fields(numbers) // container, namespace, pod
		pod, name := quoted[3]+"/"+quoted[5], quoted[1]
		if pods[pod] == nil {
			pods[pod] = map[string]point{}
		}
		p := pods[pod][name]
		v, _ := strconv.ParseFloat(fields[0], 64)
		switch family {
		case "container_start_time_seconds":
			p.start = int64(v * 1e9)
		case "container_memory_working_set_bytes":
			p.memory = v
		case "container_cpu_usage_seconds_total":
			ms, _ := strconv.ParseInt(fields[1], 10, 64)
			p.cpu, p.stamp = v*1e9, ms*1e6
		}
		pods[pod][name] = p
	}
	return pods
}

// usage returns the rates of a pod's containers; nil if one of them has none.
func (m *metricsServer) usage(pod string) map[string]claim {
	rates := map[string]claim{}
	for name, last := range m.last[pod] {
		before, ok := m.before[pod][name]
		if !ok || last.start < before.start || last.cpu < before.cpu || last.stamp <= before.stamp {
			return nil
		}
		length := time.Duration(last.stamp - before.stamp)
		rates[name] = claim{
			rate: (last.cpu - before.cpu) / length.Seconds(), window: metric.Window{End: last.stamp, Length: length},
			start: last.start, clock: time.Millisecond,
		}
	}
	return rates
}
