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
	// needs are the metrics for its text, in addition to CPU and memory.
	needs []metric.ID
	// text returns the text of an item, or "" for a missing number.
	text func(*usage.Item) string
}

// columns returns the columns of a resource's table, in order.
func columns(r usage.Resource) []column {
	switch r {
	case usage.Nodes:
		return []column{
			name("NAME", func(it *usage.Item) string { return string(it.Node) }),
			cpu(), share("CPU%", nanocores, metric.CPUNodeUtilization, metric.CPUNodeCapacity),
			memory(), share("MEMORY%", workingSet, metric.MemoryNodeUtilization, metric.MemoryNodeCapacity),
			wide(sized("RSS", metric.MemoryRSS)),
			wide(sized("RX/s", metric.NetworkRxRate)), wide(sized("TX/s", metric.NetworkTxRate)),
			window(), reason(),
		}
	case usage.Pods:
		return []column{
			name("NAMESPACE", func(it *usage.Item) string { return string(it.Namespace) }),
			name("NAME", func(it *usage.Item) string { return string(it.Pod) }),
			cpu(), memory(), running(), wide(node()),
			wide(ratio("CPU/REQUEST", metric.CPUUtilization)), wide(ratio("MEMORY/REQUEST", metric.MemoryUtilization)),
			wide(sized("RSS", metric.MemoryRSS)),
			wide(sized("RX/s", metric.NetworkRxRate)), wide(sized("TX/s", metric.NetworkTxRate)),
			restarts(), window(), reason(),
		}
	case usage.Containers:
		return []column{
			name("NAMESPACE", func(it *usage.Item) string { return string(it.Namespace) }),
			name("POD", func(it *usage.Item) string { return string(it.Pod) }),
			name("NAME", func(it *usage.Item) string { return it.Container }),
			cpu(), memory(), wide(node()),
			wide(ratio("CPU/REQUEST", metric.CPUUtilization)), wide(ratio("MEMORY/REQUEST", metric.MemoryUtilization)),
			wide(sized("RSS", metric.MemoryRSS)),
			restarts(), window(), reason(),
		}
	default:
		return []column{
			node(),
			name("NAME", func(it *usage.Item) string { return string(it.Cgroup) }),
			cpu(), memory(), wide(sized("RSS", metric.MemoryRSS)), wide(count("PROCESSES", metric.ProcessCount)),
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
	return column{title: title, text: text}
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

// running is the column of how many containers of a pod run, if one that should run does not.
func running() column {
	return column{title: "CONTAINERS", rare: true, text: func(it *usage.Item) string {
		if it.Partial == nil {
			return ""
		}
		return fmt.Sprintf("%d of %d", it.Partial.Running, it.Partial.Containers)
	}}
}

// reason is the column that explains why numbers are missing.
func reason() column {
	return column{title: "REASON", wide: true, text: reasonText}
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

func value(title string, id metric.ID, format func(float64) string) column {
	return column{title: title, needs: []metric.ID{id}, text: amount(func(it *usage.Item) (float64, bool) {
		v, ok := it.Metrics[id.String()]
		return v, ok
	}, format)}
}

func sized(title string, id metric.ID) column { return value(title, id, humanize.Bytes) }
func ratio(title string, id metric.ID) column { return value(title, id, humanize.Percent) }
func count(title string, id metric.ID) column {
	return value(title, id, func(v float64) string { return humanize.Decimal(v, 0) })
}

// share is the column of a percentage of the node's allocatable amount, or of its capacity if that
// is unknown.
func share(title string, used func(*usage.Item) (float64, bool), utilization, capacity metric.ID) column {
	return column{title: title, needs: []metric.ID{utilization, capacity}, text: amount(func(it *usage.Item) (float64, bool) {
		if v, ok := it.Metrics[utilization.String()]; ok {
			return v, true
		}
		v, ok := used(it)
		all := it.Metrics[capacity.String()]
		return v / all, ok && all != 0
	}, humanize.Percent)}
}
