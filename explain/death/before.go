package death

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// History yields the points of a metric of an entity from one time to another, oldest first.
type History func(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64]

// How much of the history is read for one end.
const (
	historyBefore = 15 * time.Minute
	maxContainers = 10
)

// Measure returns what the container that ended, its siblings and its node used before. Readings of
// another run of the container are not among them.
func Measure(history History, e *endlog.End) (u endlog.Usage) {
	if e.Pod.Node == "" {
		return u
	}
	// The API server cuts the time of an end to the second.
	from, until := e.At.Add(-historyBefore), e.At.Add(time.Second)
	add := func(entity metric.Entity, name string, from time.Time) {
		entity.Node = e.Pod.Node
		for id, to := range map[metric.ID]*[]endlog.Trend{metric.MemoryWorkingSet: &u.Memory, metric.CPUUsageRate: &u.CPU} {
			if t, ok := trend(history(entity, id, from, until), id.Describe().Unit.Prometheus()); ok {
				t.Kind, t.Name = entity.Kind.String(), name
				*to = append(*to, t)
			}
		}
	}
	container := func(name string, from time.Time) {
		add(metric.Entity{Kind: metric.Container, Namespace: e.Pod.Namespace, Pod: e.Pod.Name, Name: name}, name, from)
	}
	if e.Container != "" {
		began := from
		if e.Run.Started.After(from) {
			began = e.Run.Started
		}
		container(e.Container, began)
	}
	for i := range e.Pod.Containers[:min(len(e.Pod.Containers), maxContainers)] {
		if name := e.Pod.Containers[i].Name; name != e.Container {
			container(name, from)
		}
	}
	add(metric.Entity{Kind: metric.Node}, string(e.Pod.Node), from)
	return u
}

// trend sums up points; scale converts their unit. ok is false if there are none.
func trend(points iter.Seq2[time.Time, float64], scale float64) (t endlog.Trend, ok bool) {
	for at, v := range points {
		r := endlog.Reading{At: at.UTC(), Value: v * scale}
		if !ok {
			t.First, t.Highest, ok = r, r, true
		}
		if r.Value > t.Highest.Value {
			t.Highest = r
		}
		t.Last = r
	}
	return t, ok
}

// minRise is the smallest rise of memory, in bytes, that is called one.
const minRise = 1 << 20

// before returns what was used before an end, with its sentence; nil if nothing was measured.
func before(e *endlog.End) *Before {
	if len(e.Before.Memory)+len(e.Before.CPU) == 0 {
		return nil
	}
	b := &Before{Usage: e.Before}
	speed := func(t *endlog.Trend) float64 {
		if seconds := t.Last.At.Sub(t.First.At).Seconds(); seconds > 0 && t.Rise() >= minRise {
			return t.Rise() / seconds
		}
		return 0
	}
	fastest := -1
	for i := range b.Memory {
		t := &b.Memory[i]
		if t.Kind == metric.Node.String() && fastest >= 0 {
			continue // the pod's own rise is part of it
		}
		if speed(t) > 0 && (fastest < 0 || speed(t) > speed(&b.Memory[fastest])) {
			fastest = i
		}
	}
	if fastest >= 0 {
		t := &b.Memory[fastest]
		b.Fastest = t.Kind + " " + t.Name
		b.Message = fmt.Sprintf("memory of %s rose fastest, %s", b.Fastest, change(t))
		return b
	}
	if i := slices.IndexFunc(b.Memory, func(t endlog.Trend) bool { return t.Kind == metric.Container.String() }); i >= 0 {
		t := &b.Memory[i]
		movement := "did not rise"
		if t.First.At.Equal(t.Last.At) {
			movement = "was read once"
		}
		b.Message = fmt.Sprintf("memory of container %s %s: %s", t.Name, movement, change(t))
	}
	return b
}

// change returns the first, the highest and the last value of a trend: "from 40Mi to 63Mi in 4m", or the
// only value.
func change(t *endlog.Trend) string {
	first, highest, last := humanize.Bytes(t.First.Value), humanize.Bytes(t.Highest.Value), humanize.Bytes(t.Last.Value)
	if t.First.At.Equal(t.Last.At) {
		return last
	}
	text := fmt.Sprintf("from %s to %s in %s", first, last, humanize.Duration(t.Last.At.Sub(t.First.At).Round(time.Second)))
	if highest != last && highest != first {
		text += ", at most " + highest
	}
	return text
}
