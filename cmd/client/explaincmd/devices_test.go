package explaincmd

import (
	"context"

	"github.com/weir-metrics/weir/cluster"
)

// Devices returns the devices of n1. n2 has none.
func (t *testCluster) Devices(_ context.Context, node string) (*cluster.NodeDevices, error) {
	switch node {
	case "n1":
		return &cluster.NodeDevices{
			Node: "n1", At: noon,
			Allocatable: []cluster.ResourceDevices{{Resource: "example.com/fpga", Devices: []string{"f0"}}, {Resource: "example.com/gpu", Devices: []string{"g0", "g1", "g2"}}},
			Containers: []cluster.ContainerDevices{
				{Namespace: "shop", Pod: "web-1", Container: "app", Devices: []cluster.ResourceDevices{{Resource: "example.com/gpu", Devices: []string{"g0", "g2"}}},
					Claimed: []cluster.ClaimedDevice{{Claim: "nic", Driver: "nic.example.com", Pool: "n1", Device: "eth7"}}},
				{Namespace: "shop", Pod: "web-2", Container: "app", Claimed: []cluster.ClaimedDevice{{Claim: "nic", Driver: "nic.example.com", Pool: "n1", Device: "eth7"}}},
			},
		}, nil
	case "n2":
		return &cluster.NodeDevices{Node: "n2", At: noon, Allocatable: []cluster.ResourceDevices{}, Containers: []cluster.ContainerDevices{}}, nil
	}
	return nil, unknown("node " + node)
}
