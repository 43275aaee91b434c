package death

import (
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/eventlog/event"
)

// stopOf returns what the pod's status reports about its stop.
func (d *decision) stopOf() cluster.PodStop {
	if d.pod.Stop == nil {
		return cluster.PodStop{}
	}
	return *d.pod.Stop
}

// lacksReason reports whether a kubelet stopped the pod and dropped the reason: a kubelet (1.37) reports a pod as
// Succeeded if all containers end without an error when they are asked to, and only the condition stays.
func lacksReason(s cluster.PodStop) bool { return s.Reason == "" && s.Disruption == cluster.ByKubelet }

// evictedByKubelet reads the kubelet's message.
func evictedByKubelet(d *decision) bool {
	stop := d.stopOf()
	e, ok := ParseEvicted(stop.Message)
	switch {
	case stop.Reason != "Evicted" && !(ok && lacksReason(stop)):
		return false
	case !ok:
		return d.conclude(KubeletEviction, Certain, "evicted by the kubelet")
	case e.Limit != "":
		return d.conclude(StorageLimit, Certain, "")
	}
	for _, a := range e.Above {
		d.fact(fromServer, "%s used %s of %s and requested %s: the kubelet evicts those above their request first", a.Name, a.Usage, e.Resource, a.Request)
	}
	if len(e.Above) == 0 {
		d.fact(fromServer, "the kubelet names no container above its request: the pod's priority, or its use beside containers, put it first")
	}
	message := "evicted by the kubelet: node %s was low on %s"
	if e.Threshold != "" {
		return d.conclude(KubeletEviction, Certain, message+" (%s left, the threshold is %s)", d.pod.Node, e.Resource, e.Available, e.Threshold)
	}
	return d.conclude(KubeletEviction, Certain, message, d.pod.Node, e.Resource)
}

// evictedWithoutReason finds the kubelet's Event of an eviction that the status of the pod does not have: for a limit
// on local storage, the kubelet sets no condition, and it may drop the reason (five of six such pods, kubelet 1.37).
func evictedWithoutReason(d *decision) bool {
	e := d.event(kubelet, "", func(e *event.Event) bool {
		before := d.End.At.Sub(e.Last) // the containers have a grace period
		return e.Reason == "Evicted" && before < evictionSlack && before > -clockSlack
	})
	if e == nil {
		return false
	}
	d.fact(fromEvents, "Evicted, of the kubelet, %s", occurrence(e, d.End.At))
	if parsed, ok := ParseEvicted(e.Message); ok && parsed.Limit != "" {
		return d.conclude(StorageLimit, Certain, "")
	}
	return d.conclude(KubeletEviction, Certain, "")
}

// stoppedByStatus reads the other reasons that a kubelet or the controller of nodes writes.
func stoppedByStatus(d *decision) bool {
	stop := d.stopOf()
	if stop.Reason == "" && !lacksReason(stop) {
		return false // the message is that of a condition
	}
	return d.concludeReported(podStopped, stop.Reason, "") || d.concludeReported(podStopped, "", stop.Message)
}

// disrupted reads the condition DisruptionTarget. A kubelet and the collector of pods set it on a pod that they stop,
// others on one that they delete next.
func disrupted(d *decision) bool {
	reason := d.stopOf().Disruption
	if (reason == byEvictionAPI || reason == cluster.ByAgent) && evictedByAgent(d) {
		return true
	}
	if !d.concludeReported(podDisrupted, reason, "") {
		return false
	}
	if reason != cluster.ByKubelet && reason != byPodGC && d.pod.Deleted.IsZero() && !d.End.Gone {
		d.death.Confidence = Likely // it may have ended before that
	}
	return true
}

// gone applies to pods that were deleted, for a reason that nobody reported.
func gone(d *decision) bool {
	if !d.End.Node.Known && d.pod.Node != "" && d.End.Gone {
		return d.conclude(NodeGone, Likely, "its node %s is gone", d.pod.Node)
	}
	if d.pod.Deleted.IsZero() && !d.End.Gone {
		return false
	}
	confidence := Certain
	if d.End.Unwatched {
		confidence = Likely // an eviction may have been missed
	}
	return d.conclude(Deleted, confidence, "")
}
