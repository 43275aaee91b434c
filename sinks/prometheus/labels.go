package prometheus

import (
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// labelSet is the labels of one entity, in the order they are written.
type labelSet struct {
	n      int
	names  [5]string
	values [5]string
}

func (l *labelSet) add(name, value string) {
	l.names[l.n], l.values[l.n] = name, value
	l.n++
}

func (l *labelSet) get(name string) string {
	for i := range l.n {
		if l.names[i] == name {
			return l.values[i]
		}
	}
	return ""
}

// labelsOf returns the labels of e, and which kind of part it is; empty for a
// whole entity.
func labelsOf(e *metric.Entity) (l labelSet, part string) {
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
	default: // a source's own kind: it must not become part of a name
		part = "part"
		l.add(part, e.Part)
	}
	return l, part
}

// appendLabels appends {a="b",...}, or nothing if there are none.
func appendLabels(buf []byte, l *labelSet) []byte {
	if l.n == 0 {
		return buf
	}
	sep := byte('{')
	for i := range l.n {
		buf = append(buf, sep)
		buf = append(buf, l.names[i]...)
		buf = append(buf, '=', '"')
		buf = appendEscaped(buf, l.values[i])
		buf = append(buf, '"')
		sep = ','
	}
	return append(buf, '}')
}

// appendEscaped appends s as a label's value.
func appendEscaped(buf []byte, s string) []byte {
	if !strings.ContainsAny(s, "\\\"\n") {
		return append(buf, strings.ToValidUTF8(s, "\uFFFD")...)
	}
	for _, r := range s { // what is not UTF-8 becomes U+FFFD
		switch r {
		case '\\':
			buf = append(buf, `\\`...)
		case '"':
			buf = append(buf, `\"`...)
		case '\n':
			buf = append(buf, `\n`...)
		default:
			buf = append(buf, string(r)...)
		}
	}
	return buf
}
