package informer

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/test/cmptest"
)

// podResources is a kubelet's PodResources API.
type podResources struct {
	podresources.UnimplementedPodResourcesListerServer
	all  *podresources.AllocatableResourcesResponse
	pods *podresources.ListPodResourcesResponse
}

func (p *podResources) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	return p.all, nil
}

func (p *podResources) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	return p.pods, nil
}

// TestListKubeletDevices asks an API that gives the devices of a resource in two parts, a container
// without devices, and two devices of one claim.
func TestListKubeletDevices(t *testing.T) {
	devices := func(resource string, ids ...string) *podresources.ContainerDevices {
		return &podresources.ContainerDevices{ResourceName: resource, DeviceIds: ids}
	}
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, &podResources{
		all: &podresources.AllocatableResourcesResponse{Devices: []*podresources.ContainerDevices{devices("x.io/b", "b0"), devices("x.io/a", "a2"), devices("x.io/a", "a0", "a1")}},
		pods: &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{
			{Namespace: "shop", Name: "web", Containers: []*podresources.ContainerResources{
				{Name: "sidecar", Devices: []*podresources.ContainerDevices{devices("x.io/a", "a2"), devices("x.io/a", "a0")}},
				{Name: "app", DynamicResources: []*podresources.DynamicResource{{ClaimName: "nics", ClaimNamespace: "shop", ClaimResources: []*podresources.ClaimResource{
					{DriverName: "nic.x.io", PoolName: "n1", DeviceName: "nic1", ShareId: new("s-1")}, {DriverName: "nic.x.io", PoolName: "n1", DeviceName: "nic0"}}}}},
			}},
			{Namespace: "shop", Name: "idle", Containers: []*podresources.ContainerResources{{Name: "app"}}},
		}},
	})
	ended := make(chan error)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	got, err := ListKubeletDevices(t.Context(), socket, "n1")
	if err != nil {
		t.Fatal(err)
	}
	if got.At.IsZero() {
		t.Error("the time of the answer is missing")
	}
	got.At = time.Time{}
	want := &cluster.NodeDevices{
		Node:        "n1",
		Allocatable: []cluster.ResourceDevices{{Resource: "x.io/a", Devices: []string{"a0", "a1", "a2"}}, {Resource: "x.io/b", Devices: []string{"b0"}}},
		Containers: []cluster.ContainerDevices{
			{Namespace: "shop", Pod: "web", Container: "app", Claimed: []cluster.ClaimedDevice{
				{Claim: "nics", Driver: "nic.x.io", Pool: "n1", Device: "nic0"}, {Claim: "nics", Driver: "nic.x.io", Pool: "n1", Device: "nic1", Share: "s-1"}}},
			{Namespace: "shop", Pod: "web", Container: "sidecar", Devices: []cluster.ResourceDevices{{Resource: "x.io/a", Devices: []string{"a0", "a2"}}}},
		},
	}
	cmptest.Equal(t, "devices", want, got)
	if _, err := ListKubeletDevices(t.Context(), socket+".none", "n1"); err == nil || !strings.Contains(err.Error(), "PodResources API at "+socket+".none") {
		t.Errorf("without a kubelet: got %v, want the socket", err)
	}
}
