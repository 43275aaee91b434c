package kubeletapi

import (
	"cmp"
	"slices"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// tree is a round in the order of a kubelet's answers. It points into the round.
type tree struct {
	name metric.NodeName
	node cgroup
	pods []*pod // by namespace and name
	// system are the cgroups that belong to no pod. all are all cgroups, in the order of the round.
	system, all []cgroup
	rejected    map[metric.CgroupPath]bool // the cgroups that identity rejected
}

// cgroup has the sample of one cgroup, and those of its interfaces and devices.
type cgroup struct {
	*metric.Sample // nil if it was not read
	parts          []*metric.Sample
	// ref and container are the names of its pod and container, if it has any.
	ref       metric.PodRef
	container string
}

// pod is a pod that has a name. Its own sample may be missing.
type pod struct {
	cgroup
	uid        metric.PodUID // in its cgroup's path
	apiUID     metric.PodUID // at the API server: static pods have another UID there
	containers []cgroup      // those with a name, sorted by name
}

// isServed reports whether the node read the values of group g and they are of the living instance,
// or of one that was chosen among equals. Counters are served before a rate is known.
func isServed(s *metric.Sample, g metric.Group) bool {
	if s.LastKnown&(1<<g) != 0 {
		return false // a last known value
	}
	switch r := s.Reasons[g]; r.Layer() {
	case metric.LayerReport:
		return false // the zeros were not read
	case metric.LayerIdentity:
		return r == metric.Ambiguous
	}
	return true
}

// get returns a value of s in the catalogue's unit and when it was read, in nanoseconds since the
// Unix epoch. ok is false if the value is not served.
func get(s *metric.Sample, id metric.ID) (v float64, at int64, ok bool) {
	if s == nil {
		return 0, 0, false
	}
	g := id.Describe().Group
	if v, ok = s.Values.Get(id); !ok || !isServed(s, g) {
		return 0, 0, false
	}
	return v, s.Times[g], true
}

// podsByUID has the node's pods by the UID in the paths of cgroups, for samples that had no names
// when they were read.
type podsByUID map[metric.PodUID]*cluster.Pod

// podRef returns the name of the pod of s, or an empty one if it is not known.
func (p podsByUID) podRef(s *metric.Sample) metric.PodRef {
	if s.Entity.Namespace != "" {
		return s.Entity.PodRef()
	}
	if known := p[s.Instance.UID]; known != nil {
		return known.PodRef
	}
	return metric.PodRef{}
}

// container returns the name of a container. It is empty for a sandbox, and if the name is not
// known.
func (p podsByUID) container(s *metric.Sample) string {
	if s.Entity.Name != string(s.Instance.ID) {
		return s.Entity.Name
	}
	if c := p[s.Instance.UID].ContainerByID(s.Instance.ID); c != nil {
		return c.Name
	}
	return ""
}

// newTree returns the tree of a round. If two cgroups have the same name, it takes the first:
// identity has already chosen if it could.
func newTree(r *round, facts *cluster.Facts) *tree {
	t := &tree{name: r.node, rejected: r.rejected}
	known := podsByUID(facts.PodsByUID(r.node))
	type whole struct { // an entity may have several cgroups
		entity metric.Entity
		path   metric.CgroupPath
	}
	parts := map[whole][]*metric.Sample{}
	for i := range r.samples {
		if s := &r.samples[i]; s.Entity.Part != "" {
			entity := whole{s.Entity.Whole(), s.Instance.Path}
			parts[entity] = append(parts[entity], s)
		}
	}
	pods := map[metric.PodRef]*pod{}
	for i := range r.samples {
		if s := &r.samples[i]; s.Entity.Part == "" {
			t.add(cgroup{Sample: s, parts: parts[whole{s.Entity, s.Instance.Path}]}, known, pods)
		}
	}
	slices.SortFunc(t.pods, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(a.ref.Namespace, b.ref.Namespace), cmp.Compare(a.ref.Name, b.ref.Name))
	})
	for _, p := range t.pods {
		slices.SortFunc(p.containers, func(a, b cgroup) int { return cmp.Compare(a.container, b.container) })
	}
	return t
}

// add adds a cgroup. pods are those of t, by name.
func (t *tree) add(c cgroup, known podsByUID, pods map[metric.PodRef]*pod) {
	switch c.Entity.Kind {
	case metric.Node:
		if t.node.Sample == nil {
			t.node = c
		}
	case metric.System:
		t.system = append(t.system, c)
	case metric.Pod, metric.Container:
		if c.ref = known.podRef(c.Sample); c.ref.Name == "" {
			break
		}
		p := pods[c.ref]
		if p == nil {
			p = &pod{cgroup: cgroup{ref: c.ref}, uid: c.Instance.UID}
			if facts := known[p.uid]; facts != nil {
				p.apiUID = facts.UID
			}
			pods[c.ref], t.pods = p, append(t.pods, p)
		}
		if c.Entity.Kind == metric.Pod {
			if p.Sample == nil {
				p.cgroup = c
			}
			break
		}
		c.container = known.container(c.Sample)
		hasName := func(o cgroup) bool { return o.container == c.container }
		if c.container != "" && !slices.ContainsFunc(p.containers, hasName) {
			p.containers = append(p.containers, c)
		}
	default:
		return
	}
	t.all = append(t.all, c)
}
