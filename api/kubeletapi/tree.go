package kubeletapi

import (
	"cmp"
	"slices"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// tree is a round as a kubelet tells it: the node, its pods by name, their
// containers by name. It points into the round.
type tree struct {
	name   metric.NodeName
	node   cgroup
	pods   []*pod
	others []cgroup // that belong to no pod
	all    []member // every cgroup, in the order of the round
}

// cgroup is what was read of one cgroup, and of its interfaces and devices.
type cgroup struct {
	*metric.Sample // nil: nothing was
	parts          []*metric.Sample
}

// pod is a pod that has a name. Its cgroup may be missing.
type pod struct {
	cgroup
	ref        metric.PodRef
	uid        metric.PodUID // as nodes report it
	known      metric.PodUID // as the API server knows it, which differs for static pods
	containers []container
}

// container is a container that has a name.
type container struct {
	cgroup
	name string
}

// member is a cgroup with the names of the pod and container it is; both empty for
// one that is neither.
type member struct {
	cgroup
	ref       metric.PodRef
	container string
}

// told reports whether the node gave numbers of group g that are the living
// instance's. What no rate could be made of is told all the same: a counter is right
// before its second reading.
func told(s *metric.Sample, g metric.Group) bool {
	if s.LastKnown&(1<<g) != 0 {
		return false // not of this read
	}
	switch r := s.Reasons[g]; r.Layer() {
	case metric.LayerReport:
		return false // zeros that were not read
	case metric.LayerIdentity:
		return r == metric.Ambiguous
	}
	return true
}

// get returns a value of s in the catalogue's unit and when it was read, in
// nanoseconds since the Unix epoch; false if it was not told.
func get(s *metric.Sample, id metric.ID) (v float64, at int64, ok bool) {
	if s == nil {
		return 0, 0, false
	}
	g := id.Describe().Group
	if v, ok = s.Values.Get(id); !ok || !told(s, g) {
		return 0, 0, false
	}
	return v, s.Times[g], true
}

// names knows pods by what cgroups' paths say of them, where no runtime named them.
type names map[metric.PodUID]*cluster.Pod

func namesOn(node metric.NodeName, facts *cluster.Facts) names {
	n := names{}
	for _, p := range facts.PodsOn(node) {
		n[p.ReportedUID()] = p
	}
	return n
}

// pod returns the name of the pod s is or belongs to; zero if nobody knows it.
func (n names) pod(s *metric.Sample) metric.PodRef {
	if s.Entity.Namespace != "" {
		return s.Entity.PodRef()
	}
	if p := n[s.Instance.UID]; p != nil && s.Instance.UID != "" {
		return p.PodRef
	}
	return metric.PodRef{}
}

// container returns the name of the container s is; empty for a sandbox, and for one
// that nobody knows.
func (n names) container(s *metric.Sample) string {
	if s.Entity.Name != string(s.Instance.ID) {
		return s.Entity.Name
	}
	if p := n[s.Instance.UID]; p != nil {
		for i := range p.Containers {
			if c := &p.Containers[i]; c.ID == s.Instance.ID {
				return c.Name
			}
		}
	}
	return ""
}

// treeOf sorts a round. Of two cgroups of one name, the first is the one: identity has
// chosen where it could.
func treeOf(r *round, facts *cluster.Facts) *tree {
	t := &tree{name: r.node}
	known := namesOn(r.node, facts)
	parts := partsOf(r.samples)
	pods := map[metric.PodRef]*pod{}
	for i := range r.samples {
		if s := &r.samples[i]; s.Entity.Part == "" {
			t.add(cgroup{s, parts[whole{s.Entity, s.Instance.Path}]}, known, pods)
		}
	}
	slices.SortFunc(t.pods, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(a.ref.Namespace, b.ref.Namespace), cmp.Compare(a.ref.Name, b.ref.Name))
	})
	for _, p := range t.pods {
		slices.SortFunc(p.containers, func(a, b container) int { return cmp.Compare(a.name, b.name) })
	}
	return t
}

// whole is what a part belongs to: an entity may have several cgroups.
type whole struct {
	entity metric.Entity
	path   metric.CgroupPath
}

func partsOf(samples []metric.Sample) map[whole][]*metric.Sample {
	parts := map[whole][]*metric.Sample{}
	for i := range samples {
		if s := &samples[i]; s.Entity.Part != "" {
			of := whole{s.Entity.Whole(), s.Instance.Path}
			parts[of] = append(parts[of], s)
		}
	}
	return parts
}

// add puts a cgroup where it belongs.
func (t *tree) add(c cgroup, known names, pods map[metric.PodRef]*pod) {
	m := member{cgroup: c}
	switch c.Entity.Kind {
	case metric.Node:
		if t.node.Sample == nil {
			t.node = c
		}
	case metric.System:
		t.others = append(t.others, c)
	case metric.Pod, metric.Container:
		if m.ref = known.pod(c.Sample); m.ref.Name == "" {
			break
		}
		p := pods[m.ref]
		if p == nil {
			p = &pod{ref: m.ref, uid: c.Instance.UID}
			if facts := known[p.uid]; facts != nil {
				p.known = facts.UID
			}
			pods[m.ref], t.pods = p, append(t.pods, p)
		}
		if c.Entity.Kind == metric.Pod {
			if p.Sample == nil {
				p.cgroup = c
			}
			break
		}
		m.container = known.container(c.Sample)
		has := func(o container) bool { return o.name == m.container }
		if m.container != "" && !slices.ContainsFunc(p.containers, has) {
			p.containers = append(p.containers, container{c, m.container})
		}
	default:
		return
	}
	t.all = append(t.all, m)
}
