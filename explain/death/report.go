package death

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/cluster/eventlog/event"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// MaxDeaths is how many ends a report has at most.
const MaxDeaths = 200

// EndReader is the memory of ends.
type EndReader interface {
	In(namespace metric.Namespace) []*endlog.End
	Since() time.Time
	Size() (kept, dropped int)
}

// EventReader is the memory of Events.
type EventReader interface {
	Of(o event.Object, now time.Time) []event.Event
	Since(namespace string, now time.Time) time.Time
	Unread() string
}

// Query selects ends. The zero Query selects all.
type Query struct {
	Namespace metric.Namespace
	Pod       metric.PodName
	Container string
	// Node and Workload select those of a node, and of the pods of a workload.
	Node     metric.NodeName
	Workload cluster.Owner
	// Words is set if the answer may hold what containers wrote about their ends.
	Words bool
}

// NewReport returns the report on the ends that q selects. events is nil if Events are not kept.
func NewReport(q Query, ends EndReader, events EventReader, now time.Time) Report {
	r := Report{Namespace: string(q.Namespace), Pod: string(q.Pod), Container: q.Container, At: now.UTC(), Since: ends.Since().UTC(), Deaths: []Death{}}
	_, r.Dropped = ends.Size()
	r.EventsUnread = "weir keeps no Events: with --events it knows failed probes and what its agent evicted."
	if events != nil {
		r.EventsUnread = events.Unread()
	}
	all := ends.In(q.Namespace)
	children := map[metric.ContainerID]*endlog.Kill{}
	for _, e := range all {
		if e.GoesOn() && children[e.Run.ID] == nil { // the newest: all are sorted
			children[e.Run.ID] = e.Kill
		}
	}
	for _, e := range all {
		if !q.selects(e) {
			continue
		}
		facts := Facts{End: e, Child: children[e.Run.ID], EventsUnread: r.EventsUnread, Words: q.Words}
		if events != nil {
			facts.EventsSince = events.Since(string(e.Pod.Namespace), now)
			facts.Events = events.Of(event.Object{Kind: "Pod", Namespace: string(e.Pod.Namespace), Name: string(e.Pod.Name)}, now)
			facts.NodeEvents = events.Of(event.Object{Kind: "Node", Namespace: "default", Name: string(e.Pod.Node)}, now)
		}
		death := Decide(facts)
		if q.Pod == "" && death.Cause == Completed {
			r.Completed++
			continue
		}
		if len(r.Deaths) == MaxDeaths {
			r.LeftOut++
			continue
		}
		r.Deaths = append(r.Deaths, death)
	}
	r.Summary = r.summary()
	return r
}

// selects reports whether q selects an end in its namespace.
func (q *Query) selects(e *endlog.End) bool {
	ofContainer := e.Container == q.Container || e.Container == "" && e.Pod.Container(q.Container) != nil
	return (q.Pod == "" || e.Pod.Name == q.Pod) && (q.Node == "" || e.Pod.Node == q.Node) &&
		(q.Workload == cluster.Owner{} || e.Pod.Workload() == q.Workload) && (q.Container == "" || ofContainer)
}

// Recent reports how many deaths there are, and what the last one was, in a sentence that goes on:
// "2 deaths, the last one 4m ago: container app was ...". It is empty if there is none.
func (r *Report) Recent() string {
	failed := slices.DeleteFunc(slices.Clone(r.Deaths), func(d Death) bool { return d.Cause == Completed })
	if len(failed) == 0 {
		return ""
	}
	d := &failed[0]
	subject := "the pod"
	if d.Container != "" {
		subject = "container " + d.Container
	}
	return fmt.Sprintf("%s in the last hour, the last one %s. %s: %s. `weir explain death %s/%s` has the evidence.",
		humanize.Count(len(failed)+r.LeftOut, "death"), humanize.Ago(d.At, r.At), subject, d.Message, d.Namespace, d.Pod)
}

// summary is the answer in a sentence.
func (r *Report) summary() string {
	ends := len(r.Deaths) + r.LeftOut
	where := "in the cluster"
	switch {
	case r.Container != "":
		where = fmt.Sprintf("in container %s of pod %s/%s", r.Container, r.Namespace, r.Pod)
	case r.Pod != "":
		where = fmt.Sprintf("in pod %s/%s", r.Namespace, r.Pod)
	case r.Namespace != "":
		where = "in namespace " + r.Namespace
	}
	when := "in the last hour"
	if covered := r.At.Sub(r.Since).Round(time.Second); r.Since.IsZero() {
		return "weir has not listed the pods yet: it does not know what ended."
	} else if covered < endlog.DefaultMaxAge {
		when = fmt.Sprintf("in the %s since weir began to watch", humanize.Duration(covered))
	}
	var text strings.Builder
	if ends == 0 {
		fmt.Fprintf(&text, "Nothing ended %s %s.", where, when)
	} else {
		fmt.Fprintf(&text, "%s %s %s.", humanize.Count(ends, "death"), where, when)
	}
	if r.Completed > 0 {
		fmt.Fprintf(&text, " %s ended without an error.", humanize.Count(r.Completed, "run"))
	}
	if r.Dropped > 0 {
		fmt.Fprintf(&text, " There were too many for weir's memory: %s dropped.", humanize.Count(r.Dropped, "older one")+" "+map[bool]string{true: "was", false: "were"}[r.Dropped == 1])
	}
	return text.String()
}
