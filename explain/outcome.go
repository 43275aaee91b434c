package explain

import (
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/resourceusage"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// Outcome reports whether one pod, container or node is served, and otherwise why not. It is about CPU
// and memory together or about another metric, and it is cheap to make for many entities.
// ShortMessage describes it in a sentence, Explainer.Why and the answers in full.
type Outcome struct {
	// Reason is Measured or Ambiguous if the number is served. Otherwise it is why it is not.
	Reason metric.Reason
	Served bool
	// Container is the container without numbers that keeps its pod from being served. It is empty
	// if there is none.
	Container string
	// Node is the node at fault, for reasons of the layers node and scrape.
	Node metric.NodeName
	// Late reports that a pod or container began after its node was last read, or so lately that the
	// last answer does not show it.
	Late bool
	// Said is what the API server reports in addition: "CrashLoopBackOff". If the reason alone has
	// too little detail, Said is the reason in other words.
	Said string
	// Since is the time since when the reason is true, or zero if that is unknown.
	Since time.Time

	kind     metric.Kind  // Container if the question was about a container
	group    metric.Group // of the verdict, and of the values in its evidence
	evidence metric.Evidence
	over     *activeVerdict // of a node from which something was dropped
	// shown reports of a Late entity that its node was read since it began.
	shown bool
	// restarted reports that a container of the pod began again after its node was last read.
	restarted bool
}

// Expected reports whether an entity with this outcome should have numbers: it does not wait, it
// has not ended, and it is not left out on purpose.
func (o *Outcome) Expected() bool {
	return o.Served || o.Reason.Layer() != metric.LayerLife && o.Reason != metric.NodeExcluded
}

// measurement is what was measured of one entity.
type measurement struct {
	reported      bool // there is a sample
	complete      bool // it has every number that was asked for
	ambiguous     bool
	uid           metric.PodUID
	start         run.Interval      // when the instance began
	run           resourceusage.Run // when CPU and memory were measured, and in which run
	reason        metric.Reason     // of the first number that is missing
	metricMissing bool              // its group has other numbers, but not this one
}

// measure returns the measurement of groups in s, which may be nil.
func measure(s *metric.Sample, groups ...metric.Group) measurement {
	if s == nil {
		return measurement{}
	}
	l := measurement{reported: true, complete: true, uid: s.Instance.UID, start: run.Reported(s.Instance.Start, s.Instance.Origin, 0)}
	for _, g := range groups {
		if g == metric.CPU || g == metric.Memory { // the APIs serve other groups until the next read
			l.run = resourceusage.RunOf(s)
		}
		if !hasNumber(s, g) {
			if l.complete {
				l.reason = s.Reasons[g]
			}
			l.complete = false
		}
		l.ambiguous = l.ambiguous || s.Reasons[g] == metric.Ambiguous
	}
	return l
}

// measureMetric returns the measurement of one metric in s, which may be nil.
func measureMetric(s *metric.Sample, id metric.ID) measurement {
	g := id.Describe().Group
	l := measure(s, g)
	if s == nil || id == metric.CPUUsageRate || id == metric.MemoryWorkingSet {
		return l
	}
	if resourceusage.EndsWithRun(id) {
		l.run = resourceusage.RunOf(s)
	}
	v, ok := s.Values.Get(id)
	l.complete = ok && s.Servable(g) && !math.IsNaN(v) && !math.IsInf(v, 0)
	if l.metricMissing = !ok && s.Servable(g); l.metricMissing {
		l.reason = metric.Unsupported
		if g == metric.Spec {
			l.reason = metric.NotApplicable
		}
	}
	return l
}

// hasNumber reports whether s has the main number of group g. A negative or infinite value does not
// count, because it would be served.
func hasNumber(s *metric.Sample, g metric.Group) bool {
	var id metric.ID
	switch g {
	case metric.CPU:
		id = metric.CPUUsageRate
	case metric.Memory:
		id = metric.MemoryWorkingSet
	default:
		return s.Servable(g) && s.Times[g] != 0
	}
	v, ok := s.Values.Get(id)
	return ok && s.Servable(g) && v >= 0 && !math.IsInf(v, 1)
}

func (m measurement) outcome(g metric.Group) Outcome {
	r := Outcome{Reason: metric.Measured, Served: true, group: g}
	if m.ambiguous {
		r.Reason = metric.Ambiguous
	}
	return r
}

// withoutMetric returns the outcome of a metric that is not reported although others of its group
// are.
func (m measurement) withoutMetric(g metric.Group) Outcome {
	r := Outcome{Reason: m.reason, group: g}
	if g == metric.Spec {
		r.Said = "none is set"
	}
	return r
}

// missingReason returns why a reported entity has no number.
func (m measurement) missingReason() metric.Reason {
	if m.reason.Layer() == metric.LayerNone || m.reason == metric.Ambiguous {
		return metric.NotReported
	}
	return m.reason
}

// containersOf returns the samples of p's containers.
func (ex *Explainer) containersOf(p *cluster.Pod) []*metric.Sample {
	_, containers := ex.View.Pod(p.PodRef)
	return containers
}

// isNewer reports whether the measured pod is a later one than p, which has its name.
func (ex *Explainer) isNewer(p *cluster.Pod, l *measurement) bool {
	if l.uid == "" || p.HasUID(l.uid) {
		return false
	}
	recorded := run.Recorded(p.Started)
	if l.start.Known() {
		return recorded.Before(l.start)
	}
	// Not every source reports when a pod began.
	return slices.ContainsFunc(ex.containersOf(p), func(s *metric.Sample) bool { return recorded.Before(measure(s).start) })
}

// startedAfterRead returns the outcome of an entity that is known since a time and has neither
// sample nor verdict. CPU and memory would have one if the node had shown it since. began is when it
// began, by the node's clock; zero if unknown.
func startedAfterRead(asked metric.Group, node metric.NodeName, known, began time.Time, read *reading) Outcome {
	if asked != metric.CPU && asked != metric.Memory && !read.last.Before(known) {
		return Outcome{Reason: metric.NotReported, group: asked}
	}
	since := known
	if !began.IsZero() {
		since = read.byOurClock(began)
	}
	return Outcome{Reason: metric.NodeNotScrapedYet, Late: true, Node: node, Since: since, shown: !since.IsZero() && !read.last.Before(since), group: asked}
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// pending describes what a pod that has not started waits for.
func pending(p *cluster.Pod, g metric.Group) Outcome {
	r := Outcome{Reason: metric.PodPending, Since: p.KnownAt, group: g}
	if p.Node == "" {
		r.Said = "it is bound to no node"
		return r
	}
	r.Node = p.Node
	for i := range p.Containers {
		if c := &p.Containers[i]; c.State == cluster.StateWaiting && c.StateReason() != "" {
			r.Container, r.Said = c.Name, c.StateReason()
			break
		}
	}
	return r
}

// notRunning explains why a container that does not run now has no numbers. If the pod is being
// deleted, the container will not start again. If st has had the same reason since before the end
// of the last run, its time counts: the container runs only for moments.
func notRunning(p *cluster.Pod, c *cluster.Container, st *activeVerdict) Outcome {
	r := Outcome{Reason: metric.ContainerNotStarted, Container: c.Name, Said: c.StateReason(), Since: c.EndedAt()}
	switch {
	case !p.Deleted.IsZero():
		r = Outcome{Reason: metric.PodTerminating}
	case c.State == cluster.StateTerminated:
		r.Reason = metric.ContainerFinished
	}
	if st != nil && st.reason == r.Reason && (r.Since.IsZero() || st.since.Before(r.Since)) {
		r.Since = st.since
	}
	return r
}

// beganAt returns when a pod, or the last of its containers that should be measured, began by the
// node's clock; zero if unknown.
func beganAt(p *cluster.Pod) time.Time {
	t := p.Started
	for i := range p.Containers {
		if c := &p.Containers[i]; c.Required() && c.StartedAt.After(t) {
			t = c.StartedAt
		}
	}
	return t
}

// endOf returns when the last of a pod's containers ended.
func endOf(p *cluster.Pod) (t time.Time) {
	for i := range p.Containers {
		if e := p.Containers[i].EndedAt(); e.After(t) {
			t = e
		}
	}
	return t
}
