//go:build e2e

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

const (
	gpuResource = "weir.test/gpu"
	nicDriver   = "nic.weir.test"
)

// TestDevices registers a device plugin and a DRA driver with the kubelet, and starts a pod with
// devices of both. The agent must name them, as answer, as text and as metrics.
func TestDevices(t *testing.T) {
	w := sharedCluster
	if w.v2 {
		t.Skip("the kubelet reaches sockets of its own machine only")
	}
	w.agent(t, "observe")
	namespace := w.namespace(t, "devices")
	w.registerPlugin(t, registration.DevicePlugin, gpuResource, deviceplugin.Version, func(s *grpc.Server) {
		deviceplugin.RegisterDevicePluginServer(s, gpuPlugin{})
	})
	w.registerPlugin(t, registration.DRAPlugin, nicDriver, dra.DRAPluginService, func(s *grpc.Server) {
		dra.RegisterDRAPluginServer(s, &nicPlugin{node: w.Node()})
	})
	w.offerNICs(t, namespace)

	p := w.pod("with-devices", "", requests(30*mi, mi))
	p.Spec.NodeName = "" // the scheduler allocates the devices of claims
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpuResource: resource.MustParse("2")}
	p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "nic"}}
	claim := "nic"
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "nic", ResourceClaimName: &claim}}
	eventually(t, "the node has the plugin's devices", time.Minute, func() error {
		n, err := w.kube.CoreV1().Nodes().Get(t.Context(), w.Node(), metav1.GetOptions{})
		if err == nil {
			if q := n.Status.Allocatable[gpuResource]; q.Value() != 2 {
				err = fmt.Errorf("%v of %s, want 2", &q, gpuResource)
			}
		}
		return err
	})
	w.create(t, namespace, p)

	want := []cluster.ContainerDevices{{
		Namespace: metric.Namespace(namespace), Pod: "with-devices", Container: "main",
		Devices: []cluster.ResourceDevices{{Resource: gpuResource, Devices: []string{"gpu0", "gpu1"}}},
		Claimed: []cluster.ClaimedDevice{{Claim: "nic", Driver: nicDriver, Pool: w.Node(), Device: "nic0"}},
	}}
	var d nodeapi.NodeDevices
	if err := json.Unmarshal([]byte(w.kubectl(t, "get", "--raw", "/apis/weir.dev/v1alpha1/nodes/"+w.Node()+"/devices")), &d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, d.Containers); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
	// gpu2 is not healthy.
	if diff := cmp.Diff([]cluster.ResourceDevices{{Resource: gpuResource, Devices: []string{"gpu0", "gpu1"}}}, d.Allocatable); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
	if text := w.kubectlWeir(t, "explain", "devices", "--node="+w.Node()); !strings.Contains(text, "gpu0,gpu1") || !strings.Contains(text, w.Node()+"/nic0") {
		t.Errorf("explain devices:\n%s", text)
	}
	metrics, err := w.askAgent(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, series := range []string{
		"weir_devices_known 1",
		fmt.Sprintf("weir_allocatable_devices{resource=%q} 2", gpuResource),
		fmt.Sprintf("weir_container_devices{container=\"main\",namespace=%q,pod=\"with-devices\",resource=%q} 2", namespace, gpuResource),
		fmt.Sprintf("weir_container_claimed_devices{claim=\"nic\",container=\"main\",driver=%q,namespace=%q,pod=\"with-devices\",pool=%q} 1", nicDriver, namespace, w.Node()),
	} {
		if !strings.Contains(metrics, series+"\n") {
			t.Errorf("/metrics of the agent has no %s", series)
		}
	}
}

