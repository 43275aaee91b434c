package informer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// ListKubeletDevices asks a kubelet which devices it has and to which containers it has allocated
// them, through the socket of its PodResources API.
func ListKubeletDevices(ctx context.Context, socket string, node metric.NodeName) (*cluster.NodeDevices, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	conn, err := dialKubelet(socket)
	if err != nil {
		return nil, fmt.Errorf("reach the kubelet's PodResources API: %w", err)
	}
	defer func() { _ = conn.Close() }()
	client := podresources.NewPodResourcesListerClient(conn)
	all, err := client.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{}, grpc.MaxCallRecvMsgSize(kubeletMaxBytes))
	if err != nil {
		return nil, fmt.Errorf("list the devices of the kubelet's PodResources API at %s: %w", socket, err)
	}
	pods, err := client.List(ctx, &podresources.ListPodResourcesRequest{}, grpc.MaxCallRecvMsgSize(kubeletMaxBytes))
	if err != nil {
		return nil, fmt.Errorf("list the pods of the kubelet's PodResources API at %s: %w", socket, err)
	}
	d := &cluster.NodeDevices{Node: node, At: time.Now(), Allocatable: byResource(all.GetDevices()), Containers: []cluster.ContainerDevices{}}
	for _, pod := range pods.GetPodResources() {
		for _, c := range pod.GetContainers() {
			devices := cluster.ContainerDevices{
				Namespace: metric.Namespace(pod.GetNamespace()), Pod: metric.PodName(pod.GetName()), Container: c.GetName(),
				Claimed: claimedDevices(c.GetDynamicResources()),
			}
			if len(c.GetDevices()) > 0 {
				devices.Devices = byResource(c.GetDevices())
			}
			if len(devices.Devices)+len(devices.Claimed) > 0 {
				d.Containers = append(d.Containers, devices)
			}
		}
	}
	slices.SortFunc(d.Containers, func(a, b cluster.ContainerDevices) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container))
	})
	return d, nil
}

// byResource returns the devices by resource. The kubelet lists the devices of a resource in parts, if
// they are near different processors.
func byResource(list []*podresources.ContainerDevices) []cluster.ResourceDevices {
	ids := map[string][]string{}
	for _, d := range list {
		ids[d.GetResourceName()] = append(ids[d.GetResourceName()], d.GetDeviceIds()...)
	}
	all := make([]cluster.ResourceDevices, 0, len(ids))
	for _, resource := range slices.Sorted(maps.Keys(ids)) {
		slices.Sort(ids[resource])
		all = append(all, cluster.ResourceDevices{Resource: resource, Devices: slices.Compact(ids[resource])})
	}
	return all
}

func claimedDevices(list []*podresources.DynamicResource) (all []cluster.ClaimedDevice) {
	for _, claim := range list {
		for _, r := range claim.GetClaimResources() {
			all = append(all, cluster.ClaimedDevice{
				Claim: claim.GetClaimName(), Driver: r.GetDriverName(), Pool: r.GetPoolName(), Device: r.GetDeviceName(), Share: r.GetShareId(),
			})
		}
	}
	slices.SortFunc(all, func(a, b cluster.ClaimedDevice) int {
		return cmp.Or(cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Share, b.Share))
	})
	return all
}
