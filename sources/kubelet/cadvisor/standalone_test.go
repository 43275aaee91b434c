package cadvisor

import (
	"testing"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// A cAdvisor that runs on its own has the runtime's labels with a prefix, and no
// labels on the cgroup of a pod.
func TestStandalone(t *testing.T) {
	const (
		dir    = "/kubepods/burstable/pod80cd749e-fe99-4226-bfc9-fe1dcb4e4831"
		labels = `container_label_io_kubernetes_pod_name="web",container_label_io_kubernetes_pod_namespace="shop",container_label_io_kubernetes_pod_uid="80cd749e"`
	)
	body := `# TYPE cadvisor_version_info gauge
cadvisor_version_info{cadvisorVersion="v0.60.6"} 1
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container_label_io_kubernetes_container_name="",container_label_io_kubernetes_pod_name="",container_label_io_kubernetes_pod_namespace="",cpu="total",id="/",image="",name=""} 100 1795233600123
container_cpu_usage_seconds_total{container_label_io_kubernetes_container_name="",container_label_io_kubernetes_pod_name="",container_label_io_kubernetes_pod_namespace="",cpu="total",id="/docker/a1",image="nginx",name="front"} 4 1795233600123
container_cpu_usage_seconds_total{container_label_io_kubernetes_container_name="",container_label_io_kubernetes_pod_name="",container_label_io_kubernetes_pod_namespace="",cpu="total",id="` + dir + `",image="",name=""} 3 1795233600123
container_cpu_usage_seconds_total{container_label_io_kubernetes_container_name="app",` + labels + `,cpu="total",id="` + dir + `/c0ffee",image="web",name="c0ffee"} 2 1795233600123
container_cpu_usage_seconds_total{container_label_io_kubernetes_container_name="",` + labels + `,cpu="total",id="` + dir + `/5a4d",image="pause",name="5a4d"} 1 1795233600123
# TYPE container_network_receive_bytes_total counter
container_network_receive_bytes_total{container_label_io_kubernetes_container_name="",` + labels + `,id="` + dir + `/5a4d",image="pause",interface="eth0",name="5a4d"} 77 1795233600123
# TYPE go_goroutines gauge
go_goroutines 9
# TYPE machine_cpu_cores gauge
machine_cpu_cores{boot_id="b",machine_id="m",system_uuid="s"} 8
`
	var b metric.Batch
	if err := New().Parse([]byte(body), payload.Request{Node: "n1"}, &b); err != nil {
		t.Fatal(err)
	}
	if b.Cores != 8 {
		t.Errorf("%v cores, want 8", b.Cores)
	}
	for _, want := range []struct {
		entity metric.Entity
		id     metric.ContainerID
		metric metric.ID
		value  float64
	}{
		{metric.Entity{Kind: metric.Node, Node: "n1"}, "", metric.CPUUsage, 100e9},
		{metric.Entity{Kind: metric.System, Node: "n1", Name: "/docker/a1"}, "", metric.CPUUsage, 4e9},
		{metric.Entity{Kind: metric.System, Node: "n1", Name: dir}, "", metric.CPUUsage, 3e9},
		{metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: "app"}, "c0ffee", metric.CPUUsage, 2e9},
		{metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: "web"}, "5a4d", metric.NetworkRx, 77},
	} {
		found := false
		for i := range b.Samples {
			s := &b.Samples[i]
			v, ok := s.Values.Get(want.metric)
			found = found || ok && s.Entity == want.entity && s.Instance.ID == want.id && v == want.value
		}
		if !found {
			t.Errorf("no sample of %v has %v %v", want.entity, want.metric, want.value)
		}
	}
	for i := range b.Samples {
		if s := &b.Samples[i]; s.Entity.Kind == metric.Pod && s.Values.Has(metric.CPUUsage) {
			t.Errorf("the sandbox counts as the pod: %v", s.Entity)
		}
	}
}