// registerPlugin serves a plugin on a socket in the kubelet's folder, where the kubelet finds it, and
// returns when the kubelet has accepted it.
func (w *testCluster) registerPlugin(t *testing.T, kind, name, version string, register func(*grpc.Server)) {
	t.Helper()
	socket := "/var/lib/kubelet/plugins_registry/" + path.Base(name) + ".sock"
	onThisMachine, err := w.NodePath(socket)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", onThisMachine)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	r := &registrar{info: registration.PluginInfo{Type: kind, Name: name, Endpoint: socket, SupportedVersions: []string{version}}, status: make(chan string, 10)}
	registration.RegisterRegistrationServer(s, r)
	register(s)
	ended := make(chan error)
	go func() { ended <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case problem := <-r.status:
		if problem != "" {
			t.Fatalf("the kubelet refuses %s: %s", name, problem)
		}
	case <-time.After(slowness * time.Minute):
		t.Fatalf("the kubelet has not found %s within a minute", socket)
	}
}

// registrar tells the kubelet what a plugin is.
type registrar struct {
	registration.UnimplementedRegistrationServer
	info   registration.PluginInfo
	status chan string // an error, or "" if the kubelet has accepted the plugin
}

func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &r.info, nil
}

func (r *registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	problem := s.GetError()
	if problem == "" && !s.GetPluginRegistered() {
		problem = "not registered"
	}
	select {
	case r.status <- problem:
	default: // nobody waits any more
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// gpuPlugin is a device plugin with two healthy devices and one that is not.
type gpuPlugin struct {
	deviceplugin.UnimplementedDevicePluginServer
}

func (gpuPlugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{}, nil
}

func (gpuPlugin) ListAndWatch(_ *deviceplugin.Empty, to grpc.ServerStreamingServer[deviceplugin.ListAndWatchResponse]) error {
	err := to.Send(&deviceplugin.ListAndWatchResponse{Devices: []*deviceplugin.Device{
		{ID: "gpu0", Health: deviceplugin.Healthy}, {ID: "gpu1", Health: deviceplugin.Healthy}, {ID: "gpu2", Health: deviceplugin.Unhealthy},
	}})
	if err == nil {
		<-to.Context().Done()
	}
	return err
}

func (gpuPlugin) Allocate(_ context.Context, r *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	answer := &deviceplugin.AllocateResponse{}
	for range r.GetContainerRequests() {
		answer.ContainerResponses = append(answer.ContainerResponses, &deviceplugin.ContainerAllocateResponse{})
	}
	return answer, nil
}

// nicPlugin is a DRA driver. Its only device needs no preparation.
type nicPlugin struct {
	dra.UnimplementedDRAPluginServer
	node string
}

func (n *nicPlugin) NodePrepareResources(_ context.Context, r *dra.NodePrepareResourcesRequest) (*dra.NodePrepareResourcesResponse, error) {
	answer := &dra.NodePrepareResourcesResponse{Claims: map[string]*dra.NodePrepareResourceResponse{}}
	for _, c := range r.GetClaims() {
		answer.Claims[c.GetUid()] = &dra.NodePrepareResourceResponse{Devices: []*dra.Device{{RequestNames: []string{"nic"}, PoolName: n.node, DeviceName: "nic0"}}}
	}
	return answer, nil
}

func (*nicPlugin) NodeUnprepareResources(_ context.Context, r *dra.NodeUnprepareResourcesRequest) (*dra.NodeUnprepareResourcesResponse, error) {
	answer := &dra.NodeUnprepareResourcesResponse{Claims: map[string]*dra.NodeUnprepareResourceResponse{}}
	for _, c := range r.GetClaims() {
		answer.Claims[c.GetUid()] = &dra.NodeUnprepareResourceResponse{}
	}
	return answer, nil
}

// offerNICs creates what a DRA driver and its administrator create: a class, the slice with the
// device, and a claim for it.
func (w *testCluster) offerNICs(t *testing.T, namespace string) {
	t.Helper()
	node := w.Node()
	api := w.kube.ResourceV1()
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: nicDriver}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", nicDriver)}}}}}
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: nicDriver}, Spec: resourcev1.ResourceSliceSpec{
		Driver: nicDriver, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}, NodeName: &node, Devices: []resourcev1.Device{{Name: "nic0"}}}}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "nic"}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{Name: "nic", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: nicDriver}}}}}}
	if _, err := api.DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.DeviceClasses().Delete(context.Background(), class.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	if _, err := api.ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.ResourceSlices().Delete(context.Background(), slice.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	if _, err := api.ResourceClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
