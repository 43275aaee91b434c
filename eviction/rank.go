package eviction

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Ranked is a pod with the keys of its place among those to be evicted.
type Ranked struct {
	Pod PodRef
	// NoStats: the summary does not have the pod. The kubelet then puts it first (for
	// process ids: first within its priority).
	NoStats bool
	// Over: it uses more than it requests. Not a key for process ids.
	Over     bool
	Priority int32
	// Usage is of what the node is low on, Request what Over compares it with, and
	// Excess what the last key compares: usage less request, but inodes in use less the
	// bytes of ephemeral storage requested, as the kubelet has it; the number of processes.
	Usage, Request, Excess resource.Quantity
	// Passed is why the pod is not evicted though its turn came, or would come.
	Passed Pass
	// Doubt is why its usage is missing or cannot be right; empty if it can.
	Doubt string
	// Blocked is why it cannot be asked to go, with PassBlocked.
	Blocked string
	// Before is the key that puts it before the next in the ranking.
	Before Key

	pod *corev1.Pod
}

// Pass is why a pod is passed over.
type Pass uint8

// The reasons.
const (
	NotPassed    Pass = iota
	PassCritical      // it is critical: see CriticalOf
	PassDoubt         // its usage is missing or cannot be right: Ranked.Doubt (not with Settings.Parity)
	PassSelf          // it is the pod that decides: Input.Self
	PassBlocked       // it cannot be asked to go: Ranked.Blocked
)

// Key is what pods are ranked by, the first difference deciding.
type Key uint8

// The keys, not all for each signal.
const (
	KeyNone      Key = iota // it is the last
	KeyNoStats              // it has no statistics, the next has
	KeyOver                 // it uses more than it requests, the next does not
	KeyPriority             // its priority is lower
	KeyExcess               // it uses more beyond its request
	KeyProcesses            // it has more processes
	KeyName                 // nothing tells them apart; namespace and name order them
)

// Rank returns the pods in the order in which they would be evicted for a signal, first
// to go first; nil for a signal that nobody is evicted for. Of pods nothing tells apart the
// kubelet takes any; here the order is total. parity is Settings.Parity. Input.Rank also knows
// who is passed over for a reason of weir's own.
func Rank(s Signal, l Layout, pods []*corev1.Pod, podStats []stats.PodStats, now time.Time, parity bool) []Ranked {
	return rank(s, l, pods, byUID(podStats), now, parity)
}

// Rank returns the pods in the order in which they would be evicted for a threshold, as
// Decide ranks them once it is in force; nil for a signal that nobody is evicted for, or
// without a summary.
func (in *Input) Rank(t *Threshold, l Layout) []Ranked {
	if in.Summary == nil {
		return nil
	}
	return in.rank(t, l, byUID(in.Summary.Pods))
}

func (in *Input) rank(t *Threshold, l Layout, statsByUID map[string]*stats.PodStats) []Ranked {
	list := rank(t.Signal, l, in.Pods, statsByUID, in.Now, in.Settings.Parity)
	for i := range list {
		r := &list[i]
		b, blocked := in.Blocked[r.pod.UID]
		switch {
		case r.Passed != NotPassed:
		case in.Self != "" && r.pod.UID == in.Self:
			r.Passed = PassSelf
		case blocked && (b.Hard || !t.Hard()):
			r.Passed, r.Blocked = PassBlocked, b.Why
		}
	}
	return list
}

func rank(s Signal, l Layout, pods []*corev1.Pod, statsByUID map[string]*stats.PodStats, now time.Time, parity bool) []Ranked {
	of := s.Resource()
	if of == "" || of == resourceIO {
		return nil
	}
	list := make([]Ranked, len(pods))
	for i, pod := range pods {
		list[i].pod = pod
		list[i].fill(of, l.partsOn(s), statsByUID[string(pod.UID)], now)
		if CriticalOf(pod) != NotCritical {
			list[i].Passed = PassCritical
		} else if list[i].Doubt != "" && !parity {
			list[i].Passed = PassDoubt
		}
	}
	compare := byExcess
	if s == PIDAvailable {
		compare = byProcesses
	}
	slices.SortFunc(list, func(a, b Ranked) int {
		c, _ := compare(&a, &b)
		return c
	})
	for i := range len(list) - 1 {
		_, list[i].Before = compare(&list[i], &list[i+1])
	}
	return list
}

// fill computes the keys.
func (r *Ranked) fill(of string, on parts, s *stats.PodStats, now time.Time) {
	r.Pod, r.Priority = refOf(r.pod), priority(r.pod)
	if s == nil {
		r.NoStats, r.Doubt = true, "it has no statistics"
		return
	}
	var u use
	beyond := of
	switch of {
	case resourceMemory:
		u = memoryUse(s, now)
	case resourceCPU:
		u = cpuUse(s, now)
	case resourcePIDs:
		u = processUse(s)
		r.Usage, r.Excess, r.Doubt = u.sum, u.sum, u.doubt
		return
	default:
		u = diskUse(r.pod, s, on, of == resourceInodes)
		beyond = resourceDisk
	}
	r.Usage, r.Doubt = u.sum, u.doubt
	r.Request = requestOf(r.pod, corev1.ResourceName(of))
	r.Over = r.Usage.Cmp(r.Request) > 0
	less := r.Request
	if beyond != of {
		less = requestOf(r.pod, corev1.ResourceName(beyond))
	}
	r.Excess = r.Usage.DeepCopy()
	r.Excess.Sub(less)
}

// byExcess orders for memory, disks and processors.
func byExcess(a, b *Ranked) (int, Key) {
	if c := first(a.NoStats, b.NoStats); c != 0 {
		return c, KeyNoStats
	}
	if c := first(a.Over, b.Over); c != 0 {
		return c, KeyOver
	}
	if c := cmp.Compare(a.Priority, b.Priority); c != 0 {
		return c, KeyPriority
	}
	if c := b.Excess.Cmp(a.Excess); c != 0 {
		return c, KeyExcess
	}
	return byName(a, b), KeyName
}

// byProcesses orders for process ids.
func byProcesses(a, b *Ranked) (int, Key) {
	if c := cmp.Compare(a.Priority, b.Priority); c != 0 {
		return c, KeyPriority
	}
	if c := first(a.NoStats, b.NoStats); c != 0 {
		return c, KeyNoStats
	}
	if c := b.Excess.Cmp(a.Excess); c != 0 {
		return c, KeyProcesses
	}
	return byName(a, b), KeyName
}

func byName(a, b *Ranked) int {
	return cmp.Or(
		cmp.Compare(a.Pod.Namespace, b.Pod.Namespace),
		cmp.Compare(a.Pod.Name, b.Pod.Name),
		cmp.Compare(a.Pod.UID, b.Pod.UID),
	)
}

// byUID returns the statistics of pods by UID. Of two entries with one UID the last counts.
func byUID(pods []stats.PodStats) map[string]*stats.PodStats {
	m := make(map[string]*stats.PodStats, len(pods))
	for i := range pods {
		m[pods[i].PodRef.UID] = &pods[i]
	}
	return m
}
