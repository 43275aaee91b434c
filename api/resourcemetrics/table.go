package resourcemetrics

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// columns are those of both resources, as metrics-server names them. kubectl
// adds the namespace itself where it lists all.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the pod or node"},
	{Name: "cpu", Type: "string", Format: "quantity", Description: "CPU in use, in cores, over the window"},
	{Name: "memory", Type: "string", Format: "quantity", Description: "Working set in bytes"},
	{Name: "Window", Type: "string", Format: "duration", Description: "Time over which CPU was measured"},
}

// podTable returns a PodMetrics or PodMetricsList as a table.
func podTable(object runtime.Object) (*metav1.Table, error) {
	switch o := object.(type) {
	case *v1beta1.PodMetrics:
		return &metav1.Table{ColumnDefinitions: columns, Rows: []metav1.TableRow{podRow(o)}}, nil
	case *v1beta1.PodMetricsList:
		t := &metav1.Table{ListMeta: o.ListMeta, ColumnDefinitions: columns, Rows: make([]metav1.TableRow, len(o.Items))}
		for i := range o.Items {
			t.Rows[i] = podRow(&o.Items[i])
		}
		return t, nil
	}
	return nil, fmt.Errorf("make a table of pods: a %T is none", object)
}

// nodeTable returns a NodeMetrics or NodeMetricsList as a table.
func nodeTable(object runtime.Object) (*metav1.Table, error) {
	switch o := object.(type) {
	case *v1beta1.NodeMetrics:
		return &metav1.Table{ColumnDefinitions: columns, Rows: []metav1.TableRow{nodeRow(o)}}, nil
	case *v1beta1.NodeMetricsList:
		t := &metav1.Table{ListMeta: o.ListMeta, ColumnDefinitions: columns, Rows: make([]metav1.TableRow, len(o.Items))}
		for i := range o.Items {
			t.Rows[i] = nodeRow(&o.Items[i])
		}
		return t, nil
	}
	return nil, fmt.Errorf("make a table of nodes: a %T is none", object)
}

func podRow(p *v1beta1.PodMetrics) metav1.TableRow {
	cpu, memory := resource.Quantity{Format: resource.DecimalSI}, resource.Quantity{Format: resource.BinarySI}
	for i := range p.Containers {
		cpu.Add(p.Containers[i].Usage[corev1.ResourceCPU])
		memory.Add(p.Containers[i].Usage[corev1.ResourceMemory])
	}
	return row(p, p.Name, cpu, memory, p.Window)
}

func nodeRow(n *v1beta1.NodeMetrics) metav1.TableRow {
	return row(n, n.Name, n.Usage[corev1.ResourceCPU], n.Usage[corev1.ResourceMemory], n.Window)
}

func row(o runtime.Object, name string, cpu, memory resource.Quantity, window metav1.Duration) metav1.TableRow {
	return metav1.TableRow{
		Cells:  []any{name, cpu.String(), memory.String(), window.Duration.String()},
		Object: runtime.RawExtension{Object: o},
	}
}
