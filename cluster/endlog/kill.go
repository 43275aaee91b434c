package endlog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Scope is whose memory limit had the kernel kill processes, or Child.
type Scope string

// The scopes. Slice is a cgroup above the pods, Node the whole machine. Child means that the kernel killed
// processes of a container that goes on, at whichever limit.
const (
	InContainer Scope = "container"
	InPod       Scope = "pod"
	InSlice     Scope = "slice"
	InNode      Scope = "node"
	Child       Scope = "child"
)

// Limits are the scopes that have a limit. Each has a text in explain/death (reached) and in api/nodeapi/oomkills
// (eventMessage).
var Limits = [...]Scope{InContainer, InPod, InSlice, InNode}

// Doubt is why the limit of a Kill is not certain. The zero Doubt is none.
type Doubt string

// The doubts.
const (
	// Earlier means that the limit was reached some seconds before the kill was counted.
	Earlier Doubt = "earlier"
	// Several means that several limits, or several kills, fit.
	Several Doubt = "several"
	// Uncounted means that the kernel does not count whose limit was reached (Linux before 5.2).
	Uncounted Doubt = "uncounted"
	// Late means that the agent reported the kill of a child, and that the run ended soon after.
	Late Doubt = "late"
	// Unrecognized means that the agent is newer than this weir, and found a limit that this weir does not know.
	Unrecognized Doubt = "unrecognized"
)

// Kill is what an agent read of the kernel's counters about processes of one pod that were killed for
// memory. Its fields are the JSON of the agents' API.
type Kill struct {
	// UID is that of the pod's cgroup: see cluster.Pod.ReportedUID.
	UID metric.PodUID `json:"uid"`
	// Namespace, Pod and Container are empty if the agent does not know them.
	Namespace metric.Namespace `json:"namespace,omitempty"`
	Pod       metric.PodName   `json:"pod,omitempty"`
	Container string           `json:"container,omitempty"`
	// ContainerID is empty if the container's cgroup was gone when the agent read it.
	ContainerID metric.ContainerID `json:"containerID,omitempty"`
	// Scope, Limit and Slice are one fact: see SetLimit.
	Scope Scope `json:"scope"`
	// Limit is the scope of the limit that was reached, for a Child too. It is empty if the pod's limit and
	// one of a container were both reached, and on cgroup version 1, which does not count that.
	Limit Scope `json:"limit,omitempty"`
	// Slice is the path of the cgroup whose limit was reached, if Limit is InSlice.
	Slice metric.CgroupPath `json:"slice,omitempty"`
	// Inner means, if Limit is InContainer, that it is the limit of a cgroup in the container.
	Inner bool `json:"inner,omitempty"`
	// NUMA means, if Limit is InNode, that only the NUMA nodes that the process may use had no memory left.
	NUMA bool `json:"numa,omitempty"`
	// Logged means that the kernel's log has the limit. The counters show InNode only by what they lack.
	Logged bool  `json:"logged,omitempty"`
	Doubt  Doubt `json:"doubt,omitempty"`
	// Processes is how many were killed, Whole that they were killed together (memory.oom.group).
	Processes uint64 `json:"processes"`
	Whole     bool   `json:"whole,omitempty"`
	// Process is the largest of them that the kernel's log names; nil if the log was not read.
	Process *Process `json:"process,omitempty"`
	// The counters rose after After, and at At they had risen, by the node's clock.
	After time.Time `json:"after"`
	At    time.Time `json:"at"`
	// Files means that files in memory that are in no container are a considerable part of the pod's limit.
	Files bool `json:"-"`
	// New is how many kills are new in a Kill that an agent found just now. Processes that were killed
	// together count once.
	New uint64 `json:"-"`

	node metric.NodeName
	// unnamed means that the container of a Child was not known.
	unnamed bool
	origin  killKey // of the Kill that the agent reported
}

// Process is a process as the kernel's log names it.
type Process struct {
	// Name is what the process calls itself. Bytes that are not printable ASCII are written as \x0a.
	Name string `json:"name"`
	// PID is that of the node.
	PID int `json:"pid"`
	// RSS is its resident memory in bytes; 0 if it is not known.
	RSS uint64 `json:"rss,omitempty"`
}

// KillReport is the answer of an agent about its node.
type KillReport struct {
	// Since is from when on the agent has watched.
	Since time.Time `json:"since"`
	// Kills are those of the last hour, the oldest first.
	Kills []Kill `json:"kills"`
}

// maxKills is how many kills a Log keeps.
const maxKills = 1000

// killKey identifies a Kill. A Child that is counted up keeps its key.
type killKey struct {
	node  metric.NodeName
	uid   metric.PodUID
	id    metric.ContainerID
	scope Scope
	limit Scope
	after int64
}

func (k *Kill) key() killKey {
	return killKey{k.node, k.UID, k.ContainerID, k.Scope, k.Limit, k.After.UnixNano()}
}

// SetLimit sets whose limit was reached. An empty limit means that it is not known. slice is the path of the slice if the
// limit is InSlice. The scope becomes the limit, or InContainer if the limit is not known. The scope of a Child stays.
func (k *Kill) SetLimit(limit Scope, slice metric.CgroupPath) {
	k.Limit, k.Slice = limit, slice
	if k.Scope != Child {
		k.Scope = cmp.Or(limit, InContainer)
	}
}

// dropUnknownLimit removes a limit or a scope that this weir does not know: a newer agent may report others.
func (k *Kill) dropUnknownLimit() {
	if (k.Limit == "" || slices.Contains(Limits[:], k.Limit)) && (k.Scope == Child || slices.Contains(Limits[:], k.Scope)) {
		return
	}
	k.SetLimit("", "")
	k.Doubt, k.Inner, k.NUMA = Unrecognized, false, false
}

