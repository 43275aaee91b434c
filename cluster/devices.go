package cluster

import (
	"time"

	"github.com/weir-metrics/weir/metric"
)

// NodeDevices are the devices of a node, and to which containers its kubelet has allocated them. A
// container may leave its devices idle.
type NodeDevices struct {
	Node metric.NodeName `json:"node"`
	At   time.Time       `json:"at"` // when the kubelet answered
	// Allocatable are the healthy devices of device plugins, free or allocated. The kubelet does not
	// know all devices of DRA drivers.
	Allocatable []ResourceDevices `json:"allocatable"`
	// Containers are the containers that have devices.
	Containers []ContainerDevices `json:"containers"`
}

// ResourceDevices are devices of one resource of a device plugin.
type ResourceDevices struct {
	Resource string   `json:"resource"` // as in a pod's limits: "example.com/gpu"
	Devices  []string `json:"devices"`  // the plugin's IDs, sorted
}

// ContainerDevices are the devices of one container.
type ContainerDevices struct {
	Namespace metric.Namespace  `json:"namespace"`
	Pod       metric.PodName    `json:"pod"`
	Container string            `json:"container"`
	Devices   []ResourceDevices `json:"devices,omitempty"`
	Claimed   []ClaimedDevice   `json:"claimed,omitempty"`
}

// ClaimedDevice is a device of a DRA driver that a container has by a ResourceClaim. Containers that
// use the same claim have the same devices.
type ClaimedDevice struct {
	Claim  string `json:"claim"` // the ResourceClaim, in the pod's namespace
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Device string `json:"device"`
	Share  string `json:"share,omitempty"` // the ID of this share of a device that is allocated several times
}
