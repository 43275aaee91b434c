package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Options of an Executor. A zero duration or number means the default.
type Options struct {
	// Mode is what to do; empty means Observe, which only uses Recorder and Registerer.
	Mode   Mode
	Client kubernetes.Interface
	// Node is the name of the agent's node: pods of another are refused.
	Node string
	// Self is the UID of the agent's own pod. NoPod: it does not run in a pod. One of the two is
	// required, so that an agent with an incomplete manifest cannot evict itself.
	Self  types.UID
	NoPod bool

	// OnNode reports whether the node's statistics still have the pod, which they do until its
	// cgroups are removed. It may be nil.
	OnNode func(context.Context, types.UID) (bool, error)
	// Reclaimer removes unused containers and images. It may be nil.
	Reclaimer Reclaimer
	// Recorder gets an Event for what was done or would be: once for a pod until the result
	// changes or RepeatEvents has passed. It may be nil. It also gets Events in mode Observe.
	Recorder EventRecorder
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer

	MinGap         time.Duration // from the end of one round to the next pod; 10s
	MaxPerWindow   int           // pods in any Window; 10
	Window         time.Duration // 10m
	CleanupTimeout time.Duration // how long a pod may take to be gone after its grace period; 30s, as in the kubelet
	CleanupPoll    time.Duration // time between two checks whether it is gone; 1s, as in the kubelet
	RequestTimeout time.Duration // of one request; 15s, longer than the API server asks to wait for a budget
	ReclaimTimeout time.Duration // of one collection; 2m
	BlockedBackoff time.Duration // first wait after a budget blocked, then doubled; 10s
	FailedBackoff  time.Duration // first wait after an error, then doubled; 1s
	MaxBackoff     time.Duration // 5m; at most 30s while the API server does not answer
	RepeatEvents   time.Duration // 10m
}

// EventRecorder records Events. A record.EventRecorder implements it.
type EventRecorder interface {
	AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any)
}

func (o Options) withDefaults() Options {
	o.Mode = cmp.Or(o.Mode, Observe)
	o.MinGap = cmp.Or(o.MinGap, 10*time.Second)
	o.MaxPerWindow = cmp.Or(o.MaxPerWindow, 10)
	o.Window = cmp.Or(o.Window, 10*time.Minute)
	o.CleanupTimeout = cmp.Or(o.CleanupTimeout, 30*time.Second)
	o.CleanupPoll = cmp.Or(o.CleanupPoll, time.Second)
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 15*time.Second)
	o.ReclaimTimeout = cmp.Or(o.ReclaimTimeout, 2*time.Minute)
	o.BlockedBackoff = cmp.Or(o.BlockedBackoff, 10*time.Second)
	o.FailedBackoff = cmp.Or(o.FailedBackoff, time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 5*time.Minute)
	o.RepeatEvents = cmp.Or(o.RepeatEvents, 10*time.Minute)
	return o
}

func (o *Options) check() error {
	switch {
	case o.Mode == Observe:
		return nil
	case o.Mode != Evict && o.Mode != Kill:
		return fmt.Errorf("mode %q is none of observe, evict, kill", o.Mode)
	case o.Client == nil:
		return errors.New("a client is needed to write")
	case o.Node == "":
		return errors.New("the node's name is needed to know its pods: set it by the downward API (spec.nodeName)")
	case o.Self == "" && !o.NoPod:
		return errors.New("the UID of the agent's own pod is needed, so that it is never evicted: set it by the downward API (metadata.uid), or say that the agent runs in no pod")
	}
	return nil
}

// Mode is what an Executor may do.
type Mode string

// The modes.
const (
	Observe Mode = "observe" // change nothing
	Evict   Mode = "evict"   // use the Eviction API, for hard thresholds too
	Kill    Mode = "kill"    // use it for soft thresholds; delete pods for hard ones and for limits of local storage
)