const (
	// Cleanup is how long a run may last after the kernel killed one of its processes, if the kill ended it: the
	// other processes have to notice. Chosen: nothing was measured.
	Cleanup = 10 * time.Second
	// longCleanup is the same if the kill is known to be that of the run. Much memory takes seconds to free. Chosen, too.
	longCleanup = time.Minute
)

// mayHaveEnded reports whether k can have ended the run of e. If the agent did not know the container, the runtime must
// report the run as killed for memory, or the container must be the pod's only one. The kill of a child ended the run
// only if SIGKILL did.
func (k *Kill) mayHaveEnded(e *End) bool {
	if e.Container == "" || k.UID != e.Pod.ReportedUID() || k.node != e.Pod.Node || k.ContainerID != "" && k.ContainerID != e.Run.ID {
		return false
	}
	most := Cleanup
	if k.namesRun(e) {
		most = longCleanup
	}
	if e.At.Before(k.After.Truncate(time.Second)) || e.At.After(k.At.Add(most)) || e.Run.Started.After(k.At) { // statuses are cut to the second
		return false
	}
	if k.Scope == Child {
		return k.ContainerID != "" && e.Run.EndedBySIGKILL()
	}
	return e.Run.Reason == "OOMKilled" || e.Run.EndedBySIGKILL() && (k.ContainerID != "" || len(e.Pod.Containers) == 1)
}

// namesRun reports whether k is known to be a kill of the run, and not only of a child.
func (k *Kill) namesRun(e *End) bool {
	return k.Scope != Child && k.ContainerID != "" && k.ContainerID == e.Run.ID
}

// AddKills records what the agent of a node reports, at most the last maxKills. It may get the same kills
// again. pods are those of the node, and state is the node's.
func (l *Log) AddKills(node metric.NodeName, kills []Kill, pods map[metric.PodUID]*cluster.Pod, state NodeState) {
	now, changed := l.opts.Now(), map[metric.PodUID]bool{}
	for _, k := range kills[max(0, len(kills)-maxKills):] {
		p := pods[k.UID]
		if p != nil {
			k.Namespace, k.Pod = p.Namespace, p.Name
		}
		c := p.ContainerByID(k.ContainerID)
		k.node, k.unnamed = node, c == nil
		k.dropUnknownLimit()
		k.origin = k.key()
		if now.Sub(k.At) > l.opts.MaxAge || k.At.Sub(now) > l.opts.MaxAge || !k.isValid() || !l.keepKill(&k) {
			continue
		}
		changed[k.UID] = true
		if k.Scope == Child && c != nil {
			l.add(End{Pod: p, Container: c.Name, Run: Run{ID: k.ContainerID}, At: k.At, Seen: now, Node: state, Kill: &k}, now)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.matchKills(changed)
}

// isValid reports whether an agent can have found k.
func (k *Kill) isValid() bool {
	const longest = 1024 // of a path
	return k.UID != "" && len(k.UID)+len(k.ContainerID)+len(k.Slice)+len(k.Namespace)+len(k.Pod)+len(k.Container)+len(k.Doubt) <= longest &&
		(k.Process == nil || len(k.Process.Name) <= longest) && !k.At.Before(k.After)
}

// keepKill keeps k, and reports whether it is new, was counted up or has its name now.
func (l *Log) keepKill(k *Kill) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.kills[k.key()]; old != nil && !k.At.After(old.At) && (k.unnamed || !old.unnamed) {
		return false
	}
	l.kills[k.key()] = k
	if len(l.kills) > maxKills {
		now := l.opts.Now()
		maps.DeleteFunc(l.kills, func(_ killKey, k *Kill) bool { return now.Sub(k.At) > l.opts.MaxAge })
		makeRoom(l.kills, maxKills, func(k *Kill) (metric.Namespace, time.Time) { return k.Namespace, k.At })
	}
	return true
}

// Killed returns how often the kernel killed for memory, by node, pod and container. The kill of a child may be that
// of its run's end, too, or be reported as its reason: that counts once.
func (l *Log) Killed() map[metric.Entity]int {
	counts, childCounted := map[metric.Entity]int{}, map[metric.ContainerID]bool{}
	ends := l.In("")
	for _, e := range ends {
		if e.GoesOn() {
			childCounted[e.Run.ID] = true
		}
	}
	for _, e := range ends {
		if !e.countsAsKill(childCounted[e.Run.ID]) {
			continue
		}
		n := 1
		if e.GoesOn() {
			n = int(min(e.Kill.Processes, 1<<30))
		}
		at := metric.Entity{Kind: metric.Container, Node: e.Pod.Node, Namespace: e.Pod.Namespace, Pod: e.Pod.Name, Name: e.Container}
		counts[at] += n
		at.Kind, at.Name = metric.Pod, ""
		counts[at] += n
		counts[metric.Entity{Kind: metric.Node, Node: e.Pod.Node}] += n
	}
	return counts
}

// countsAsKill reports whether e counts as a kill. childCounted means that a child of the same run counts.
func (e *End) countsAsKill(childCounted bool) bool {
	switch {
	case e.Kill != nil:
		return e.Kill.Doubt != Late || !childCounted
	case e.Run.Reason != "OOMKilled":
		return false
	}
	return e.Run.EndedBySIGKILL() || !childCounted
}

// Kills returns the kills that are known, the oldest first.
func (l *Log) Kills() []Kill {
	now := l.opts.Now()
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := []Kill{}
	for _, k := range l.kills {
		if now.Sub(k.At) <= l.opts.MaxAge {
			all = append(all, *k)
		}
	}
	slices.SortFunc(all, func(a, b Kill) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.UID, b.UID), cmp.Compare(a.ContainerID, b.ContainerID))
	})
	return all
}
