package eviction

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"
)

// RankedPod is a pod with the keys that order evictions.
type RankedPod struct {
	Pod PodIdentity
	// NoStats is set if the summary does not have the pod. The kubelet evicts such pods first (for
	// process ids: first among the pods of their priority).
	NoStats bool
	// Over is set if the pod uses more than it requests. It is not a key for process ids.
	Over     bool
	Priority int32
	// Usage is the usage of the resource that the node is low on. Over compares it with Request.
	// Excess is the last key: usage minus request. For inodes it is, as in the kubelet, inodes in use
	// minus the requested bytes of ephemeral storage; for process ids it is the number of processes.
	Usage, Request, Excess resource.Quantity
	// Skipped is the reason why the pod is skipped. SkipMessage is the reason for people.
	Skipped     SkipReason
	SkipMessage string
	// Doubt is the reason why the usage is missing or cannot be right; empty if it is usable.
	Doubt string
	// BeforeNextBy is the key that puts the pod before the next one in the ranking.
	BeforeNextBy RankKey

	pod *corev1.Pod
}

// SkipReason is the reason why a pod is not evicted.
type SkipReason string

// The reasons.
const (
	NotSkipped   SkipReason = ""
	SkipCritical SkipReason = "Critical" // the pod is critical: see CriticalReason
	SkipDoubt    SkipReason = "Doubt"    // its usage is missing or cannot be right: RankedPod.Doubt (not with Settings.Parity)
	SkipSelf     SkipReason = "Self"     // the pod runs this code: Input.Self
	SkipBlocked  SkipReason = "Blocked"  // the pod cannot be evicted now: Input.Blocked
)

// RankKey is a key by which pods are ranked. The first key that differs decides.
type RankKey string

// The keys. No signal uses all of them.
const (
	KeyNone      RankKey = "None"      // the pod is the last
	KeyNoStats   RankKey = "NoStats"   // the pod has no statistics, but the next one has
	KeyOver      RankKey = "Over"      // the pod uses more than it requests, but the next one does not
	KeyPriority  RankKey = "Priority"  // its priority is lower
	KeyExcess    RankKey = "Excess"    // its usage exceeds its request by more
	KeyProcesses RankKey = "Processes" // it has more processes
	KeyName      RankKey = "Name"      // all other keys are equal; namespace and name decide
)

// Rank returns the pods in the order of eviction for a threshold, as Decide ranks them once the
// threshold is in force: the first victim first. It returns nil if no pod is evicted for the
// signal, and if there is no summary. The kubelet's order of pods with equal keys is random; this
// order is total.
func (in *Input) Rank(t *Threshold, l DiskLayout) []RankedPod {
	if in.Summary == nil {
		return nil
	}
	return in.rank(t, l, byUID(in.Summary.Pods))
}

func (in *Input) rank(t *Threshold, l DiskLayout, statsByUID map[string]*stats.PodStats) []RankedPod {
	resource := t.Signal.Resource()
	if resource == "" || resource == resourceIO {
		return nil
	}
	list := make([]RankedPod, len(in.Pods))
	for i, pod := range in.Pods {
		r := &list[i]
		r.pod, r.BeforeNextBy = pod, KeyNone
		r.computeKeys(resource, l.partsOn(t.Signal), statsByUID[string(pod.UID)], in.Now)
		r.Skipped, r.SkipMessage = in.skip(pod, t.Hard())
		if r.Doubt != "" && !in.Settings.Parity && r.Skipped != SkipCritical {
			r.Skipped, r.SkipMessage = SkipDoubt, r.Doubt
		}
	}
	order := excessOrder
	if t.Signal == PIDAvailable {
		order = processOrder
	}
	slices.SortFunc(list, func(a, b RankedPod) int {
		c, _ := compareBy(order, &a, &b)
		return c
	})
	for i := range len(list) - 1 {
		_, list[i].BeforeNextBy = compareBy(order, &list[i], &list[i+1])
	}
	return list
}

// skip returns the reason why a pod is skipped independent of its usage, and the reason for people.
func (in *Input) skip(pod *corev1.Pod, hard bool) (SkipReason, string) {
	if reason := CriticalReason(pod); reason != "" {
		return SkipCritical, reason
	}
	if in.Self != "" && pod.UID == in.Self {
		return SkipSelf, "it is weir's own pod"
	}
	if b, ok := in.Blocked[pod.UID]; ok && (b.Hard || !hard) {
		return SkipBlocked, "it cannot be evicted now: " + b.Reason
	}
	return NotSkipped, ""
}

// computeKeys sets the keys from the pod's statistics.
func (r *RankedPod) computeKeys(resource string, parts podParts, s *stats.PodStats, now time.Time) {
	r.Pod, r.Priority = refOf(r.pod), ptr.Deref(r.pod.Spec.Priority, 0)
	if s == nil {
		r.NoStats, r.Doubt = true, "it has no statistics"
		return
	}
	var u podUsage
	beyond := resource
	switch resource {
	case resourceMemory:
		u = memoryUse(s, now)
	case resourceCPU:
		u = cpuUse(s, now)
	case resourcePIDs:
		u = processUse(s)
		r.Usage, r.Excess, r.Doubt = u.sum, u.sum, u.doubt
		return
	default:
		u = diskUse(r.pod, s, parts, resource == resourceInodes)
		beyond = resourceDisk
	}
	r.Usage, r.Doubt = u.sum, u.doubt
	r.Request = requestOf(r.pod, corev1.ResourceName(resource))
	r.Over = r.Usage.Cmp(r.Request) > 0
	less := r.Request
	if beyond != resource {
		less = requestOf(r.pod, corev1.ResourceName(beyond))
	}
	r.Excess = r.Usage.DeepCopy()
	r.Excess.Sub(less)
}

