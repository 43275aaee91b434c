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

// Options configures an Executor. A duration or number of zero means the default.
type Options struct {
	// Mode describes what to do. Empty means Observe, which uses only Recorder and Registerer.
	Mode   Mode
	Client kubernetes.Interface
	// Node is the name of the agent's node. Pods of other nodes are refused.
	Node string
	// Self is the UID of the agent's own pod. NoPod reports that the agent does not run in a pod. One of
	// the two is required, so that an agent with an incomplete manifest cannot evict itself.
	Self  types.UID
	NoPod bool
	// Namespace is that of the Leases by which the agents of a cluster limit how many of them evict at
	// one time. If it is empty, there is no such limit.
	Namespace string

	// OnNode reports whether the node's statistics still have the pod. They have it until its cgroups
	// are removed. It may be nil.
	OnNode func(context.Context, types.UID) (bool, error)
	// Reclaimer removes unused containers and images. It may be nil.
	Reclaimer Reclaimer
	// KillAtOnce ends the processes of a pod of this node with SIGKILL, without the API server. Mode Kill
	// calls it before it deletes a pod for a hard threshold of memory or process IDs. killed reports whether
	// any process was ended, also if there is an error. It may be nil.
	KillAtOnce func(context.Context, types.UID) (killed bool, err error)
	// Recorder gets an Event for what was done, or would be done: one for each pod until the result
	// changes or RepeatEvents has passed. It gets Events in mode Observe, too. It may be nil.
	Recorder EventRecorder
	// Registerer registers the metrics; nil means none.
	Registerer prometheus.Registerer

	MinGap         time.Duration // the time from the end of one round to the next pod; 10s
	MaxPerWindow   int           // the maximum number of pods in any Window; 10
	Window         time.Duration // 10m
	CleanupTimeout time.Duration // how long a pod may take to be gone after its grace period; 30s, as in the kubelet
	CleanupPoll    time.Duration // the time between two checks whether the pod is gone; 1s, as in the kubelet
	RepeatEvents   time.Duration // the time after which an Event is repeated; 10m
}

const (
	requestWait    = 2 * time.Minute  // how long an EvictionRequest may take; then it is withdrawn
	requestTimeout = 15 * time.Second // the limit on one request; longer than the API server asks to wait for a budget
	reclaimTimeout = 2 * time.Minute  // the limit on one collection
	blockedBackoff = 10 * time.Second // the first wait after a budget blocked an eviction; it doubles each time
	failedBackoff  = time.Second      // the first wait after an error; it doubles each time
	maxBackoff     = 5 * time.Minute  // the longest wait
	// maxOutageBackoff is the longest wait while the API server does not answer. The pod is not skipped
	// during that time, so this is also the longest delay after the API server is back.
	maxOutageBackoff = 30 * time.Second
)

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
	o.RepeatEvents = cmp.Or(o.RepeatEvents, 10*time.Minute)
	return o
}

func (o *Options) check() error {
	switch {
	case o.Mode == Observe:
		return nil
	case o.Mode != Evict && o.Mode != Kill && o.Mode != Request:
		return fmt.Errorf("mode %q must be one of observe, evict, kill, request", o.Mode)
	case o.Client == nil:
		return errors.New("a client is needed to write")
	case o.Node == "":
		return errors.New("the node's name is needed to know its pods: set it by the downward API (spec.nodeName)")
	case o.Self == "" && !o.NoPod:
		return errors.New("the UID of the agent's own pod is needed, so that it is never evicted: set it by the downward API (metadata.uid), or set Options.NoPod if the agent does not run in a pod")
	}
	return nil
}

// Mode describes what an Executor may do.
type Mode string

// The modes.
const (
	Observe Mode = "observe" // write nothing but Events
	Evict   Mode = "evict"   // use the Eviction API, also for hard thresholds
	Kill    Mode = "kill"    // use the Eviction API for soft thresholds; delete pods for hard thresholds and limits of local storage
	Request Mode = "request" // create EvictionRequests (KEP-4563), also for hard thresholds
)
