package otlp

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// labels are what is sent of an entity beside its values.
type labels struct {
	resource *resourcepb.Resource
	encoded  []byte // resource
	part     []byte // encoded field of each point; nil for a whole entity
	uid      metric.PodUID
	id       metric.ContainerID
	start    int64 // of the counters, in nanoseconds since the Unix epoch; 0 if unknown
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

// Describe returns the attributes of an entity, and those of its instance. A source that does not know
// the instance changes nothing.
func (r *request) Describe(l labels, s *metric.Sample) (_ labels, renamed bool) {
	i := &s.Instance
	l.start = 0
	if i.Origin >= metric.StartReported {
		l.start = i.Start
	}
	if l.resource != nil && (i.UID == "" || i.UID == l.uid) && (i.ID == "" || i.ID == l.id) {
		return l, false
	}
	renamed = l.resource != nil
	if i.UID != "" && i.UID != l.uid {
		l.uid, l.id = i.UID, "" // another pod has other containers
	}
	if i.ID != "" {
		l.id = i.ID
	}
	l.resource = r.resource(&s.Entity, &l)
	l.encoded = encode(l.resource)
	own, part := series.LabelsOf(&s.Entity)
	if part != "" {
		name := partAttributes[part]
		name = cmp.Or(name, "weir.part")
		l.part = appendMessage(nil, fieldAttributes, encode(attribute(name, own.Get(part))))
	}
	return l, renamed
}

// resource returns the attributes of an entity, with the IDs in l.
func (r *request) resource(e *metric.Entity, l *labels) *resourcepb.Resource {
	all := map[string]string{"k8s.node.name": string(e.Node), "k8s.namespace.name": string(e.Namespace), "k8s.pod.name": string(e.Pod)}
	if e.Pod != "" {
		all["k8s.pod.uid"] = string(l.uid)
	}
	switch e.Kind {
	case metric.Container:
		all["k8s.container.name"], all["container.id"] = e.Name, string(l.id)
	case metric.System:
		all["k8s.node.system_container.name"] = e.Name
	}
	for name, value := range r.own {
		if _, known := all[name]; !known {
			all[name] = value
		}
	}
	return &resourcepb.Resource{Attributes: attributes(all)}
}
