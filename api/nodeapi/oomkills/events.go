package oomkills

import (
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// EventReason is the reason of the Events on pods.
const EventReason = "KilledForMemory"

// The bounds of Events: an agent writes at first a burst and then one in each interval, of a namespace and
// in all.
const (
	namespaceBurst = 10
	totalBurst     = 50
	perMinute      = rate.Limit(1.0 / 60)
	// maxNamespaces is how many namespaces have a bound of their own. A node seldom has pods of more.
	maxNamespaces = 500
)

// eventWriter writes an Event on the pod for each kill.
type eventWriter struct {
	recorder   record.EventRecorder
	shutdown   func() // of the recorder
	all        *rate.Limiter
	namespaces map[metric.Namespace]*rate.Limiter
	dropped    prometheus.Counter
}

func newEventWriter(h *feature.Host, node metric.NodeName) (*eventWriter, error) {
	client, _, err := h.Cluster.ClientAs(component)
	if err != nil {
		return nil, err
	}
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	w := boundedWriter(events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component, Host: string(node)}))
	w.shutdown = events.Shutdown
	h.Registry.MustRegister(w.dropped)
	return w, nil
}

func boundedWriter(recorder record.EventRecorder) *eventWriter {
	return &eventWriter{
		recorder: recorder, all: rate.NewLimiter(10*perMinute, totalBurst), namespaces: map[metric.Namespace]*rate.Limiter{},
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_oom_events_dropped_total", Help: "Kills by the kernel without an Event, because there were too many."}),
	}
}

// component is the source of an agent's Events.
const component = "weir-agent"

// write writes the Event of a kill, unless there were too many. A nil writer writes none.
func (w *eventWriter) write(k *endlog.Kill, p *cluster.Pod) {
	if w == nil || p == nil {
		return
	}
	limit := w.namespaces[p.Namespace]
	if limit == nil {
		if len(w.namespaces) >= maxNamespaces {
			clear(w.namespaces)
		}
		limit = rate.NewLimiter(perMinute, namespaceBurst)
		w.namespaces[p.Namespace] = limit
	}
	if !limit.AllowN(k.At, 1) || !w.all.AllowN(k.At, 1) {
		w.dropped.Inc()
		return
	}
	w.recorder.Event(&corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: string(p.Namespace), Name: string(p.Name), UID: types.UID(p.UID),
	}, corev1.EventTypeWarning, EventReason, eventMessage(k))
}

// eventMessage describes a kill.
func eventMessage(k *endlog.Kill) string {
	where := "the pod"
	if k.Container != "" {
		where = "container " + k.Container
	}
	text := "The kernel killed " + humanize.Count(k.Processes, "process") + " of " + where + " for memory"
	so := ": "
	if k.Doubt != "" || k.Limit == endlog.InNode && !k.Logged {
		so = ": probably "
	}
	switch {
	case k.Inner:
		text += so + "a cgroup in the container reached its limit"
	case k.NUMA:
		text += so + "the NUMA nodes that it may use have no memory left"
	case k.Limit == endlog.InContainer:
		text += so + "the container reached its limit"
	case k.Limit == endlog.InPod:
		text += so + "the pod reached its limit"
	case k.Limit == endlog.InSlice:
		text += so + "slice " + humanize.Excerpt(string(k.Slice), 200) + " reached its limit"
	case k.Limit == endlog.InNode:
		text += so + "the node has no memory left"
	}
	if k.Scope == endlog.Child {
		text += ". The container goes on"
	}
	return text
}

func (w *eventWriter) close() {
	if w != nil {
		w.shutdown()
	}
}
