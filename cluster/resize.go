package cluster

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// Resize is a resize of a pod in place that its node has not applied, or not completely.
type Resize struct {
	// State is that of the pod's conditions: Deferred, Infeasible, InProgress or Error. It is empty if they
	// have none, as before the node has seen the resize.
	State string
	// Message is the node's about that state; at most 512 bytes.
	Message string
	// Applied are the requests and limits in force that differ from those of the specification, in the order
	// of the containers. Those of the pod itself come last.
	Applied []Applied
}

// Applied is a request or limit in force that differs from that of the specification.
type Applied struct {
	Container string // empty for the pod itself
	ID        metric.ID
	// Spec is the value of the specification.
	Spec float64
	// Value is the value in force, or negative for none.
	Value float64
}

// Of returns the part of a resize that is about a container. r may be nil. The result is nil if nothing of the
// container is to be applied.
func (r *Resize) Of(container string) *Resize {
	if r == nil {
		return nil
	}
	own := *r
	own.Applied = slices.DeleteFunc(slices.Clone(r.Applied), func(a Applied) bool { return a.Container != container })
	if len(own.Applied) == 0 {
		return nil
	}
	return &own
}

// InForce returns the request or limit in force of a container, or of the pod itself if container is empty; 0 for none.
// spec is that of the specification. r may be nil.
func (r *Resize) InForce(container string, id metric.ID, spec float64) float64 {
	if r != nil {
		for _, a := range r.Applied {
			if a.Container == container && a.ID == id {
				return max(0, a.Value)
			}
		}
	}
	return spec
}

// Describe describes the resize: "Deferred: app has CPU request 100m, not 200m". withNames names the
// containers.
func (r *Resize) Describe(withNames bool) string {
	var parts []string
	for i := range r.Applied {
		a := &r.Applied[i]
		text := a.String()
		if withNames && a.Container != "" && (i == 0 || r.Applied[i-1].Container != a.Container) {
			text = a.Container + " has " + text
		}
		parts = append(parts, text)
	}
	return strings.TrimSuffix(r.StateOrPending()+": "+strings.Join(parts, ", "), ": ")
}

// StateOrPending returns the state, or Pending if the conditions have none.
func (r *Resize) StateOrPending() string { return cmp.Or(r.State, "Pending") }

// String describes a value: "CPU request 100m, not 200m".
func (a Applied) String() string {
	format := humanize.Bytes
	if a.ID == metric.CPURequest || a.ID == metric.CPULimit {
		format = humanize.Cores
	}
	value := "none"
	if a.Value >= 0 {
		value = format(a.Value)
	}
	return a.Name() + " " + value + ", not " + format(a.Spec)
}

// Name returns which request or limit it is: "CPU request".
func (a Applied) Name() string { return appliedNames[a.ID] }

var appliedNames = map[metric.ID]string{
	metric.CPURequest: "CPU request", metric.CPULimit: "CPU limit", metric.MemoryRequest: "memory request", metric.MemoryLimit: "memory limit",
}
