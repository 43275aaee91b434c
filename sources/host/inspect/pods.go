package inspect

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// SettleTime is how much older than a list of pods a cgroup must be before its absence from the
// list means that its pod was deleted. A kubelet creates a pod's cgroup before anything runs in it.
const SettleTime = time.Minute

// Pods is a list of all pods on this node. A nil *Pods means that there is no list.
type Pods struct {
	List []*cluster.Pod
	// From is the source of the list, for people: "the kubelet at https://...".
	From string
	// At is the time of the list by this machine's clock: the time at which the request was sent or
	// the file was written. Pods may have changed after it, but not before.
	At time.Time
	// Static is true if the list has static pods that the API server does not know, as the list of a
	// kubelet does.
	Static bool
}

// podsByUID has the pods, keyed by every UID that a cgroup's name may have for them.
type podsByUID map[metric.PodUID]*cluster.Pod

func (p *Pods) byUID() podsByUID {
	n := podsByUID{}
	for _, pod := range p.List {
		for _, uid := range [...]metric.PodUID{pod.UID, pod.ReportedUID()} {
			if uid, ok := podcgroup.NormalizeUID(string(uid)); ok {
				n[uid] = pod
			}
		}
	}
	return n
}

// doubtReason returns why the list seems to belong to another machine; empty if it does not. With the
// wrong node name or file, all cgroups here would have no pod.
func (p *Pods) doubtReason(t *Tree, n podsByUID) string {
	running := ""
	for _, c := range t.Pods {
		if n[c.UID] != nil {
			return ""
		}
		if !c.IsEmpty() {
			running = string(c.Path)
		}
	}
	for _, pod := range p.List {
		if pod.Phase == cluster.Running {
			return "none of the pods that " + p.From + " lists has a cgroup here: check that the list is of this machine"
		}
	}
	if running != "" {
		return p.From + " lists no pod with a cgroup here, but processes run in " + running + ": check that the list is of this machine"
	}
	return ""
}

// PodsOn returns the list of the pods on node in facts. It returns nil if facts do not have all
// pods yet.
func PodsOn(node metric.NodeName, facts *cluster.Facts) *Pods {
	if facts == nil || !facts.Synced {
		return nil
	}
	return &Pods{List: facts.PodsOn(node), From: "the API server", At: facts.At}
}
