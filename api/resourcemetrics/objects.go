package resourcemetrics

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/metrics/pkg/apis/metrics"
)

// nodeObjects returns r as API objects that were created now. They are of no version: the
// library converts them to the version of the request, without a copy.
func (l *usageList) nodeObjects(now time.Time) []metrics.NodeMetrics {
	items := make([]metrics.NodeMetrics, len(l.items))
	for i := range l.items {
		o := &l.items[i]
		items[i] = metrics.NodeMetrics{
			ObjectMeta: l.metaOf(o).apiObjectMeta(now),
			Timestamp:  o.timestamp(),
			Window:     metav1.Duration{Duration: o.window.Length},
			Usage:      resourceList(&l.usages[o.from], o.swap),
		}
	}
	return items
}

// podObjects returns r as API objects that were created now, like nodeObjects.
func (l *usageList) podObjects(now time.Time) []metrics.PodMetrics {
	items := make([]metrics.PodMetrics, len(l.items))
	containers := make([]metrics.ContainerMetrics, len(l.usages))
	for i := range l.items {
		o := &l.items[i]
		for j := o.from; j < o.to; j++ {
			containers[j] = metrics.ContainerMetrics{Name: l.usages[j].Name, Usage: resourceList(&l.usages[j], o.swap)}
		}
		items[i] = metrics.PodMetrics{
			ObjectMeta: l.metaOf(o).apiObjectMeta(now),
			Timestamp:  o.timestamp(),
			Window:     metav1.Duration{Duration: o.window.Length},
			Containers: containers[o.from:o.to:o.to],
		}
	}
	return items
}

// apiObjectMeta returns s as ObjectMeta. The labels are shared with the facts, which are
// immutable.
func (m *objectMeta) apiObjectMeta(now time.Time) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.name, Namespace: string(m.namespace), Labels: m.labels.all,
		CreationTimestamp: metav1.NewTime(now),
	}
}

func (u *usageItem) timestamp() metav1.Time { return metav1.NewTime(time.Unix(0, u.window.End)) }

// tableColumns are the columns of both resources, with metrics-server's names. kubectl adds the
// namespace itself when it lists all namespaces.
var tableColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the pod or node"},
	{Name: "cpu", Type: "string", Format: "quantity", Description: "CPU in use, in cores, over the window"},
	{Name: "memory", Type: "string", Format: "quantity", Description: "Working set in bytes"},
	{Name: "Window", Type: "string", Format: "duration", Description: "Time over which CPU was measured"},
}

// tableOf returns an object or list of the API as a table.
func tableOf(object runtime.Object) (*metav1.Table, error) {
	t := &metav1.Table{ColumnDefinitions: tableColumns, Rows: []metav1.TableRow{}}
	switch o := object.(type) {
	case *metrics.PodMetrics:
		t.Rows = append(t.Rows, podRow(o))
	case *metrics.NodeMetrics:
		t.Rows = append(t.Rows, nodeRow(o))
	case *metrics.PodMetricsList:
		t.ListMeta = o.ListMeta
		for i := range o.Items {
			t.Rows = append(t.Rows, podRow(&o.Items[i]))
		}
	case *metrics.NodeMetricsList:
		t.ListMeta = o.ListMeta
		for i := range o.Items {
			t.Rows = append(t.Rows, nodeRow(&o.Items[i]))
		}
	default:
		return nil, fmt.Errorf("make a table of metrics: unexpected type %T", object)
	}
	return t, nil
}

func podRow(p *metrics.PodMetrics) metav1.TableRow {
	cpu, memory := resource.Quantity{Format: resource.DecimalSI}, resource.Quantity{Format: resource.BinarySI}
	for i := range p.Containers {
		cpu.Add(p.Containers[i].Usage[corev1.ResourceCPU])
		memory.Add(p.Containers[i].Usage[corev1.ResourceMemory])
	}
	return tableRow(p, p.Name, cpu, memory, p.Window)
}

func nodeRow(n *metrics.NodeMetrics) metav1.TableRow {
	return tableRow(n, n.Name, n.Usage[corev1.ResourceCPU], n.Usage[corev1.ResourceMemory], n.Window)
}

func tableRow(o runtime.Object, name string, cpu, memory resource.Quantity, window metav1.Duration) metav1.TableRow {
	return metav1.TableRow{
		Cells:  []any{name, cpu.String(), memory.String(), window.Duration.String()},
		Object: runtime.RawExtension{Object: o},
	}
}
