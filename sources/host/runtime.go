package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// containerNames is what a container runtime knows of a container.
type containerNames struct {
	Namespace metric.Namespace
	Pod       metric.PodName
	UID       metric.PodUID
	Name      string // of the container; empty for a sandbox
	Sandbox   bool
	Created   time.Time // zero if unknown
}

// The labels a kubelet gives to containers, and containerd's CRI plugin.
const (
	labelPod       = "io.kubernetes.pod.name"
	labelNamespace = "io.kubernetes.pod.namespace"
	labelUID       = "io.kubernetes.pod.uid"
	labelName      = "io.kubernetes.container.name"
	labelKind      = "io.cri-containerd.kind"
)

// namesFromLabels reads a container's labels.
func namesFromLabels(labels map[string]string, created time.Time) containerNames {
	uid, _ := podcgroup.NormalizeUID(labels[labelUID])
	return containerNames{
		Namespace: metric.Namespace(labels[labelNamespace]),
		Pod:       metric.PodName(labels[labelPod]),
		UID:       uid,
		Name:      labels[labelName],
		Sandbox:   labels[labelKind] == "sandbox",
		Created:   created,
	}
}

// cgroupNames is what a cgroup is reported as.
type cgroupNames struct {
	entity   metric.Entity
	instance metric.Instance // UID and ID
	runtime  containerNames
	// hidden cgroups give no sample: a sandbox's, whose pod has its network.
	hidden bool
}

// cgroupNamer names cgroups, with what the runtime said of containers.
type cgroupNamer struct {
	node metric.NodeName
	// containers is by ID. pods, derived from it, is by UID.
	containers map[metric.ContainerID]containerNames
	pods       map[metric.PodUID]containerNames
}

func newCgroupNamer(node metric.NodeName, containers map[metric.ContainerID]containerNames) cgroupNamer {
	n := cgroupNamer{node, containers, make(map[metric.PodUID]containerNames, len(containers))}
	for _, c := range containers {
		if c.UID != "" && c.Pod != "" {
			n.pods[c.UID] = c
		}
	}
	return n
}

// name says what p is. ref is podcgroup.Parse(p).
func (n *cgroupNamer) name(p metric.CgroupPath, ref podcgroup.Ref) cgroupNames {
	if p == "/" {
		return cgroupNames{entity: metric.Entity{Kind: metric.Node, Node: n.node}}
	}
	out := cgroupNames{
		entity:   metric.Entity{Kind: metric.System, Node: n.node, Name: string(p)},
		instance: metric.Instance{UID: ref.UID, ID: ref.ID},
	}
	switch ref.Kind {
	case podcgroup.Inside:
		// Its life is not the container's, and it must not pass for a second
		// view of it.
		out.instance = metric.Instance{}
	case podcgroup.Pod:
		out.entity = n.pod(ref)
		out.entity.Kind = metric.Pod
	case podcgroup.Container:
		out.entity = n.pod(ref)
		out.entity.Kind, out.entity.Name = metric.Container, string(ref.ID)
		if c, ok := n.containers[ref.ID]; ok {
			out.runtime, out.hidden = c, c.Sandbox
			if c.Name != "" {
				out.entity.Name = c.Name
			}
		}
	}
	return out
}

// pod returns an entity with the pod's names: the runtime's, else the UID.
func (n *cgroupNamer) pod(ref podcgroup.Ref) metric.Entity {
	e := metric.Entity{Node: n.node, Pod: metric.PodName(ref.UID)}
	c, ok := n.containers[ref.ID]
	if !ok || ref.ID == "" || c.Pod == "" {
		c, ok = n.pods[ref.UID]
	}
	if ok && c.Pod != "" {
		e.Namespace, e.Pod = c.Namespace, c.Pod
	}
	return e
}

// containerd asks containerd for the kubelet's names of containers.
//
// It does not use cAdvisor's client, which is one for the process, remembers
// for ever that the socket was not there when it was first asked, and cannot
// be closed.
type containerd struct {
	socket, namespace string

	conn   *grpc.ClientConn // nil until the socket is there
	client containers.ContainersClient
	known  map[metric.ContainerID]containerNames
	// retry is when a container it did not know, or a failure, may be asked
	// about again.
	unknown map[metric.ContainerID]time.Time
	retry   time.Time
	gap     string // why it does not answer; empty if it does
}

const (
	// namesTimeout bounds all questions of one read together: names are not worth
	// the numbers.
	namesTimeout = 2 * time.Second
	// namesRetry is how long an unanswered question rests.
	namesRetry = 10 * time.Second
)

func newContainerd(socket, namespace string) *containerd {
	return &containerd{
		socket: socket, namespace: namespace,
		known:   map[metric.ContainerID]containerNames{},
		unknown: map[metric.ContainerID]time.Time{},
	}
}

// learnNames asks about those of ids that are not known, and, if ids are all there
// are, forgets the others. Failing to is no error: it leaves a gap.
func (c *containerd) learnNames(ctx context.Context, ids map[metric.ContainerID]bool, all bool, now time.Time) {
	if all {
		for id := range c.known {
			if !ids[id] {
				delete(c.known, id)
			}
		}
		for id := range c.unknown {
			if !ids[id] {
				delete(c.unknown, id)
			}
		}
	}
	if c.socket == "" {
		c.gap = "containerd: it is not used, so pods are named by UID and containers by ID"
		return
	}
	if now.Before(c.retry) || !c.connect(now) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, namesTimeout)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "containerd-namespace", c.namespace)
	for id := range ids {
		if _, ok := c.known[id]; ok || now.Before(c.unknown[id]) {
			continue
		}
		names, err := c.fetchNames(ctx, id)
		switch {
		case err == nil:
			c.known[id] = names
			delete(c.unknown, id)
		case status.Code(err) == codes.NotFound:
			c.unknown[id] = now.Add(namesRetry)
		default:
			c.setGap(now, fmt.Sprintf("it does not answer at %s (%v)", c.socket, err))
			return
		}
	}
	c.gap = ""
}

// connect makes the connection once there is a socket, and reports whether
// there is one. gRPC reconnects by itself.
func (c *containerd) connect(now time.Time) bool {
	if c.conn != nil {
		return true
	}
	if _, err := os.Stat(c.socket); err != nil {
		why := "there is no socket at " + c.socket
		if !errors.Is(err, os.ErrNotExist) {
			why = err.Error()
		}
		c.setGap(now, why)
		return false
	}
	conn, err := grpc.NewClient("unix://"+c.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		c.setGap(now, err.Error())
		return false
	}
	c.conn, c.client = conn, containers.NewContainersClient(conn)
	return true
}

func (c *containerd) setGap(now time.Time, why string) {
	c.retry = now.Add(namesRetry)
	c.gap = "containerd: " + why + ", so new pods are named by UID and containers by ID"
}

func (c *containerd) fetchNames(ctx context.Context, id metric.ContainerID) (containerNames, error) {
	answer, err := c.client.Get(ctx, &containers.GetContainerRequest{ID: string(id)})
	if err != nil {
		return containerNames{}, err
	}
	var created time.Time
	if at := answer.GetContainer().GetCreatedAt(); at.IsValid() && at.AsTime().Unix() > 0 {
		created = at.AsTime()
	}
	return namesFromLabels(answer.GetContainer().GetLabels(), created), nil
}

// close ends the connection.
func (c *containerd) close() error {
	if c.conn == nil {
		return nil
	}
	if err := c.conn.Close(); err != nil {
		return fmt.Errorf("close containerd: %w", err)
	}
	return nil
}
