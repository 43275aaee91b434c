package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// containerNames has the names that the container runtime gives for a container.
type containerNames struct {
	Namespace metric.Namespace
	Pod       metric.PodName
	UID       metric.PodUID
	Name      string // the name of the container; empty for a sandbox
	Sandbox   bool
	Image     string
	Created   time.Time // zero if not known
}

// The labels that the kubelet and containerd's CRI plugin set on containers.
const (
	labelPod       = "io.kubernetes.pod.name"
	labelNamespace = "io.kubernetes.pod.namespace"
	labelUID       = "io.kubernetes.pod.uid"
	labelName      = "io.kubernetes.container.name"
	labelKind      = "io.cri-containerd.kind"
)

// cgroupNames identifies the entity of a cgroup.
type cgroupNames struct {
	entity   metric.Entity
	instance metric.Instance // UID and ID
	runtime  containerNames
}

// cgroupNamer returns the names of cgroups: those of the runtime, or else those of the API server.
type cgroupNamer struct {
	node metric.NodeName
	// containers has the names of all containers by container ID. pods has one container of each pod,
	// by UID.
	containers map[metric.ContainerID]containerNames
	pods       map[metric.PodUID]containerNames
	facts      map[metric.PodUID]*cluster.Pod
}

func newCgroupNamer(node metric.NodeName, containers map[metric.ContainerID]containerNames, facts map[metric.PodUID]*cluster.Pod) cgroupNamer {
	n := cgroupNamer{node, containers, make(map[metric.PodUID]containerNames, len(containers)), facts}
	for _, c := range containers {
		if c.UID != "" && c.Pod != "" {
			n.pods[c.UID] = c
		}
	}
	return n
}

// name returns the names for p. ref is podcgroup.Parse(p).
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
		// It starts and ends independently of the container, so it must not look like a duplicate of it.
		out.instance = metric.Instance{}
	case podcgroup.Pod:
		out.entity = n.pod(ref)
		out.entity.Kind = metric.Pod
	case podcgroup.Container:
		out.entity = n.pod(ref)
		out.runtime = n.containers[ref.ID]
		out.entity.Kind, out.entity.Name = metric.Container, out.runtime.Name
		if c := n.facts[ref.UID].ContainerByID(ref.ID); c != nil && out.entity.Name == "" {
			out.entity.Name = c.Name
		}
		out.entity.Name = cmp.Or(out.entity.Name, string(ref.ID))
	}
	return out
}

// pod returns an entity with the names of the pod, or else with its UID.
func (n *cgroupNamer) pod(ref podcgroup.Ref) metric.Entity {
	e := metric.Entity{Node: n.node, Pod: metric.PodName(ref.UID)}
	c := n.containers[ref.ID]
	if c.Pod == "" {
		c = n.pods[ref.UID]
	}
	switch p := n.facts[ref.UID]; {
	case c.Pod != "":
		e.Namespace, e.Pod = c.Namespace, c.Pod
	case p != nil:
		e.Namespace, e.Pod = p.Namespace, p.Name
	}
	return e
}

// containerd is a client of containerd that reads the names of containers.
//
// It does not use cAdvisor's client, because there is only one of it in the process, it never
// retries if the socket was missing at first, and it cannot be closed.
type containerd struct {
	socket, namespace string
	instead           string // what names containers that containerd does not name

	conn   *grpc.ClientConn // nil until the socket exists
	client containers.ContainersClient
	known  map[metric.ContainerID]containerNames
	// unknown has the time of the next request for each container that containerd did not know. retry
	// is the time of the next request after a failure.
	unknown map[metric.ContainerID]time.Time
	retry   time.Time
	gap     string // why there are no names; empty if containerd answers
}

const (
	// namesTimeout limits all requests of one read together, because names must not delay the numbers
	// for longer.
	namesTimeout = 2 * time.Second
	// namesRetry is the time between a failed request and the next one.
	namesRetry = 10 * time.Second
)

// newContainerd returns a client. cluster means that the API server names containers too.
func newContainerd(socket, namespace string, cluster bool) *containerd {
	instead := "pods are named by UID and containers by ID"
	if cluster {
		instead = "the API server names pods and containers, and until it does, their UIDs and IDs stand for them"
	}
	return &containerd{
		socket: socket, namespace: namespace, instead: instead,
		known:   map[metric.ContainerID]containerNames{},
		unknown: map[metric.ContainerID]time.Time{},
	}
}

// learnNames requests the names of the containers in ids that are not known, and removes containers
// that are not in ids. A failure sets gap.
func (c *containerd) learnNames(ctx context.Context, ids map[metric.ContainerID]bool, now time.Time) {
	maps.DeleteFunc(c.known, func(id metric.ContainerID, _ containerNames) bool { return !ids[id] })
	maps.DeleteFunc(c.unknown, func(id metric.ContainerID, _ time.Time) bool { return !ids[id] })
	if c.socket == "" {
		c.gap = "containerd: it is not used, so " + c.instead
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

// connect creates the connection if the socket exists, and reports whether there is a
// connection. gRPC reconnects by itself.
func (c *containerd) connect(now time.Time) bool {
	if c.conn != nil {
		return true
	}
	if _, err := os.Stat(c.socket); err != nil {
		reason := "there is no socket at " + c.socket
		if !errors.Is(err, os.ErrNotExist) {
			reason = err.Error()
		}
		c.setGap(now, reason)
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

func (c *containerd) setGap(now time.Time, reason string) {
	c.retry = now.Add(namesRetry)
	c.gap = "containerd: " + reason + ", so " + c.instead
}

func (c *containerd) fetchNames(ctx context.Context, id metric.ContainerID) (containerNames, error) {
	answer, err := c.client.Get(ctx, &containers.GetContainerRequest{ID: string(id)})
	if err != nil {
		return containerNames{}, err
	}
	labels := answer.GetContainer().GetLabels()
	uid, _ := podcgroup.NormalizeUID(labels[labelUID])
	names := containerNames{
		Namespace: metric.Namespace(labels[labelNamespace]),
		Pod:       metric.PodName(labels[labelPod]),
		UID:       uid,
		Name:      labels[labelName],
		Sandbox:   labels[labelKind] == "sandbox",
		Image:     answer.GetContainer().GetImage(),
	}
	if at := answer.GetContainer().GetCreatedAt(); at.IsValid() && at.AsTime().Unix() > 0 {
		names.Created = at.AsTime()
	}
	return names, nil
}

// close closes the connection.
func (c *containerd) close() error {
	if c.conn == nil {
		return nil
	}
	if err := c.conn.Close(); err != nil {
		return fmt.Errorf("close containerd: %w", err)
	}
	return nil
}
