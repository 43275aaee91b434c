package agents

import (
	"context"
	"net/http"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/metric"
)

// KubeletDevices asks this machine's kubelet for its devices, for a request or a scrape. It is a
// Prometheus collector.
type KubeletDevices struct {
	node   metric.NodeName
	socket string
}

// NewKubeletDevices returns the devices of a node whose kubelet has the directory kubeletRoot.
func NewKubeletDevices(node metric.NodeName, kubeletRoot string) *KubeletDevices {
	return &KubeletDevices{node, filepath.Join(kubeletRoot, "pod-resources", "kubelet.sock")}
}

// Read asks the kubelet. Its error is a *weirdev.Problem.
func (k *KubeletDevices) Read(ctx context.Context) (*cluster.NodeDevices, error) {
	d, err := informer.ListKubeletDevices(ctx, k.socket, k.node)
	if err != nil {
		return nil, &weirdev.Problem{Status: http.StatusServiceUnavailable, Message: err.Error(),
			Hint: "Only the kubelet knows who has which device. Does it run, and does the agent's pod mount the folder " + filepath.Dir(k.socket) + "?"}
	}
	return d, nil
}

var (
	devicesKnownDesc = prometheus.NewDesc("weir_devices_known",
		"1 if the kubelet answers which devices it has allocated, 0 if not; absent if it has no socket for that.", nil, nil)
	allocatableDevicesDesc = prometheus.NewDesc("weir_allocatable_devices",
		"Healthy devices of device plugins on this node, free or allocated, by resource.", []string{"resource"}, nil)
	containerDevicesDesc = prometheus.NewDesc("weir_container_devices",
		"Devices of device plugins that the kubelet has allocated to a container. They may be idle.",
		[]string{"namespace", "pod", "container", "resource"}, nil)
	claimedDevicesDesc = prometheus.NewDesc("weir_container_claimed_devices",
		"Devices of a DRA driver that a container has by a ResourceClaim. Containers with the same claim have the same devices. They may be idle.",
		[]string{"namespace", "pod", "container", "claim", "driver", "pool"}, nil)
)

// Describe implements prometheus.Collector.
func (k *KubeletDevices) Describe(to chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{devicesKnownDesc, allocatableDevicesDesc, containerDevicesDesc, claimedDevicesDesc} {
		to <- d
	}
}

// Collect asks the kubelet, and sends the metrics. It sends none on a machine without a kubelet.
func (k *KubeletDevices) Collect(to chan<- prometheus.Metric) {
	if _, err := os.Stat(k.socket); err != nil {
		return
	}
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	all, err := k.Read(context.Background())
	if err != nil {
		gauge(devicesKnownDesc, 0)
		return
	}
	gauge(devicesKnownDesc, 1)
	for _, r := range all.Allocatable {
		gauge(allocatableDevicesDesc, len(r.Devices), r.Resource)
	}
	for _, c := range all.Containers {
		labels := []string{string(c.Namespace), string(c.Pod), c.Container}
		for _, r := range c.Devices {
			gauge(containerDevicesDesc, len(r.Devices), append(labels[:3:3], r.Resource)...)
		}
		claimed := map[[3]string]int{}
		for _, r := range c.Claimed {
			claimed[[3]string{r.Claim, r.Driver, r.Pool}]++
		}
		for device, n := range claimed {
			gauge(claimedDevicesDesc, n, append(labels[:3:3], device[:]...)...)
		}
	}
}
