package explain

import (
	"fmt"

	"github.com/weir-metrics/weir/metric"
)

// Brief says why something is not served in one short sentence, with the reason's
// name at its end, by which the documentation explains it: "container app has no
// number: it was seen once, and a rate needs two readings (FirstSample)".
//
// It holds nothing that changes while the reason stays, so that whoever shows each
// text once shows it once; and nothing of the errors that reads end with, for they
// name addresses.
func (r *Ruling) Brief() string {
	return fmt.Sprintf("%s (%v)", r.plain(), r.Reason)
}

func (r *Ruling) plain() string {
	ev := metric.Evidence{Limit: r.evidence.Limit}
	if r.Reason == metric.NodeNotReady {
		ev.Cause = r.evidence.Cause
	}
	s := r.Reason.Sentence(r.group, ev)
	life := r.Reason.Layer() == metric.LayerLife
	switch {
	case r.Served, r.Reason == metric.PodFinished:
		return s
	case r.Late && r.kind == metric.Container:
		return "its node has not been read since the container started"
	case r.Late:
		return "its node has not been read since the pod started"
	case r.Reason == metric.PodPending && r.Container != "" && r.Said != "":
		return fmt.Sprintf("%s: container %s waits: %s", s, r.Container, r.Said)
	case !life && r.Said != "":
		return r.Said
	case r.Reason == metric.PodPending, r.kind == metric.Container:
	case r.Container != "":
		s = fmt.Sprintf("container %s has no number: %s", r.Container, s)
	case r.Reason == metric.ContainerNotStarted:
		s = "no container of the pod has started"
	case r.Reason == metric.ContainerFinished:
		s = "the pod's containers have ended"
	}
	if life && r.Said != "" {
		s += ": " + r.Said
	}
	return s
}
