package slow

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// How much a report has.
const (
	MaxPods       = 100
	DefaultWindow = 5 * time.Minute
	LeastWindow   = 30 * time.Second
	MaxWindow     = metric.DefaultHistory
)

// Query selects pods. The zero Query selects all, in the last DefaultWindow.
type Query struct {
	Namespace metric.Namespace
	Pod       metric.PodName
	Window    time.Duration
	// MayName reports whether the answer may name pods of a namespace as neighbours. Nil means all.
	MayName func(namespace string) bool
}

// NewReport returns the report on the pods that q selects. ok is false if a pod is named that has no
// numbers.
func NewReport(q Query, view View, facts *cluster.Facts, now time.Time) (r Report, ok bool) {
	q.Window = cmp.Or(q.Window, DefaultWindow)
	c := &collector{View: view, facts: facts, window: q.Window, nodes: map[metric.NodeName]*nodeFacts{}}
	r = Report{Namespace: string(q.Namespace), Pod: string(q.Pod), At: now.UTC(), WindowSeconds: q.Window.Seconds(), Pods: []Slow{}}
	add := func(ref metric.PodRef) bool {
		f, ok := c.collect(ref)
		if ok {
			f.MayName = q.MayName
			r.Pods = append(r.Pods, Decide(f))
		}
		return ok
	}
	if q.Pod != "" {
		if !add(metric.PodRef{Namespace: q.Namespace, Name: q.Pod}) {
			return r, false
		}
		r.Summary = r.Pods[0].Summary
		if r.Pods[0].Stalls[cpu].Some != nil {
			r.Measured = 1
		} else {
			r.NotMeasured = 1
		}
		return r, true
	}
	worst := r.survey(c, q)
	r.LeftOut = max(0, len(worst)-MaxPods)
	for _, w := range worst[:len(worst)-r.LeftOut] {
		add(w.ref)
	}
	slices.SortStableFunc(r.Pods, func(a, b Slow) int { return cmp.Compare(b.Lost, a.Lost) })
	r.Summary = r.summary(len(worst))
	return r, true
}

// waiting is a pod, and the share of the time that it lost.
type waiting struct {
	ref  metric.PodRef
	lost float64
}

// survey returns the pods that waited, the one that lost the most first, and counts all.
func (r *Report) survey(c *collector, q Query) (worst []waiting) {
	stalls := map[metric.NodeName]bool{} // nodes that report stalls of pods
	each := func(do func(*metric.Sample)) {
		c.Each(metric.Pod, func(s *metric.Sample) bool {
			if s.Entity.Part == "" && s.Times[metric.CPU] != 0 {
				do(s)
			}
			return true
		})
	}
	each(func(s *metric.Sample) {
		if hasStalls(s) {
			stalls[s.Entity.Node] = true
		}
	})
	each(func(s *metric.Sample) {
		if q.Namespace != "" && s.Entity.Namespace != q.Namespace {
			return
		}
		measured := stalls[s.Entity.Node]
		if measured {
			r.Measured++
		} else {
			r.NotMeasured++
			r.NotKnown = cmp.Or(r.NotKnown, noStalls(string(s.Entity.Node), isDetailed(s)))
		}
		if lost := c.lost(s, measured); lost >= least {
			worst = append(worst, waiting{s.Entity.PodRef(), lost})
		}
	})
	slices.SortStableFunc(worst, func(a, b waiting) int { return cmp.Compare(b.lost, a.lost) })
	return worst
}

// summary is the answer in a sentence.
func (r *Report) summary(waited int) string {
	where := "in the cluster"
	if r.Namespace != "" {
		where = "in namespace " + r.Namespace
	}
	window := humanize.Duration(time.Duration(r.WindowSeconds * float64(time.Second)))
	text := fmt.Sprintf("%s %s waited for CPU, memory or disk I/O for more than %s of the last %s.", humanize.Count(waited, "pod"), where, humanize.Percent(least), window)
	if waited == 0 {
		text = fmt.Sprintf("No pod %s waited for CPU, memory or disk I/O for more than %s of the last %s.", where, humanize.Percent(least), window)
		if r.Measured == 0 {
			text = fmt.Sprintf("What the pods %s wait for is not known.", where)
		}
	}
	if r.NotMeasured > 0 {
		text += fmt.Sprintf(" Of %s the stalls are not known.", humanize.Count(r.NotMeasured, "pod"))
	}
	return text
}
