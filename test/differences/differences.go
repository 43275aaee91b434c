// Package differences lists in what the answers of api/kubeletapi differ from a kubelet's. Tests compare
// both, and docs/agent-as-kubelet.md has the lists.
package differences

import "strings"

// Difference is a family of /metrics/cadvisor, or a field of /stats/summary, in which an agent and
// the kubelet of its node differ. All others of a kubelet have the same name, labels and meaning
// at the agent.
type Difference struct {
	// Name is that of the family, or the path of the field in JSON with names of system containers
	// as indices and no others: "node.systemContainers[pods].cpu.time". * stands for any characters.
	Name string
	Kind Kind
	Why  string // a sentence
}

// Is reports whether d is about the family or field with this name.
func (d *Difference) Is(name string) bool {
	parts := strings.Split(d.Name, "*")
	rest, ok := strings.CutPrefix(name, parts[0])
	for i, part := range parts[1:] {
		if i == len(parts)-2 {
			return ok && strings.HasSuffix(rest, part)
		}
		var found bool
		_, rest, found = strings.Cut(rest, part)
		ok = ok && found
	}
	return ok && rest == ""
}

// Kind is how two answers differ.
type Kind string

// The kinds of differences.
const (
	NotServed   Kind = "not served"           // only the kubelet has it
	OtherValue  Kind = "another value"        // both have it
	OtherLabels Kind = "other labels"         // both have the value
	Since137    Kind = "from Kubernetes 1.37" // kubelets before 1.37 do not have it
)

const (
	noTaskStats = "Kubelets always serve 0, because nothing in them asks the kernel for statistics of tasks."
	since137    = "cAdvisor has it since the version in Kubernetes 1.37."
	ownMounts   = "An agent sees the file systems that are mounted in its own pod."
	noPressure  = "With cgroup version 1 the kernel has no pressure of cgroups, and a kubelet serves 0."
	ownFaults   = "With cgroup version 1 a kubelet does not count those of the cgroups below, and serves 0 for a pod."
	ownNetwork  = "If the agent does not ask the runtime, as in a DaemonSet, the sandbox is not known and the values are at the pod's cgroup."
)

// CAdvisor are the families that differ, by name. docs/agent-as-kubelet.md lists them.
var CAdvisor = []Difference{
	{"container_cpu_load_average_10s", NotServed, noTaskStats},
	{"container_cpu_load_d_average_10s", NotServed, noTaskStats},
	{"container_creation_time_seconds", Since137, since137},
	{"container_fs_inodes_free", OtherValue, ownMounts},
	{"container_fs_inodes_total", OtherValue, ownMounts},
	{"container_fs_limit_bytes", OtherValue, ownMounts},
	{"container_fs_usage_bytes", OtherValue, ownMounts},
	{"container_memory_events_high_total", Since137, since137},
	{"container_memory_events_max_total", Since137, since137},
	{"container_memory_file_dirty_bytes", Since137, since137},
	{"container_memory_file_writeback_bytes", Since137, since137},
	{"container_memory_pgscan_total", Since137, since137},
	{"container_memory_pgsteal_total", Since137, since137},
	{"container_memory_workingset_refault_anon_total", Since137, since137},
	{"container_memory_workingset_refault_file_total", Since137, since137},
	{"container_network_*", OtherLabels, ownNetwork},
	{"container_oom_events_total", OtherValue, "An agent serves the kernel's count since the cgroup began; a kubelet counts from its own start."},
	{"container_tasks_state", NotServed, noTaskStats},
	{"container_threads", OtherValue, "Of the root cgroup a kubelet serves 0; an agent serves the threads of the machine."},
	{"container_threads_max", OtherValue, "Of the root cgroup a kubelet serves 0; an agent serves the limit of the machine."},
	{"container_ulimits_soft", OtherValue, "An agent serves the limits of the first process in the container's cgroup, which need not be the first of the container."},
	{"machine_*", OtherLabels, "The label machine_id is empty if the agent's pod has no /etc/machine-id."},
}

const (
	notAsked = "Only the runtime knows what images and layers use, and an agent does not ask it."
	unnamed  = "An agent does not look for the cgroup of this daemon. It is in /metrics/cadvisor, by its path."
)

// Summary are the fields of /stats/summary that differ, by path. docs/agent-as-kubelet.md lists them.
var Summary = []Difference{
	{"*.majorPageFaults", OtherValue, ownFaults},
	{"*.pageFaults", OtherValue, ownFaults},
	{"*.io.time", NotServed, noPressure},
	{"*.psi.*", NotServed, noPressure},
	{"*.startTime", OtherValue, "An agent serves when the cgroup was made. A kubelet serves when it accepted the pod, and the runtime's time for a container. These are up to seconds apart."},
	{"node.*.psi.*", OtherValue, "With cgroup version 1 a kubelet serves 0; an agent serves the kernel's figures of the node."},
	{"node.runtime.*.inodesUsed", NotServed, notAsked},
	{"node.runtime.*.usedBytes", NotServed, notAsked},
	{"node.systemContainers[kubelet].*", NotServed, unnamed},
	{"node.systemContainers[runtime].*", NotServed, unnamed},
	{"pods.network.*", NotServed, "Only of pods in the host's network: a kubelet serves the node's traffic there."},
}
