package death

import "slices"

// Cause is why something ended.
type Cause string

// The causes. No other is ever given.
const (
	ContainerLimit   Cause = "ContainerLimit"
	PodLimit         Cause = "PodLimit"
	SliceLimit       Cause = "SliceLimit"
	NodeShortage     Cause = "NodeShortage"
	ChildKilled      Cause = "ChildKilled"
	MemoryKill       Cause = "MemoryKill"
	KubeletEviction  Cause = "KubeletEviction"
	StorageLimit     Cause = "StorageLimit"
	AgentEviction    Cause = "AgentEviction"
	APIEviction      Cause = "APIEviction"
	Preempted        Cause = "Preempted"
	TaintEviction    Cause = "TaintEviction"
	NodeShutdown     Cause = "NodeShutdown"
	NodeGone         Cause = "NodeGone"
	LivenessProbe    Cause = "LivenessProbe"
	StartupProbe     Cause = "StartupProbe"
	DeadlineExceeded Cause = "DeadlineExceeded"
	KubeletStopped   Cause = "KubeletStopped"
	Deleted          Cause = "Deleted"
	RuntimeError     Cause = "RuntimeError"
	Crashed          Cause = "Crashed"
	Signalled        Cause = "Signalled"
	Exited           Cause = "Exited"
	Completed        Cause = "Completed"
	Unknown          Cause = "Unknown"
)

// Confidence is how sure a cause is.
type Confidence string

// The confidences. Certain: the component that acted reports it. Likely: the facts fit, and fit nothing else
// that is usual. Undecided: they fit several causes, or who acted left no trace.
const (
	Certain   Confidence = "certain"
	Likely    Confidence = "likely"
	Undecided Confidence = "undecided"
)

// texts are the sentence of a cause, without its subject, and what to do. In advice, NAMESPACE, POD,
// CONTAINER and NODE become names.
type texts struct {
	cause           Cause
	meaning, advice string
}

func textsOf(c Cause) *texts {
	return &table[slices.IndexFunc(table, func(t texts) bool { return t.cause == c })]
}

var table = []texts{
	{ContainerLimit, "killed by the kernel: it reached its own memory limit",
		"Raise limits.memory of the container if it needs that much (`weir resize` shows what fits), or find what grows in it: a cache without a bound, a heap larger than the limit."},
	{PodLimit, "killed by the kernel: its pod reached the pod's memory limit",
		"Raise the pod's limit: spec.resources where it is set, else the limits of its containers. A container that grew without a limit of its own takes the others' memory: give it one."},
	{SliceLimit, "killed by the kernel: a slice that has its pod reached its memory limit",
		"The kubelet sets the limit of the slice of all pods (kubeReserved, systemReserved, evictionHard); others are of the node's administrator. Give the pods of the slice requests that fit what they use (`weir resize`), or raise the limit on node NODE."},
	{NodeShortage, "killed by the kernel: its node ran out of memory",
		"Give the pods of the node requests that fit what they use (`weir resize`), so that fewer share it. The kernel prefers processes that are far above their request: `weir explain eviction --node NODE` shows the node's reserve."},
	{ChildKilled, "goes on, but the kernel killed a process in it for memory",
		"Raise limits.memory of the container, or run fewer processes in it. The kernel kills them one by one on cgroup version 1, and where the kubelet has singleProcessOOMKill."},
	{MemoryKill, "killed for memory: the limit is not known",
		"`dmesg` on node NODE names the limit in the line \"oom-kill:constraint=\"."},
	{KubeletEviction, "evicted by the kubelet: its node ran short of a resource",
		"Give the pod a request that fits what it uses: pods above their request go first. `weir explain eviction --node NODE` shows how near the node is now."},
	{StorageLimit, "evicted by the kubelet: it used more local storage than its limit",
		"Raise limits.ephemeral-storage, or sizeLimit of the volume, or write less to it: logs and files outside of volumes count."},
	{AgentEviction, "evicted by weir's agent: its node ran short of a resource",
		"`weir explain eviction --node NODE` shows the thresholds, the order of the pods and what was done."},
	{APIEviction, "evicted through the Eviction API",
		"`kubectl drain`, an autoscaler of nodes, a descheduler and weir's agent use it: the audit log of the API server names the caller. A PodDisruptionBudget limits how many pods go at a time."},
	{Preempted, "preempted: a pod with a higher priority needed its place",
		"Give the pod a PriorityClass that fits its importance, or the cluster more nodes."},
	{TaintEviction, "deleted because of a taint (NoExecute) that it does not tolerate",
		"`kubectl describe node NODE` shows the taints. not-ready and unreachable are those of a node in trouble; tolerationSeconds of a toleration is how long the pod stays."},
	{NodeShutdown, "stopped by the kubelet: its node was shutting down",
		"Nothing, if that was planned. Controllers start the pod elsewhere."},
	{NodeGone, "its node is gone",
		"See why node NODE left: its cloud provider or its machine has the reason. Controllers start the pod elsewhere."},
	{LivenessProbe, "stopped by the kubelet: its liveness probe failed",
		"`kubectl describe pod -n NAMESPACE POD` has the probe's answers. If the container was only slow, raise timeoutSeconds or failureThreshold, and look at its CPU limit: a throttled container answers late."},
	{StartupProbe, "stopped by the kubelet: its startup probe failed",
		"The container needed longer to start than failureThreshold × periodSeconds of its startup probe allows: raise them, or give it more CPU to start with."},
	{DeadlineExceeded, "stopped by the kubelet: it ran longer than activeDeadlineSeconds",
		"Raise activeDeadlineSeconds of the pod, or find what takes so long."},
	{KubeletStopped, "stopped by the kubelet",
		"`kubectl get events -n NAMESPACE --field-selector involvedObject.name=POD` shows what the kubelet did around it."},
	{Deleted, "deleted by a person or a controller",
		"A rollout, a scale-down, a Job that is over or `kubectl delete` do this: the audit log of the API server names the caller."},
	{RuntimeError, "the container runtime could not run it, or lost it",
		"`kubectl describe pod -n NAMESPACE POD` has the runtime's message; the log of the container runtime on node NODE has more."},
	{Crashed, "crashed",
		"`kubectl logs -n NAMESPACE POD -c CONTAINER --previous` may have its last words; a core dump has the rest."},
	{Signalled, "ended by a signal",
		"The sender is unknown: it may be a process in the pod, someone on the node, or the kernel. Where Events are missing, it may also be the kubelet, after a failed probe. To catch the next one, log kill(2) on node NODE with auditd."},
	{Exited, "exited with an error",
		"`kubectl logs -n NAMESPACE POD -c CONTAINER --previous` has its last words."},
	{Completed, "exited without an error", ""},
	{Unknown, "ended, for an unknown reason",
		"`kubectl describe pod -n NAMESPACE POD` shows what the API server has."},
}
