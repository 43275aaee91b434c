package series

import (
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// Labels are the labels of one entity, in the order of output.
type Labels struct {
	n     int
	pairs [5]Label
}

// Label is a name and its value.
type Label struct{ Name, Value string }

func (l *Labels) add(name, value string) {
	l.pairs[l.n] = Label{name, value}
	l.n++
}

// All returns the labels. The slice is valid as long as l.
func (l *Labels) All() []Label { return l.pairs[:l.n] }

// Get returns the value of a label; empty if there is none of that name.
func (l *Labels) Get(name string) string {
	for _, p := range l.All() {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// LabelsOf returns the labels of e and the kind of part it is; "" for a whole entity.
func LabelsOf(e *metric.Entity) (l Labels, part string) {
	switch e.Kind {
	case metric.Namespaced:
		l.add("namespace", string(e.Namespace))
	case metric.Node:
		l.add("node", string(e.Node))
	case metric.System:
		l.add("node", string(e.Node))
		l.add("cgroup", e.Name)
	case metric.Pod, metric.Container:
		l.add("node", string(e.Node))
		l.add("namespace", string(e.Namespace))
		l.add("pod", string(e.Pod))
		if e.Kind == metric.Container {
			l.add("container", e.Name)
		}
	}
	if e.Part == "" {
		return l, ""
	}
	part, name, ok := strings.Cut(e.Part, ":")
	switch {
	case ok && (part == "device" || part == "interface" || part == "volume" || part == "accelerator"):
		l.add(part, name)
	default: // a kind of the source's own, which must not become part of a name
		part = "part"
		l.add(part, e.Part)
	}
	return l, part
}
