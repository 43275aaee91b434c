package topcmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// column is one column of a table.
type column struct {
	title string
	// wide columns appear only in wide tables.
	wide bool
	// rare columns appear only if an item has a text for them.
	rare bool
	// blank columns are empty for an item without a text. Others have a mark.
	blank bool
	// names are the columns that stay when the others scroll.
	names bool
	// needs are the metrics for its text, in addition to CPU and memory.
	needs []metric.ID
	// text returns the text of an item, or "" for a missing number.
	text func(*usage.Item) string
	// tint returns the tint of a text. It may be nil.
	tint func(*usage.Item) humanize.Tint
}

// columns returns the columns of a resource's table, in order.
func columns(r usage.Resource) []column {
	switch r {
	case usage.Nodes:
		return []column{
			name("NAME", func(it *usage.Item) string { return string(it.Node) }),
			cpu(), cpuShare.column("CPU%", metric.CPUNodeUtilization, metric.CPUNodeCapacity),
			memory(), memoryShare.column("MEMORY%", metric.MemoryNodeUtilization, metric.MemoryNodeCapacity),
			wide(sized("RSS", metric.MemoryRSS)),
			wide(sized("RX/s", metric.NetworkRxRate)), wide(sized("TX/s", metric.NetworkTxRate)), storage(), oom(),
			window(), atRisk(), reason(),
		}
	case usage.Pods:
		return []column{
			name("NAMESPACE", func(it *usage.Item) string { return string(it.Namespace) }),
			name("NAME", func(it *usage.Item) string { return string(it.Pod) }),
			cpu(), memory(), running(), resized(),
			cpuRequest(), cpuLimit(), memoryRequest(), memoryLimit(), restarts(), oom(),
			wide(sized("RX/s", metric.NetworkRxRate)), wide(sized("TX/s", metric.NetworkTxRate)),
			wide(sized("RSS", metric.MemoryRSS)), storage(), wide(node()), window(), atRisk(), reason(),
		}
	case workloads:
		return []column{
			name("NAMESPACE", func(it *usage.Item) string { return string(it.Namespace) }),
			name("NAME", func(it *usage.Item) string { return strings.TrimPrefix(it.Workload.Kind+"/"+it.Workload.Name, "/") }),
			cpu(), memory(), podsMeasured(),
			cpuRequest(), cpuLimit(), memoryRequest(), memoryLimit(), restarts(), oom(),
			wide(sized("RX/s", metric.NetworkRxRate)), wide(sized("TX/s", metric.NetworkTxRate)),
			wide(sized("RSS", metric.MemoryRSS)), storage(), reason(),
		}
	case usage.Containers:
		return []column{
			name("NAMESPACE", func(it *usage.Item) string { return string(it.Namespace) }),
			name("POD", func(it *usage.Item) string { return string(it.Pod) }),
			name("NAME", func(it *usage.Item) string { return it.Container }),
			cpu(), memory(), resized(),
			cpuRequest(), cpuLimit(), memoryRequest(), memoryLimit(), restarts(), oom(),
			wide(sized("RSS", metric.MemoryRSS)), storage(), wide(node()), window(), reason(),
		}
	default:
		return []column{
			node(),
			name("NAME", func(it *usage.Item) string { return string(it.Cgroup) }),
			cpu(), memory(), cpuLimit(), memoryLimit(), wide(sized("RSS", metric.MemoryRSS)), wide(count("PROCESSES", metric.ProcessCount)),
			wide(name("POD", func(it *usage.Item) string {
				if it.Pod == "" {
					return "-"
				}
				return strings.TrimSuffix(string(it.Namespace)+"/"+string(it.Pod)+"/"+it.Container, "/")
			})),
			window(), reason(),
		}
	}
}

func wide(c column) column { c.wide = true; return c }

func name(title string, text func(*usage.Item) string) column {
	return column{title: title, names: true, text: text}
}

func node() column {
	return name("NODE", func(it *usage.Item) string { return string(it.Node) })
}

func cpu() column {
	return column{title: "CPU(cores)", text: amount(nanocores, humanize.Cores)}
}

func memory() column {
	return column{title: "MEMORY(bytes)", text: amount(workingSet, humanize.Bytes)}
}

func nanocores(it *usage.Item) (float64, bool) {
	if it.CPU == nil {
		return 0, false
	}
	return float64(it.CPU.Nanocores), true
}

func workingSet(it *usage.Item) (float64, bool) {
	if it.Memory == nil {
		return 0, false
	}
	return float64(it.Memory.WorkingSetBytes), true
}

// amount formats a number of an item. The result is "" if there is none.
func amount(value func(*usage.Item) (float64, bool), format func(float64) string) func(*usage.Item) string {
	return func(it *usage.Item) string {
		v, ok := value(it)
		if !ok {
			return ""
		}
		return format(v)
	}
}

func window() column {
	return column{title: "WINDOW", wide: true, text: func(it *usage.Item) string {
		if it.CPU == nil || it.CPU.WindowSeconds == 0 {
			return ""
		}
		w := humanize.Seconds(it.CPU.WindowSeconds)
		if it.CPU.LastKnown {
			w += " (last known)"
		}
		return w
	}}
}

func restarts() column {
	return column{title: "RESTARTS", wide: true, text: func(it *usage.Item) string {
		if it.Restarts == nil {
			return ""
		}
		return strconv.Itoa(int(*it.Restarts))
	}}
}

// oom is the column of how often the kernel killed for memory in the last hour, if it did.
func oom() column {
	return column{title: "OOM", wide: true, rare: true, blank: true, text: func(it *usage.Item) string {
		if it.OOMKills == 0 {
			return ""
		}
		return humanize.Number(it.OOMKills)
	}, tint: func(*usage.Item) humanize.Tint { return humanize.Red }}
}

