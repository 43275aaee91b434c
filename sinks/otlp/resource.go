package otlp

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// labels are what is kept of an entity: which instance it is.
type labels struct {
	uid   metric.PodUID
	id    metric.ContainerID
	start int64 // of the counters, in nanoseconds since the Unix epoch; 0 if unknown
}

// attribute returns an attribute of type string. A node may report a name that is not UTF-8, which
// would make the whole request invalid.
func attribute(name, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: strings.ToValidUTF8(name, "\uFFFD"), Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: strings.ToValidUTF8(value, "\uFFFD")}}}
}

// attributes returns attributes, in the order of their names.
func attributes(values map[string]string) (all []*commonpb.KeyValue) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != "" {
			all = append(all, attribute(name, values[name]))
		}
	}
	return all
}

// partAttributes are the attributes of parts.
var partAttributes = map[string]string{
	"device": "system.device", "interface": "network.interface.name", "volume": "k8s.volume.name", "accelerator": "hw.id",
}

// Describe returns the IDs of an entity's instance. A source that does not know the instance changes nothing.
func (r *request) Describe(l labels, s *metric.Sample) (_ labels, renamed bool) {
	i := &s.Instance
	l.start = 0
	if i.Origin >= metric.StartReported {
		l.start = i.Start
	}
	if (i.UID == "" || i.UID == l.uid) && (i.ID == "" || i.ID == l.id) {
		return l, false
	}
	if i.UID != "" && i.UID != l.uid {
		l.uid, l.id = i.UID, "" // another pod has other containers
	}
	if i.ID != "" {
		l.id = i.ID
	}
	return l, true
}

// begin begins the points of an entity: it encodes its attributes.
func (r *request) begin(e *metric.Entity, l *labels) {
	r.addEntity()
	own, part := series.LabelsOf(e)
	r.entity, r.uid, r.id, r.definitions = e, l.uid, l.id, r.define(e.Kind, part)
	r.resource = r.appendResource(r.resource[:0], e, l)
	r.part = r.part[:0]
	if part != "" {
		r.part = appendAttribute(r.part, fieldAttributes, cmp.Or(partAttributes[part], "weir.part"), own.Get(part))
	}
}

// appendResource appends the attributes of an entity, and those of the sink that it does not have.
func (r *request) appendResource(to []byte, e *metric.Entity, l *labels) []byte {
	r.resourceNames = r.resourceNames[:0]
	add := func(name, value string) {
		if value != "" {
			to = appendAttribute(to, fieldResourceAttributes, name, value)
			r.resourceNames = append(r.resourceNames, name)
		}
	}
	if e.Kind == metric.Container {
		add("container.id", string(l.id))
		add("k8s.container.name", e.Name)
	}
	add("k8s.namespace.name", string(e.Namespace))
	add("k8s.node.name", string(e.Node))
	if e.Kind == metric.System {
		add("k8s.node.system_container.name", e.Name)
	}
	if e.Pod != "" {
		add("k8s.pod.name", string(e.Pod))
		add("k8s.pod.uid", string(l.uid))
	}
	for _, a := range r.own {
		if !slices.Contains(r.resourceNames, a.Key) {
			to = appendAttribute(to, fieldResourceAttributes, a.Key, a.Value.GetStringValue())
		}
	}
	return to
}

// appendAttribute appends a field with an attribute of type string. It makes the value valid UTF-8.
func appendAttribute(to []byte, field protowire.Number, name, value string) []byte {
	if !utf8.ValidString(value) { // a quarter of the time of ToValidUTF8
		value = strings.ToValidUTF8(value, "\uFFFD")
	}
	anyValue := fieldSize(len(value))
	to = appendSize(to, field, fieldSize(len(name))+fieldSize(anyValue))
	to = append(appendSize(to, fieldKey, len(name)), name...)
	to = appendSize(to, fieldAnyValue, anyValue)
	return append(appendSize(to, fieldString, len(value)), value...)
}
