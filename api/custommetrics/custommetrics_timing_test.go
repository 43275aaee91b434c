package custommetrics

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
)

// BenchmarkSelector requests 50 pods of a namespace of 100, in a cluster of 30,000, as one
// autoscaler does every 15 seconds.
func BenchmarkSelector(b *testing.B) {
	p := New(testCluster(b, 1000, 30).options())
	info := provider.CustomMetricInfo{GroupResource: schema.GroupResource{Resource: "pods"}, Namespaced: true, Metric: "network_receive_bytes_per_second"}
	half := labels.SelectorFromSet(labels.Set{"half": "1"})
	for name, selector := range map[string]labels.Selector{"pods": labels.Everything(), "interface": labels.SelectorFromSet(labels.Set{"interface": "eth0"})} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				list, err := p.GetMetricBySelector(b.Context(), "team-0123", half, info, selector)
				if err != nil || len(list.Items) != 50 {
					b.Fatalf("got %v, %v, want 50 pods", list, err)
				}
			}
		})
	}
}