// running is the column of how many containers of a pod run, if one that should run does not.
func running() column {
	return column{title: "CONTAINERS", rare: true, blank: true, tint: alwaysAmber, text: func(it *usage.Item) string {
		if it.Partial == nil {
			return ""
		}
		return fmt.Sprintf("%d of %d", it.Partial.Running, it.Partial.Containers)
	}}
}

// resized is the column of requests and limits that a resize in place has not applied, if some are.
func resized() column {
	return column{title: "RESIZE", rare: true, blank: true, tint: alwaysAmber, text: func(it *usage.Item) string {
		if it.Resize == nil {
			return ""
		}
		return humanize.Printable(it.Resize.Message)
	}}
}

// atRisk is the column of why numbers may soon be missing or wrong, if some may.
func atRisk() column {
	return column{title: "AT RISK", rare: true, blank: true, tint: alwaysAmber, text: func(it *usage.Item) string { return it.AtRisk }}
}

func alwaysAmber(*usage.Item) humanize.Tint { return humanize.Amber }

const reasonTitle = "REASON"

// podsMeasured is the column of how many pods of a workload have CPU and memory.
func podsMeasured() column {
	return column{title: "PODS", blank: true, text: func(it *usage.Item) string {
		if it.Pods == nil {
			return ""
		}
		return countOf(it.Pods.Measured, it.Pods.Total)
	}, tint: func(it *usage.Item) humanize.Tint {
		if isIncomplete(it) {
			return humanize.Amber
		}
		return humanize.Plain
	}}
}

// reason is the column that explains why numbers are missing.
func reason() column {
	return column{title: reasonTitle, wide: true, blank: true, text: reasonText}
}

// reasonText explains why numbers of an item are missing. Groups with the same reason share a sentence.
func reasonText(it *usage.Item) string {
	var messages, groups []string
	if p := it.Partial; p != nil {
		messages, groups = append(messages, p.Message), append(groups, "")
	}
	for _, r := range it.Reasons {
		text := r.Reason + " (" + r.Message + ")"
		if i := slices.Index(messages, text); i >= 0 {
			groups[i] += "," + r.Group
			continue
		}
		messages, groups = append(messages, text), append(groups, r.Group)
	}
	for i := range messages {
		messages[i] = strings.TrimSpace(groups[i] + " " + messages[i])
	}
	return strings.Join(messages, "; ")
}

// mainReasons returns the reasons of CPU and memory. Others are about optional columns.
func mainReasons(all []usage.GroupReason) (reasons []usage.GroupReason) {
	for _, r := range all {
		if r.Group == metric.CPU.String() || r.Group == metric.Memory.String() {
			reasons = append(reasons, r)
		}
	}
	return reasons
}

func value(title string, id metric.ID, format func(float64) string) column {
	return column{title: title, needs: []metric.ID{id}, text: amount(valueOf(id), format)}
}

// valueOf returns the function that reads a metric of an item.
func valueOf(id metric.ID) func(*usage.Item) (float64, bool) {
	return func(it *usage.Item) (float64, bool) {
		v, ok := it.Metrics[id.String()]
		return v, ok
	}
}

func sized(title string, id metric.ID) column { return value(title, id, humanize.Bytes) }
func ratio(title string, id metric.ID) column { return value(title, id, humanize.Percent) }
func count(title string, id metric.ID) column {
	return value(title, id, func(v float64) string { return humanize.Decimal(v, 0) })
}

// storage is the column of ephemeral storage, where a source of weir's has it.
func storage() column {
	c := wide(sized("EPHEMERAL-STORAGE", metric.EphemeralStorageUsage))
	c.rare = true
	return c
}

func cpuRequest() column    { return wide(ratio("CPU/REQUEST", metric.CPUUtilization)) }
func memoryRequest() column { return wide(ratio("MEMORY/REQUEST", metric.MemoryUtilization)) }
func cpuLimit() column      { return wide(cpuShare.column("CPU/LIMIT", metric.CPULimit)) }
func memoryLimit() column   { return wide(memoryShare.column("MEMORY/LIMIT", metric.MemoryLimit)) }

// limitShare is a share of a limit. The limit of a node is its allocatable amount, or its capacity if
// that is unknown.
type limitShare struct {
	used                         func(*usage.Item) (float64, bool)
	utilization, capacity, limit metric.ID
}

var (
	cpuShare    = &limitShare{nanocores, metric.CPUNodeUtilization, metric.CPUNodeCapacity, metric.CPULimit}
	memoryShare = &limitShare{workingSet, metric.MemoryNodeUtilization, metric.MemoryNodeCapacity, metric.MemoryLimit}
)

func (l *limitShare) value(it *usage.Item) (float64, bool) {
	if v, ok := it.Metrics[l.utilization.String()]; ok {
		return v, true
	}
	limit, ok := it.Metrics[l.capacity.String()]
	if !ok {
		limit = it.Metrics[l.limit.String()]
	}
	v, ok := l.used(it)
	return v / limit, ok && limit > 0
}

// column returns the column of the share, which needs these metrics. A high share has a tint.
func (l *limitShare) column(title string, needs ...metric.ID) column {
	return column{title: title, needs: needs, text: amount(l.value, humanize.Percent), tint: func(it *usage.Item) humanize.Tint {
		switch v, _ := l.value(it); {
		case v >= 0.9:
			return humanize.Red
		case v >= 0.75:
			return humanize.Amber
		}
		return humanize.Plain
	}}
}
