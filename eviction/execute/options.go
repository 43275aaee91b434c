package execute

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Options of an Executor. A zero duration or number stands for the default.
type Options struct {
	// Mode is how far to go. Everything else but Recorder and Registerer is of no
	// use to Observe.
	Mode   Mode
	Client kubernetes.Interface
	// Node is the name of the agent's node: pods of another are refused.
	Node string
	// Self is the UID of the agent's own pod. NoPod says that it runs in none; one
	// of the two must be given, lest a missing field of a manifest let the agent evict itself.
	Self  types.UID
	NoPod bool

	// OnNode says whether the node's statistics still have the pod, which they do until its
	// cgroups are removed; nil for not to ask.
	OnNode func(context.Context, types.UID) (bool, error)
	// Reclaimer collects what the node can do without; nil for nobody.
	Reclaimer Reclaimer
	// Recorder is told what was done and would be, once per pod until that changes
	// or RepeatEvents passes; nil for nobody. One that writes Events writes to the API
	// server in mode Observe too.
	Recorder Recorder
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer

	MinGap         time.Duration // from the end of one round to the next pod; 10s
	MaxPerWindow   int           // pods in any Window; 10
	Window         time.Duration // 10m
	CleanupTimeout time.Duration // how long a pod may take to be gone, after its time to end; 30s, as the kubelet
	CleanupPoll    time.Duration // how often to look whether it is gone; 1s, as the kubelet
	RequestTimeout time.Duration // of one request; 15s, longer than the API server asks to wait for a budget
	ReclaimTimeout time.Duration // of one collection; 2m
	BlockedBackoff time.Duration // first wait after a budget blocked, then doubled; 10s
	FailedBackoff  time.Duration // first wait after an error, then doubled; 1s
	MaxBackoff     time.Duration // 5m; at most 30s while the API server does not answer
	RepeatEvents   time.Duration // 10m
}

// Recorder emits Events; a record.EventRecorder is one.
type Recorder interface {
	AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any)
}

func (o Options) withDefaults() Options {
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
	for _, d := range [...]time.Duration{o.MinGap, o.Window, o.CleanupTimeout, o.CleanupPoll, o.RequestTimeout,
		o.ReclaimTimeout, o.BlockedBackoff, o.FailedBackoff, o.MaxBackoff, o.RepeatEvents} {
		if d < 0 {
			return errors.New("no duration may be negative")
		}
	}
	switch {
	case o.Mode > Kill:
		return errors.New("the mode is none of observe, evict, kill")
	case o.MaxPerWindow < 0:
		return errors.New("no number may be negative: to evict nobody, use mode observe")
	case o.Mode == Observe:
		return nil
	case o.Client == nil:
		return errors.New("a client is needed to write")
	case o.Node == "":
		return errors.New("the node's name is needed to know its pods: set it by the downward API (spec.nodeName)")
	case o.Self == "" && !o.NoPod:
		return errors.New("the UID of the agent's own pod is needed, so that it is never evicted: set it by the downward API (metadata.uid), or say that the agent runs in no pod")
	}
	return nil
}
