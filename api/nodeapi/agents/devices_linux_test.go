package agents_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/nodeapi/agents"
	"github.com/weir-metrics/weir/api/weirdev"
)

// deviceKubelet is the PodResources API of a kubelet with one device of a plugin and two of a claim.
type deviceKubelet struct {
	podresources.UnimplementedPodResourcesListerServer
}

func (deviceKubelet) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	return &podresources.AllocatableResourcesResponse{Devices: []*podresources.ContainerDevices{{ResourceName: "x.io/gpu", DeviceIds: []string{"g0", "g1"}}}}, nil
}

func (deviceKubelet) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	return &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{{Namespace: "shop", Name: "web", Containers: []*podresources.ContainerResources{{
		Name: "app", Devices: []*podresources.ContainerDevices{{ResourceName: "x.io/gpu", DeviceIds: []string{"g1"}}},
		DynamicResources: []*podresources.DynamicResource{{ClaimName: "nics", ClaimNamespace: "shop", ClaimResources: []*podresources.ClaimResource{
			{DriverName: "nic.x.io", PoolName: "n1", DeviceName: "nic0"}, {DriverName: "nic.x.io", PoolName: "n1", DeviceName: "nic1"}}}},
	}}}}}, nil
}

// TestKubeletDevices reads the metrics and the answer of an agent before its kubelet has the socket,
// while the kubelet answers, and after it ended.
func TestKubeletDevices(t *testing.T) {
	root := t.TempDir()
	devices := agents.NewKubeletDevices("n1", root)
	socket := filepath.Join(root, "pod-resources", "kubelet.sock")
	handler := nodeapi.NewHandler(nodeapi.Options{Node: "n1", Devices: devices.Read})
	get := func() (code int, answer nodeapi.NodeDevices) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, weirdev.Path+"nodes/n1/devices", nil))
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		return w.Code, answer
	}
	if n := testutil.CollectAndCount(devices); n != 0 {
		t.Errorf("without a kubelet: %d series, want none", n)
	}
	if code, _ := get(); code != http.StatusServiceUnavailable {
		t.Errorf("without a kubelet: status %d, want 503", code)
	}
	if err := os.Mkdir(filepath.Dir(socket), 0o750); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // a kubelet that is killed leaves its socket
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, deviceKubelet{})
	ended := make(chan error)
	go func() { ended <- server.Serve(listener) }()

	const want = `# HELP weir_allocatable_devices Healthy devices of device plugins on this node, free or allocated, by resource.
# TYPE weir_allocatable_devices gauge
weir_allocatable_devices{resource="x.io/gpu"} 2
# HELP weir_container_claimed_devices Devices of a DRA driver that a container has by a ResourceClaim. Containers with the same claim have the same devices. They may be idle.
# TYPE weir_container_claimed_devices gauge
weir_container_claimed_devices{claim="nics",container="app",driver="nic.x.io",namespace="shop",pod="web",pool="n1"} 2
# HELP weir_container_devices Devices of device plugins that the kubelet has allocated to a container. They may be idle.
# TYPE weir_container_devices gauge
weir_container_devices{container="app",namespace="shop",pod="web",resource="x.io/gpu"} 1
# HELP weir_devices_known 1 if the kubelet answers which devices it has allocated, 0 if not; absent if it has no socket for that.
# TYPE weir_devices_known gauge
weir_devices_known 1
`
	if err := testutil.CollectAndCompare(devices, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	code, answer := get()
	if code != http.StatusOK || answer.Kind != nodeapi.DevicesKind || answer.Node != "n1" || len(answer.Containers) != 1 || len(answer.Containers[0].Claimed) != 2 {
		t.Errorf("status %d, %+v, want the devices of shop/web", code, answer)
	}
	server.Stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := testutil.CollectAndCompare(devices, strings.NewReader(strings.Replace(want[strings.Index(want, "# HELP weir_devices_known"):], "known 1\n", "known 0\n", 1))); err != nil {
		t.Errorf("after the kubelet ended: %v", err)
	}
}
