package eviction

import (
	"time"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Collection is something a node can do without, given up before pods are.
type Collection string

// The collections.
const (
	UnusedContainers Collection = "container" // containers that have ended, also of pods that are not deleted
	UnusedImages     Collection = "image"     // images that no container uses
)

// Collections returns what is collected for a signal before pods are evicted, in order.
// With images on a file system of their own nothing can be collected for nodefs; nor, ever,
// for memory or process ids.
func (l Layout) Collections(s Signal) []Collection {
	switch s {
	case NodeFsAvailable, NodeFsInodesFree:
		if l.separate() {
			return nil
		}
		if l.split() {
			return []Collection{UnusedContainers}
		}
	case ContainerFsAvailable, ContainerFsInodesFree:
		if l.split() {
			return []Collection{UnusedContainers}
		}
	case ImageFsAvailable, ImageFsInodesFree:
		if l.split() {
			return []Collection{UnusedImages}
		}
	default:
		return nil
	}
	return []Collection{UnusedContainers, UnusedImages}
}

// Reclaimed is what came of a collection.
type Reclaimed struct {
	// Observations are those after it, Open the thresholds that still are met, with
	// their minimum reclaim added: none, and the pods are spared.
	Observations []Observation
	Open         []Threshold
	// Doubts are about figures that counted as good because they are missing or cannot
	// be right.
	Doubts []Doubt
	// Err is why nothing is known of it.
	Err error
}

// AfterReclaim returns the decision after the collections of Reclaim, given the summary
// after them, or why there is none. An error of a collection itself does not matter: the
// figures decide. The pods are spared if no threshold at all is met, of any signal,
// hard or soft, each with its minimum reclaim, be it in force or not; but pressure signals are
// not looked at, since their averages tell of the time before. A figure that is missing or
// in doubt counts as good. Without a summary the pod goes: the figures that condemned it
// were sound. The receiver is left as it is; where it asked for no collection it is the
// answer.
func (d *Decision) AfterReclaim(s *stats.Summary, err error) *Decision {
	if d.Outcome != OutcomeReclaim {
		return d
	}
	after := *d
	after.Reclaim = nil
	after.Reclaimed = &Reclaimed{Err: err}
	if err == nil && s == nil {
		after.Reclaimed.Err = errNoSummary
	}
	if after.Reclaimed.Err == nil {
		r := after.Reclaimed
		r.Observations = observe(s, time.Time{}) // it is later than d.At, nobody knows by how much
		for i := range d.Thresholds {
			t := &d.Thresholds[i].Threshold
			if t.Signal.Pressure() {
				continue
			}
			o := find(r.Observations, t.Signal)
			if why := unusable(o); why != "" {
				r.Doubts = doubt(r.Doubts, Doubt{Signal: t.Signal, Why: why})
			}
			if usable(o, d.parity) && o.beyond(t, true) {
				r.Open = append(r.Open, *t)
			}
		}
		if len(r.Open) == 0 {
			after.Outcome = OutcomeReclaimed
			return &after
		}
	}
	after.choose()
	return &after
}
