package recording

import (
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// The flags of facts, nodes, pods and containers.
const (
	factsSynced = 1 << iota
	factsMore   // the change goes on in the next frame
)

const (
	nodeReady = 1 << iota
	nodeUnschedulable
)

const (
	podMirror = 1 << iota
	podHostNetwork
	podStarted
	podDeleted
	podReadySince
	podPodLevel
)

const (
	containerStarted = 1 << iota
	containerEnded
)

// change writes a change of facts.
func (e *encoder) change(c *cluster.Change, more bool) {
	flags := uint64(0)
	if c.Synced {
		flags |= factsSynced
	}
	if more {
		flags |= factsMore
	}
	e.unsigned(flags)
	e.instant(c.At)
	e.count(len(c.Nodes))
	for _, n := range c.Nodes {
		e.node(n)
	}
	e.count(len(c.Pods))
	for _, p := range c.Pods {
		e.pod(p)
	}
	e.count(len(c.GoneNodes))
	for _, n := range c.GoneNodes {
		encodeName(e, n)
	}
	e.count(len(c.GonePods))
	for _, p := range c.GonePods {
		encodeName(e, p.Namespace)
		encodeName(e, p.Name)
	}
}

// node writes what is known of a node but for its annotations, of which no
// processor knows.
func (e *encoder) node(n *cluster.Node) {
	encodeName(e, n.Name)
	flags := uint64(0)
	if n.Ready {
		flags |= nodeReady
	}
	if n.Unschedulable {
		flags |= nodeUnschedulable
	}
	e.unsigned(flags)
	e.count(len(n.Addresses))
	for _, a := range n.Addresses {
		encodeName(e, a.Type)
		encodeName(e, a.Address)
	}
	e.signed(int64(n.KubeletPort))
	e.labels(n.Labels)
	e.values(&n.Spec)
}

func (e *encoder) pod(p *cluster.Pod) {
	encodeName(e, p.Namespace)
	encodeName(e, p.Name)
	encodeName(e, p.UID)
	var hash metric.PodUID
	if p.ConfigHash != nil {
		hash = *p.ConfigHash
	}
	encodeName(e, hash)
	encodeName(e, p.Node)
	encodeName(e, p.Phase)
	encodeName(e, p.QoS)
	flags := uint64(0)
	for flag, on := range map[uint64]bool{
		podMirror: p.Mirror, podHostNetwork: p.HostNetwork, podStarted: !p.Started.IsZero(),
		podDeleted: !p.Deleted.IsZero(), podReadySince: !p.ReadySince.IsZero(), podPodLevel: p.PodLevel,
	} {
		if on {
			flags |= flag
		}
	}
	e.unsigned(flags)
	e.byte(byte(p.Ready))
	e.stamp(p.Started)
	e.stamp(p.Deleted)
	e.stamp(p.ReadySince)
	e.instant(p.KnownAt)
	e.labels(p.Labels)
	e.values(p.Spec.Values())
	e.values(p.Overhead.Values())
	e.count(len(p.Containers))
	for i := range p.Containers {
		e.container(&p.Containers[i])
	}
}

func (e *encoder) container(c *cluster.Container) {
	encodeName(e, c.Name)
	e.byte(byte(c.Role))
	e.byte(byte(c.State))
	encodeName(e, c.ID)
	encodeName(e, c.LastID())
	flags := uint64(0)
	if !c.StartedAt.IsZero() {
		flags |= containerStarted
	}
	if !c.EndedAt().IsZero() {
		flags |= containerEnded
	}
	e.unsigned(flags)
	e.stamp(c.StartedAt)
	e.stamp(c.EndedAt())
	encodeName(e, c.StateReason())
	e.signed(int64(c.Restarts))
	e.values(c.Spec.Values())
}

// About how much facts take in memory, without their names.
const (
	nodeSize      = 512
	podSize       = 768
	containerSize = 384
)

// change reads a change of facts, and whether it goes on.
func (d *decoder) change() (c cluster.Change, more bool) {
	flags := d.unsigned()
	c.Synced, more = flags&factsSynced != 0, flags&factsMore != 0
	c.At = d.instant()
	for range d.count() {
		if n := d.node(); d.err == nil {
			c.Nodes = append(c.Nodes, n)
		}
	}
	for range d.count() {
		if p := d.pod(); d.err == nil {
			c.Pods = append(c.Pods, p)
		}
	}
	for range d.count() {
		if n := decodeName[metric.NodeName](d); d.err == nil {
			c.GoneNodes = append(c.GoneNodes, n)
		}
	}
	for range d.count() {
		p := metric.PodRef{Namespace: decodeName[metric.Namespace](d), Name: decodeName[metric.PodName](d)}
		if d.err == nil {
			c.GonePods = append(c.GonePods, p)
		}
	}
	return c, more
}

func (d *decoder) node() *cluster.Node {
	if d.spend(nodeSize); d.err != nil {
		return nil
	}
	n := &cluster.Node{Name: decodeName[metric.NodeName](d)}
	flags := d.unsigned()
	n.Ready, n.Unschedulable = flags&nodeReady != 0, flags&nodeUnschedulable != 0
	for range d.count() {
		if d.spend(32); d.err != nil {
			return nil
		}
		n.Addresses = append(n.Addresses, cluster.NodeAddress{Type: decodeName[string](d), Address: decodeName[string](d)})
	}
	n.KubeletPort = int32(d.signed())
	n.Labels = d.labels()
	n.Spec = d.values()
	return n
}

func (d *decoder) pod() *cluster.Pod {
	if d.spend(podSize); d.err != nil {
		return nil
	}
	p := &cluster.Pod{
		PodRef: metric.PodRef{Namespace: decodeName[metric.Namespace](d), Name: decodeName[metric.PodName](d)},
		UID:    decodeName[metric.PodUID](d), ConfigHash: cluster.NewConfigHash(decodeName[metric.PodUID](d)), Node: decodeName[metric.NodeName](d),
		Phase: decodeName[cluster.Phase](d), QoS: decodeName[string](d),
	}
	flags := d.unsigned()
	p.Mirror, p.HostNetwork, p.PodLevel = flags&podMirror != 0, flags&podHostNetwork != 0, flags&podPodLevel != 0
	p.Ready = cluster.Readiness(d.among(int(cluster.ReadyUnknown) + 1))
	p.Started, p.Deleted, p.ReadySince = d.stamp(flags&podStarted != 0), d.stamp(flags&podDeleted != 0), d.stamp(flags&podReadySince != 0)
	p.KnownAt = d.instant()
	p.Labels = d.labels()
	p.Spec = d.requirements()
	p.Overhead = d.requirements()
	n := d.count()
	if d.spend(containerSize * n); d.err != nil || n == 0 {
		return p
	}
	p.Containers = make([]cluster.Container, n)
	for i := range p.Containers {
		d.container(&p.Containers[i])
	}
	return p
}

func (d *decoder) container(c *cluster.Container) {
	c.Name = decodeName[string](d)
	c.Role, c.State = cluster.Role(d.among(int(cluster.Ephemeral)+1)), cluster.State(d.among(int(cluster.StateTerminated)+1))
	c.ID = decodeName[metric.ContainerID](d)
	last := decodeName[metric.ContainerID](d)
	flags := d.unsigned()
	c.StartedAt = d.stamp(flags&containerStarted != 0)
	ended := d.stamp(flags&containerEnded != 0)
	c.Previous = cluster.NewPreviousRun(last, ended, decodeName[string](d))
	c.Restarts = int32(d.signed())
	c.Spec = d.requirements()
}

// remembered are the last facts, the newest first. Sources are read beside each other,
// so one may come with facts a little older than another's.
type remembered struct {
	facts []*cluster.Facts
}

// maxRemembered is how many facts a frame can refer to.
const maxRemembered = 8

// add makes f the newest.
func (r *remembered) add(f *cluster.Facts) {
	if len(r.facts) < maxRemembered {
		r.facts = append(r.facts, nil)
	}
	copy(r.facts[1:], r.facts)
	r.facts[0] = f
}

// newest returns the newest, nil if there are none.
func (r *remembered) newest() *cluster.Facts {
	if len(r.facts) == 0 {
		return nil
	}
	return r.facts[0]
}

// split cuts a change into ones that fit into a frame.
func split(c cluster.Change, do func(part *cluster.Change, more bool) error) error {
	const most = 4096
	for {
		part := cluster.Change{Synced: c.Synced, At: c.At}
		part.Nodes, c.Nodes = head(c.Nodes, most)
		part.Pods, c.Pods = head(c.Pods, most)
		part.GoneNodes, c.GoneNodes = head(c.GoneNodes, most)
		part.GonePods, c.GonePods = head(c.GonePods, most)
		more := len(c.Nodes)+len(c.Pods)+len(c.GoneNodes)+len(c.GonePods) > 0
		if err := do(&part, more); err != nil || !more {
			return err
		}
	}
}

func head[T any](s []T, n int) (first, rest []T) {
	n = min(n, len(s))
	return s[:n], s[n:]
}
