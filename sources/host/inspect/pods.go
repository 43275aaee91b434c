package inspect

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// SettleTime is how long before an answer a cgroup must have been made for the
// answer's silence to mean that its pod is gone. A kubelet makes a pod's cgroup
// before anything runs in it.
const SettleTime = time.Minute

// Pods is what somebody said of all pods on this node. A nil *Pods says nothing.
type Pods struct {
	List []*cluster.Pod
	// From is who said it, for people: "the kubelet at https://...".
	From string
	// At is a moment by our clock since which the answer may have changed, but
	// not before: when the question was asked, or when the file was written.
	At time.Time
	// Static says that static pods are among them even if the API server was
	// never told of them: so in a kubelet's answer.
	Static bool
}

// podsByUID is the pods by every UID that a cgroup may call them.
type podsByUID map[metric.PodUID]*cluster.Pod

func (p *Pods) byUID() podsByUID {
	n := podsByUID{}
	if p == nil {
		return n
	}
	for _, pod := range p.List {
		for _, uid := range [...]metric.PodUID{pod.UID, pod.ReportedUID()} {
			if uid, ok := podcgroup.NormalizeUID(string(uid)); ok {
				n[uid] = pod
			}
		}
	}
	return n
}

// doubtReason says why the answer seems to be about another machine; empty if it does
// not. Someone may name the wrong node or file, and no pod here would be known.
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
			return "none of the pods that " + p.From + " names has a cgroup here: is the answer about this machine?"
		}
	}
	if running != "" {
		return p.From + " names none of the pods here, and something runs in " + running + ": is the answer about this machine?"
	}
	return ""
}

// hashLength is how many digits the hash of a static pod's manifest has, which
// serves it as a UID.
const hashLength = 32

// isStatic reports whether uid is that of a static pod.
func isStatic(uid metric.PodUID) bool {
	if len(uid) != hashLength {
		return false
	}
	for i := range len(uid) {
		if c := uid[i]; !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return true
}

// PodsOn returns what facts say of the pods on node; nil as long as they do not know
// all pods.
func PodsOn(node metric.NodeName, facts *cluster.Facts) *Pods {
	if facts == nil || !facts.Synced {
		return nil
	}
	return &Pods{List: facts.PodsOn(node), From: "the API server", At: facts.At}
}
