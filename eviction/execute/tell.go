package execute

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/eviction"
)

// Reasons of Events. That of a pod that went is eviction.Reason, as with the kubelet.
const (
	ReasonObserved = "EvictionObserved"
	ReasonBlocked  = "EvictionBlocked"
	ReasonRefused  = "EvictionRefused"
	ReasonFailed   = "EvictionFailed"
)

// teller emits Events, each once until it changes or some time has passed: a decision
// comes every few seconds, and names the same pod again.
type teller struct {
	recorder Recorder
	repeat   time.Duration

	mu   sync.Mutex
	told map[types.UID]tale
}

type tale struct {
	did    Did
	signal string
	at     time.Time
}

func (t *teller) tell(k *eviction.Kill, o *Outcome) {
	reason, message := eviction.Reason, k.Message
	switch o.Did {
	case Evicted, Killed:
	case Observed:
		reason, message = ReasonObserved, o.Words+". "+k.Message
	case Blocked:
		reason, message = ReasonBlocked, o.Words
	case Refused:
		reason, message = ReasonRefused, o.Words
	case Failed:
		reason, message = ReasonFailed, o.Words
	default:
		return // nothing happened, or it was told when it did
	}
	if t.recorder == nil || !t.news(types.UID(o.Pod.UID), tale{o.Did, o.Signal, o.At}) {
		return
	}
	t.recorder.AnnotatedEventf(&corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: o.Pod.Namespace, Name: o.Pod.Name, UID: types.UID(o.Pod.UID),
	}, k.Annotations, corev1.EventTypeWarning, reason, "%s", message)
}

func (t *teller) news(uid types.UID, n tale) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other, was := range t.told {
		if n.at.Sub(was.at) >= t.repeat {
			delete(t.told, other)
		}
	}
	if was, ok := t.told[uid]; ok && was.did == n.did && was.signal == n.signal {
		return false
	}
	t.told[uid] = n
	return true
}