// excessOrder has the keys for memory, disks and CPU, and processOrder those for process ids. If all are equal,
// the name decides.
var (
	excessOrder  = []RankKey{KeyNoStats, KeyOver, KeyPriority, KeyExcess}
	processOrder = []RankKey{KeyPriority, KeyNoStats, KeyProcesses}
)

// compareBy compares two pods by the keys of an order, and returns the key that decides.
func compareBy(order []RankKey, a, b *RankedPod) (int, RankKey) {
	for _, key := range order {
		if c := key.compare(a, b); c != 0 {
			return c, key
		}
	}
	return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name), cmp.Compare(a.Pod.UID, b.Pod.UID)), KeyName
}

// compare compares two pods by one key: the pod that is evicted first is less.
func (k RankKey) compare(a, b *RankedPod) int {
	switch k {
	case KeyNoStats:
		return trueFirst(a.NoStats, b.NoStats)
	case KeyOver:
		return trueFirst(a.Over, b.Over)
	case KeyPriority:
		return cmp.Compare(a.Priority, b.Priority)
	default: // KeyExcess and KeyProcesses
		return b.Excess.Cmp(a.Excess)
	}
}

// byUID returns the statistics of pods by UID. If two entries have one UID, the last one counts.
func byUID(pods []stats.PodStats) map[string]*stats.PodStats {
	m := make(map[string]*stats.PodStats, len(pods))
	for i := range pods {
		m[pods[i].PodRef.UID] = &pods[i]
	}
	return m
}

// podParts are the parts of a pod that are on a file system.
type podParts struct{ rootfs, logs, volumes bool }

// partsOn returns the parts of pods that are on the file system of a disk signal. Pods share image
// layers, which are not measured, so with a split layout nothing is on imagefs.
func (l DiskLayout) partsOn(s Signal) podParts {
	image := s == ImageFsAvailable || s == ImageFsInodesFree
	node := s == NodeFsAvailable || s == NodeFsInodesFree
	switch {
	case l.separate():
		return podParts{rootfs: !node, logs: node, volumes: node}
	case l.split():
		return podParts{rootfs: !image, logs: !image, volumes: !image}
	default:
		return podParts{true, true, true}
	}
}

// podUsage is a pod's usage of a resource.
type podUsage struct {
	sum   resource.Quantity
	doubt string // why the usage is missing or cannot be right
	known bool   // there was at least one figure
}

// addFigure adds a figure as the kubelet does: a missing figure is zero, and a figure too large for
// 63 bits is negative.
func (u *podUsage) addFigure(n *uint64, what string) {
	if n == nil {
		return
	}
	u.known = true
	if *n > math.MaxInt64 && u.doubt == "" {
		u.doubt = fmt.Sprintf("%s of %d is more than there can be", what, *n)
	}
	u.sum.Add(*resource.NewQuantity(int64(*n), resource.BinarySI))
}

// checkKnown sets a doubt if there was no figure.
func (u *podUsage) checkKnown(what string) {
	if !u.known && u.doubt == "" {
		u.doubt = "its statistics have no " + what
	}
}

func (u *podUsage) checkTime(t, now time.Time) {
	if u.doubt == "" {
		u.doubt = timeDoubt(t, now)
	}
}

func memoryUse(s *stats.PodStats, now time.Time) (u podUsage) {
	if m := s.Memory; m != nil {
		u.addFigure(m.WorkingSetBytes, "a working set")
		u.checkTime(m.Time.Time, now)
	}
	u.checkKnown("working set")
	return u
}

func processUse(s *stats.PodStats) (u podUsage) {
	if p := s.ProcessStats; p != nil {
		u.addFigure(p.ProcessCount, "a number of processes")
	}
	u.checkKnown("number of processes")
	return u
}

func cpuUse(s *stats.PodStats, now time.Time) (u podUsage) {
	if c := s.CPU; c != nil {
		u.checkTime(c.Time.Time, now)
		if n := c.UsageNanoCores; n != nil {
			u.known = true
			if *n > math.MaxInt64 {
				u.doubt = fmt.Sprintf("a use of %d nanocores is more than there can be", *n)
			}
			u.sum = *resource.NewScaledQuantity(int64(*n), resource.Nano)
		}
	}
	u.checkKnown("use of processors")
	return u
}

// diskUse returns a pod's usage of a file system: bytes, or inodes.
func diskUse(pod *corev1.Pod, s *stats.PodStats, parts podParts, inodes bool) (u podUsage) {
	what := "used bytes"
	if inodes {
		what = "used inodes"
	}
	add := func(fs *stats.FsStats) {
		switch {
		case fs == nil:
		case inodes:
			u.addFigure(fs.InodesUsed, "a number of inodes")
		default:
			u.addFigure(fs.UsedBytes, "a number of bytes")
		}
	}
	for i := range s.Containers {
		if parts.rootfs {
			add(s.Containers[i].Rootfs)
		}
		if parts.logs {
			add(s.Containers[i].Logs)
		}
	}
	if parts.volumes {
		for i := range pod.Spec.Volumes {
			if !isLocalVolume(&pod.Spec.Volumes[i]) {
				continue
			}
			for k := range s.VolumeStats {
				if s.VolumeStats[k].Name == pod.Spec.Volumes[i].Name {
					add(&s.VolumeStats[k].FsStats)
					break
				}
			}
		}
	}
	if parts != (podParts{}) {
		u.checkKnown(what)
	}
	return u
}

// isLocalVolume reports whether a volume is on the node's file system.
func isLocalVolume(v *corev1.Volume) bool {
	return v.HostPath != nil || v.GitRepo != nil || v.ConfigMap != nil ||
		v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumDefault
}
