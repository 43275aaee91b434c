package otlp

import (
	"os"
	"reflect"
	"strings"
	"testing"

	otelattribute "go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/containerconv"
	"go.opentelemetry.io/otel/semconv/v1.43.0/k8sconv"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weir-metrics/weir/metric"
)

// instrument is a metric in OpenTelemetry's generated code. Its first field is the kind of instrument.
type instrument interface {
	Name() string
	Unit() string
}

// official are the metrics of the conventions that weir sends.
var official = []instrument{
	containerconv.CPUTime{}, containerconv.CPUUsage{}, containerconv.DiskIO{}, containerconv.FilesystemAvailable{}, containerconv.FilesystemCapacity{},
	containerconv.FilesystemUsage{}, containerconv.MemoryAvailable{}, containerconv.MemoryPagingFaults{}, containerconv.MemoryRss{},
	containerconv.MemoryUsage{}, containerconv.MemoryWorkingSet{}, containerconv.Uptime{},
	k8sconv.ContainerCPULimitDesired{}, k8sconv.ContainerCPURequestDesired{}, k8sconv.ContainerCPURequestUtilization{}, k8sconv.ContainerEphemeralStorageLimit{},
	k8sconv.ContainerEphemeralStorageRequest{}, k8sconv.ContainerMemoryLimitDesired{}, k8sconv.ContainerMemoryRequestDesired{},
	k8sconv.NodeCPUAllocatable{}, k8sconv.NodeCPUTime{}, k8sconv.NodeCPUUsage{}, k8sconv.NodeEphemeralStorageAllocatable{}, k8sconv.NodeFilesystemAvailable{},
	k8sconv.NodeFilesystemCapacity{}, k8sconv.NodeFilesystemUsage{}, k8sconv.NodeMemoryAllocatable{}, k8sconv.NodeMemoryAvailable{}, k8sconv.NodeMemoryPagingFaults{},
	k8sconv.NodeMemoryRss{}, k8sconv.NodeMemoryUsage{}, k8sconv.NodeMemoryWorkingSet{}, k8sconv.NodeNetworkErrors{}, k8sconv.NodeNetworkIO{},
	k8sconv.NodeSystemContainerCPUTime{}, k8sconv.NodeSystemContainerCPUUsage{}, k8sconv.NodeSystemContainerMemoryUsage{}, k8sconv.NodeSystemContainerMemoryWorkingSet{},
	k8sconv.NodeUptime{}, k8sconv.PodCPUTime{}, k8sconv.PodCPUUsage{}, k8sconv.PodFilesystemAvailable{}, k8sconv.PodFilesystemCapacity{}, k8sconv.PodFilesystemUsage{},
	k8sconv.PodMemoryAvailable{}, k8sconv.PodMemoryPagingFaults{}, k8sconv.PodMemoryRss{}, k8sconv.PodMemoryUsage{}, k8sconv.PodMemoryWorkingSet{},
	k8sconv.PodNetworkErrors{}, k8sconv.PodNetworkIO{}, k8sconv.PodUptime{}, k8sconv.PodVolumeAvailable{}, k8sconv.PodVolumeCapacity{}, k8sconv.PodVolumeInodeCount{},
	k8sconv.PodVolumeInodeFree{}, k8sconv.PodVolumeInodeUsed{}, k8sconv.PodVolumeUsage{},
}

