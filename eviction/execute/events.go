package execute

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/eviction"
)

// The reasons of Events. An eviction has eviction.Reason, as in the kubelet.
const (
	ReasonObserved = "EvictionObserved"
	ReasonBlocked  = "EvictionBlocked"
	ReasonRefused  = "EvictionRefused"
	ReasonFailed   = "EvictionFailed"
	ReasonStopped  = "EvictionsStopped"
)

// eventThrottle records Events. It does not repeat an Event of a pod until the result changes or
// some time has passed, because every decision, seconds apart, names the same pod again.
type eventThrottle struct {
	recorder EventRecorder
	repeat   time.Duration

	mu   sync.Mutex
	last map[types.UID]lastEvent
}

type lastEvent struct {
	result Result
	signal string
	at     time.Time
}

func (t *eventThrottle) record(k *eviction.Kill, o *ActionOutcome) {
	reason, message := eviction.Reason, k.Message
	switch o.Result {
	case Evicted, Killed, Requested:
	case Observed:
		reason, message = ReasonObserved, o.Message+". "+k.Message
	case Blocked:
		reason, message = ReasonBlocked, o.Message
	case Refused:
		reason, message = ReasonRefused, o.Message
	case Failed:
		reason, message = ReasonFailed, o.Message
	case Stopped:
		reason, message = ReasonStopped, o.Message
	default:
		return // nothing happened now, or the Event was already recorded
	}
	if t.recorder == nil || !t.isNew(types.UID(o.Pod.UID), lastEvent{o.Result, o.Signal, o.At}) {
		return
	}
	t.recorder.AnnotatedEventf(&corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: o.Pod.Namespace, Name: o.Pod.Name, UID: types.UID(o.Pod.UID),
	}, k.Annotations, corev1.EventTypeWarning, reason, "%s", message)
}

func (t *eventThrottle) isNew(uid types.UID, n lastEvent) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other, earlier := range t.last {
		if n.at.Sub(earlier.at) >= t.repeat {
			delete(t.last, other)
		}
	}
	if earlier, ok := t.last[uid]; ok && earlier.result == n.result && earlier.signal == n.signal {
		return false
	}
	t.last[uid] = n
	return true
}
