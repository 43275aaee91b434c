package resourcemetrics

import (
	"fmt"

	"github.com/weir-metrics/weir/metric"
)

// String says the absence in one short sentence, with the reason's name at its
// end, by which the documentation explains it. It says nothing of the errors
// that scrapes end with: they name addresses, which are no business of who may
// read one namespace's pods.
func (a absence) String() string {
	s := a.reason.Sentence(metric.CPU, metric.Evidence{})
	switch {
	case a.container != "":
		s = metric.Incomplete.Sentence(metric.CPU, metric.Evidence{Name: a.container, Cause: a.reason})
	case a.young:
		s = "its node has not been read since the pod started"
	case a.reason == metric.ContainerNotStarted:
		s = "no container of the pod has started"
	case a.reason == metric.ContainerFinished:
		s = "the pod's containers have ended"
	}
	if a.detail != "" {
		s += ": " + a.detail
	}
	return fmt.Sprintf("%s (%v)", s, a.reason)
}
