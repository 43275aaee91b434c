package recording

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// The approximate size of a node, a pod and a container in memory, in bytes, without their
// names.
const (
	nodeSize      = 512
	podSize       = 768
	containerSize = 384
)

// change describes a cluster.FactsChange. more reports that the next record continues it.
func (c *codec) change(f *cluster.FactsChange, more *bool) {
	c.boolean(1, &f.Synced)
	c.boolean(2, more)
	c.instant(3, &f.At)
	pointers(c, 4, &f.Nodes, nodeSize, (*codec).node)
	pointers(c, 5, &f.Pods, podSize, (*codec).pod)
	nameList(c, 6, &f.GoneNodes)
	repeated(c, 7, &f.GonePods, 32, func(c *codec, p *metric.PodRef) { name(c, 1, &p.Namespace); name(c, 2, &p.Name) })
}

// pointers is repeated for a list of pointers.
func pointers[T any](c *codec, n protowire.Number, list *[]*T, size int, message func(*codec, *T)) {
	repeated(c, n, list, size, func(c *codec, p **T) {
		if c.decoding {
			*p = new(T)
		}
		message(c, *p)
	})
}

// node describes cluster.Node without annotations, which no processor uses.
func (c *codec) node(n *cluster.Node) {
	name(c, 1, &n.Name)
	repeated(c, 2, &n.Addresses, 32, func(c *codec, a *cluster.NodeAddress) { name(c, 1, &a.Type); name(c, 2, &a.Address) })
	signed(c, 3, &n.KubeletPort)
	c.boolean(4, &n.Ready)
	c.boolean(5, &n.Unschedulable)
	c.labels(6, &n.Labels)
	c.values(7, &n.Spec)
	nameList(c, 8, &n.Lifecycle)
}

// pod describes cluster.Pod.
func (c *codec) pod(p *cluster.Pod) {
	name(c, 1, &p.Namespace)
	name(c, 2, &p.Name)
	name(c, 3, &p.UID)
	var hash metric.PodUID
	if p.ConfigHash != nil {
		hash = *p.ConfigHash
	}
	name(c, 4, &hash)
	if c.decoding {
		p.ConfigHash = cluster.NewConfigHash(hash)
	}
	name(c, 5, &p.Node)
	name(c, 6, &p.Phase)
	name(c, 7, &p.QoS)
	enum(c, 8, &p.Ready, int(cluster.ReadyUnknown)+1)
	c.boolean(9, &p.Mirror)
	c.boolean(10, &p.HostNetwork)
	c.boolean(11, &p.PodLevel)
	c.stamp(12, &p.Started)
	c.stamp(13, &p.Deleted)
	c.stamp(14, &p.ReadySince)
	c.instant(15, &p.KnownAt)
	c.labels(16, &p.Labels)
	c.requirements(17, &p.Spec)
	c.requirements(18, &p.Overhead)
	repeated(c, 19, &p.Containers, containerSize, (*codec).container)
}

// container describes cluster.Container.
func (c *codec) container(f *cluster.Container) {
	var past cluster.PreviousRun
	if f.Previous != nil {
		past = *f.Previous
	}
	name(c, 1, &f.Name)
	enum(c, 2, &f.Role, int(cluster.Ephemeral)+1)
	enum(c, 3, &f.State, int(cluster.StateTerminated)+1)
	name(c, 4, &f.ID)
	name(c, 5, &past.LastID)
	c.stamp(6, &f.StartedAt)
	c.stamp(7, &past.EndedAt)
	name(c, 8, &past.StateReason)
	signed(c, 9, &f.Restarts)
	c.requirements(10, &f.Spec)
	c.stamp(11, &past.StartedAt)
	name(c, 12, &past.EndReason)
	signed(c, 13, &past.ExitCode)
	if c.decoding {
		f.Previous = past.OrNil()
	}
}

// values is a repeated field of messages with a metric and its value.
func (c *codec) values(n protowire.Number, v *metric.Values) {
	type pair struct {
		id    uint64
		value float64
	}
	var pairs []pair
	if !c.decoding {
		for id, value := range v.All() {
			pairs = append(pairs, pair{uint64(id), value})
		}
	}
	repeated(c, n, &pairs, 16, func(c *codec, p *pair) { unsigned(c, 1, &p.id); c.double(2, &p.value) })
	if c.decoding {
		for _, p := range pairs {
			if id, known := c.ownNumber(c.ids.metrics, p.id); known {
				v.Set(metric.ID(id), p.value)
			}
		}
	}
}

func (c *codec) requirements(n protowire.Number, r *cluster.Requirements) {
	if !c.decoding {
		c.values(n, r.Values())
		return
	}
	var v metric.Values
	c.values(n, &v)
	*r = cluster.NewRequirements(&v)
}

// target describes ScaleTarget.
func (c *codec) target(t *ScaleTarget) {
	name(c, 1, &t.Group)
	name(c, 2, &t.Resource)
	name(c, 3, &t.Namespace)
	name(c, 4, &t.Name)
	c.boolean(5, &t.Gone)
	signed(c, 6, &t.Replicas)
	signed(c, 7, &t.Current)
	name(c, 8, &t.Selector)
	name(c, 9, &t.HPA)
	spec := string(t.Spec)
	name(c, 10, &spec)
	if c.decoding && spec != "" {
		t.Spec = json.RawMessage(spec)
	}
}

// recentFacts are the last facts, the newest first. Sources are read concurrently, so a read may
// have facts that are a little older than those of the read before.
type recentFacts struct{ list []*cluster.Facts }

// maxRecentFacts is how many facts a record can refer to.
const maxRecentFacts = 8

// add makes f the newest.
func (r *recentFacts) add(f *cluster.Facts) {
	if len(r.list) < maxRecentFacts {
		r.list = append(r.list, nil)
	}
	copy(r.list[1:], r.list)
	r.list[0] = f
}

// newest returns the newest facts; nil if there are none.
func (r *recentFacts) newest() *cluster.Facts {
	if len(r.list) == 0 {
		return nil
	}
	return r.list[0]
}

// split divides a change into parts that each fit into a record.
func split(c cluster.FactsChange, do func(part *cluster.FactsChange, more bool) error) error {
	const most = 4096
	for {
		part := cluster.FactsChange{Synced: c.Synced, At: c.At}
		part.Nodes, c.Nodes = cutAt(c.Nodes, most)
		part.Pods, c.Pods = cutAt(c.Pods, most)
		part.GoneNodes, c.GoneNodes = cutAt(c.GoneNodes, most)
		part.GonePods, c.GonePods = cutAt(c.GonePods, most)
		more := len(c.Nodes)+len(c.Pods)+len(c.GoneNodes)+len(c.GonePods) > 0
		if err := do(&part, more); err != nil || !more {
			return err
		}
	}
}

func cutAt[T any](s []T, n int) (first, rest []T) {
	n = min(n, len(s))
	return s[:n], s[n:]
}
