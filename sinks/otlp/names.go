package otlp

import (
	"maps"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// schemaURL is the version of the semantic conventions that names.go has.
const schemaURL = "https://opentelemetry.io/schemas/1.43.0"

// form is how the values of a metric can be added up and change over time.
type form uint8

// The forms.
const (
	gauge   form = iota
	counter      // a monotonic sum
	sum          // a sum that can fall
)

// definition is a metric of OTLP.
type definition struct {
	name, unit, help string
	form             form
	attributes       []*commonpb.KeyValue

	encoded         []byte // fields of a metric: name, help and unit
	trailer         []byte // fields of a metric's data after its points
	pointAttributes []byte // fields of each point
}

// convention is a row of the semantic conventions: the name without the prefix of the kind.
type convention struct {
	name, unit string
	form       form
	attribute  *commonpb.KeyValue
}

var (
	diskRead  = attribute("disk.io.direction", "read")
	diskWrite = attribute("disk.io.direction", "write")
	receive   = attribute("network.io.direction", "receive")
	transmit  = attribute("network.io.direction", "transmit")
	major     = attribute("system.paging.fault.type", "major")
)

// prefixes are those of the conventions for each kind of entity, or its volumes.
var prefixes = map[string]string{
	"node": "k8s.node.", "pod": "k8s.pod.", "container": "container.", "system": "k8s.node.system_container.", "pod volume": "k8s.pod.volume.",
}

// running are the conventions for nodes, pods and containers.
var running = map[metric.ID]convention{
	metric.CPUUsage:              {"cpu.time", "s", counter, nil},
	metric.CPUUsageRate:          {"cpu.usage", "{cpu}", gauge, nil},
	metric.MemoryUsage:           {"memory.usage", "By", gauge, nil},
	metric.MemoryAvailable:       {"memory.available", "By", sum, nil},
	metric.MemoryRSS:             {"memory.rss", "By", sum, nil},
	metric.MemoryWorkingSet:      {"memory.working_set", "By", sum, nil},
	metric.MemoryMajorPageFaults: {"memory.paging.faults", "{fault}", counter, major},
	metric.FilesystemUsage:       {"filesystem.usage", "By", sum, nil},
	metric.FilesystemLimit:       {"filesystem.capacity", "By", sum, nil},
	metric.FilesystemAvailable:   {"filesystem.available", "By", sum, nil},
	metric.Uptime:                {"uptime", "s", gauge, nil},
}

// network are the conventions for nodes and pods, beside running.
var network = map[metric.ID]convention{
	metric.NetworkRx:       {"network.io", "By", counter, receive},
	metric.NetworkTx:       {"network.io", "By", counter, transmit},
	metric.NetworkRxErrors: {"network.errors", "{error}", counter, receive},
	metric.NetworkTxErrors: {"network.errors", "{error}", counter, transmit},
}

// conventions are those of each kind of entity, and of volumes. Names that begin with k8s. are whole.
// Interfaces and devices have none: the total of an entity has their names, and a receiver that adds up
// would count both.
var conventions = map[string]map[metric.ID]convention{
	"pod": join(running, network),
	"node": join(running, network, map[metric.ID]convention{
		metric.CPUNodeAllocatable:              {"cpu.allocatable", "{cpu}", sum, nil},
		metric.MemoryNodeAllocatable:           {"memory.allocatable", "By", sum, nil},
		metric.EphemeralStorageNodeAllocatable: {"ephemeral_storage.allocatable", "By", sum, nil},
	}),
	"container": join(running, map[metric.ID]convention{
		// The conventions call the memory in use of a container a counter. It can fall.
		metric.MemoryUsage:             {"memory.usage", "By", sum, nil},
		metric.DiskReadBytes:           {"disk.io", "By", counter, diskRead},
		metric.DiskWriteBytes:          {"disk.io", "By", counter, diskWrite},
		metric.CPURequest:              {"k8s.container.cpu.request.desired", "{cpu}", sum, nil},
		metric.CPULimit:                {"k8s.container.cpu.limit.desired", "{cpu}", sum, nil},
		metric.CPUUtilization:          {"k8s.container.cpu.request.utilization", "1", gauge, nil},
		metric.MemoryRequest:           {"k8s.container.memory.request.desired", "By", sum, nil},
		metric.MemoryLimit:             {"k8s.container.memory.limit.desired", "By", sum, nil},
		metric.EphemeralStorageRequest: {"k8s.container.ephemeral_storage.request", "By", sum, nil},
		metric.EphemeralStorageLimit:   {"k8s.container.ephemeral_storage.limit", "By", sum, nil},
	}),
	"system": {
		metric.CPUUsage:         {"cpu.time", "s", counter, nil},
		metric.CPUUsageRate:     {"cpu.usage", "{cpu}", gauge, nil},
		metric.MemoryUsage:      {"memory.usage", "By", sum, nil},
		metric.MemoryWorkingSet: {"memory.working_set", "By", sum, nil},
	},
	"pod volume": {
		metric.FilesystemUsage:      {"usage", "By", sum, nil},
		metric.FilesystemLimit:      {"capacity", "By", sum, nil},
		metric.FilesystemAvailable:  {"available", "By", sum, nil},
		metric.FilesystemInodes:     {"inode.count", "{inode}", sum, nil},
		metric.FilesystemInodesFree: {"inode.free", "{inode}", sum, nil},
		metric.FilesystemInodesUsed: {"inode.used", "{inode}", sum, nil},
	},
}

// join returns the rows of several tables. A later row replaces an earlier one.
func join(tables ...map[metric.ID]convention) map[metric.ID]convention {
	all := map[metric.ID]convention{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// units are those of UCUM.
var units = [...]string{
	metric.Nanocores: "{cpu}", metric.Nanoseconds: "s", metric.Bytes: "By", metric.BytesPerSecond: "By/s",
	metric.Count: "1", metric.PerSecond: "1/s", metric.Ratio: "1",
}

// define returns the definition of a metric of a kind of entity, or of a kind of its parts.
func define(k metric.Kind, part string, id metric.ID) definition {
	d := &metric.Catalogue[id]
	kind := strings.TrimSpace(k.String() + " " + part)
	if c, ok := conventions[kind][id]; ok {
		name := c.name
		if !strings.HasPrefix(name, "k8s.") {
			name = prefixes[kind] + name
		}
		own := definition{name: name, unit: c.unit, form: c.form, help: series.Help(k, part, d)}
		if c.attribute != nil {
			own.attributes = []*commonpb.KeyValue{c.attribute}
		}
		return own
	}
	own := definition{name: "weir." + strings.ReplaceAll(kind, " ", ".") + "." + strings.ReplaceAll(d.Name, "/", "."), unit: units[d.Unit], help: series.Help(k, part, d)}
	if d.Type == metric.Cumulative {
		own.form = counter
	}
	return own
}