// Names, units and instruments are those of OpenTelemetry's own code, and all of them are used.
func TestNamesAreOfTheConventions(t *testing.T) {
	unused := map[string]instrument{}
	for _, i := range official {
		unused[i.Name()] = i
	}
	for kind, table := range conventions {
		for id := range table {
			got := define(kindOf(kind), partOf(kind), id)
			i := unused[got.name]
			if i == nil {
				for _, other := range official {
					if other.Name() == got.name {
						i = other
					}
				}
			}
			if i == nil {
				t.Errorf("%s of a %s: the conventions have no %s", id, kind, got.name)
				continue
			}
			delete(unused, got.name)
			form := map[form]string{gauge: "Gauge", counter: "Counter", sum: "UpDownCounter"}[got.form]
			instrument := strings.TrimPrefix(strings.TrimPrefix(reflect.TypeOf(i).Field(0).Name, "Int64"), "Float64")
			if got.name == "container.memory.usage" { // a counter by the conventions
				instrument = "UpDownCounter"
			}
			if got.unit != i.Unit() || form != instrument {
				t.Errorf("%s is a %s in %s, want a %s in %s", got.name, form, got.unit, instrument, i.Unit())
			}
		}
	}
	for name := range unused {
		t.Errorf("%s is not sent", name)
	}
	if schemaURL != semconv.SchemaURL {
		t.Errorf("the schema is %s, want %s", schemaURL, semconv.SchemaURL)
	}
}

// The page lists every name of the conventions.
func TestPageListsTheNames(t *testing.T) {
	page, err := os.ReadFile("../../docs/otlp.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind, table := range conventions {
		for id, c := range table {
			short := strings.HasPrefix(kind, "node") || kind == "pod"
			if name := define(kindOf(kind), partOf(kind), id).name; !strings.Contains(string(page), "`"+name+"`") && !(short && strings.Contains(string(page), "`"+c.name+"`")) {
				t.Errorf("docs/otlp.md does not list %s", name)
			}
		}
	}
}

// kindOf and partOf return the kind of entity and of part of a key of conventions.
func kindOf(key string) (k metric.Kind) {
	name, _, _ := strings.Cut(key, " ")
	for k.String() != name {
		k++
	}
	return k
}

func partOf(key string) string {
	_, part, _ := strings.Cut(key, " ")
	return part
}

// Every metric has a name of its own; only the two directions of one metric share a name.
func TestNamesDiffer(t *testing.T) {
	for k := range metric.Kind(metric.NumKinds) {
		for _, part := range []string{"", "device", "interface", "volume", "accelerator"} {
			used := map[string]metric.ID{}
			for id := range metric.NumMetrics {
				d := define(k, part, id)
				name := d.name + text(d.attributes)
				if other, has := used[name]; has {
					t.Errorf("%s and %s of a %s %s are both %s", other, id, k, part, name)
				}
				used[name] = id
			}
		}
	}
}

// attributesOf returns the attributes of a sample's resource.
func attributesOf(t *testing.T, r *request, s *metric.Sample, l *labels) []*commonpb.KeyValue {
	t.Helper()
	var resource resourcepb.Resource
	if err := proto.Unmarshal(r.appendResource(nil, &s.Entity, l), &resource); err != nil {
		t.Fatal(err)
	}
	return resource.Attributes
}

// The names of attributes are those of OpenTelemetry's own code.
func TestAttributesAreOfTheConventions(t *testing.T) {
	official := map[string]bool{}
	for _, key := range []otelattribute.Key{
		semconv.K8SNodeNameKey, semconv.K8SNamespaceNameKey, semconv.K8SPodNameKey, semconv.K8SPodUIDKey, semconv.K8SContainerNameKey, semconv.ContainerIDKey,
		semconv.K8SNodeSystemContainerNameKey, semconv.K8SVolumeNameKey, semconv.SystemDeviceKey, semconv.NetworkInterfaceNameKey, semconv.HwIDKey,
		semconv.DiskIODirectionKey, semconv.NetworkIODirectionKey, semconv.SystemPagingFaultTypeKey,
	} {
		official[string(key)] = true
	}
	used := []string{diskRead.Key, diskWrite.Key, receive.Key, transmit.Key, major.Key}
	for _, name := range partAttributes {
		used = append(used, name)
	}
	r := newRequest(&Options{})
	for i := range batch(1).Samples {
		sample := &batch(1).Samples[i]
		l, _ := r.Describe(labels{}, sample)
		for _, a := range attributesOf(t, r, sample, &l) {
			used = append(used, a.Key)
		}
	}
	for _, name := range used {
		if !official[name] {
			t.Errorf("the conventions have no attribute %s", name)
		}
	}
}
