package slow

import (
	"iter"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// View is weir's memory.
type View interface {
	Each(kind metric.Kind, do func(*metric.Sample) bool)
	EachOn(node metric.NodeName, kind metric.Kind, do func(*metric.Sample) bool)
	Lookup(e metric.Entity) (*metric.Sample, bool)
	Pod(ref metric.PodRef) (pod *metric.Sample, containers []*metric.Sample)
	// PastPods yields the pods of a node that have points, also those that have left.
	PastPods(node metric.NodeName) iter.Seq[metric.Entity]
	// Points yields the points of a metric of an entity, oldest first.
	Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64]
}

// The metrics of stalls, by resource.
var (
	someOf    = [numResources]metric.ID{cpu: metric.CPUPressureSomeRate, memory: metric.MemoryPressureSomeRate, io: metric.IOPressureSomeRate}
	fullOf    = [numResources]metric.ID{cpu: metric.CPUPressureFullRate, memory: metric.MemoryPressureFullRate, io: metric.IOPressureFullRate}
	counterOf = [numResources]metric.ID{cpu: metric.CPUPressureSome, memory: metric.MemoryPressureSome, io: metric.IOPressureSome}
)

// collector reads facts from memory. What it reads of a node is kept for the next pod there.
type collector struct {
	View
	facts  *cluster.Facts
	window time.Duration
	nodes  map[metric.NodeName]*nodeFacts
}

// nodeFacts are what all pods of a node share.
type nodeFacts struct {
	pods     []Use
	whole    Use
	noStalls string
}

// slack is how much more of the history of neighbours is read: nodes read each cgroup at its own moments.
const slack = time.Minute

// span returns the time that is looked at: it ends at the newest reading of the pod.
func (c *collector) span(pod *metric.Sample) (from, to time.Time) {
	to = pod.Time(metric.CPU)
	return to.Add(-c.window), to
}

func (c *collector) series(e metric.Entity, id metric.ID, scale float64, from, to time.Time) (s Series) {
	for at, v := range c.Points(e, id, from, to) {
		s = append(s, Point{at, v * scale})
	}
	return s
}

var nanocores = metric.Nanocores.Prometheus()

// value returns a value of s, or 0 if it has none.
func value(s *metric.Sample, id metric.ID) float64 {
	v, _ := s.Values.Get(id)
	return v
}

// load reads what everybody used of the resources that pods compete for.
func (c *collector) load(s *metric.Sample, from, to time.Time) Use {
	e := s.Entity
	return Use{
		Namespace: string(e.Namespace), Name: string(e.Pod),
		CPU: c.series(e, metric.CPUUsageRate, nanocores, from, to), WorkingSet: c.series(e, metric.MemoryWorkingSet, 1, from, to),
		Read: c.series(e, metric.DiskReadBytesRate, 1, from, to), Write: c.series(e, metric.DiskWriteBytesRate, 1, from, to),
		CPURequest: value(s, metric.CPURequest) * nanocores, CPULimit: value(s, metric.CPULimit) * nanocores,
		MemoryRequest: value(s, metric.MemoryRequest), MemoryLimit: value(s, metric.MemoryLimit),
		Some: [numResources]Series{io: c.series(e, someOf[io], 1, from, to)},
	}
}

// use reads all about a pod or a container.
func (c *collector) use(s *metric.Sample, from, to time.Time) Use {
	u := c.load(s, from, to)
	e := s.Entity
	if e.Kind == metric.Container {
		u.Name = e.Name
	}
	u.Throttled = c.series(e, metric.CPUThrottledRate, nanocores, from, to)
	u.Memory, u.LimitHits = c.series(e, metric.MemoryUsage, 1, from, to), value(s, metric.MemoryFailures)
	u.MajorFaults = c.series(e, metric.MemoryMajorPageFaultsRate, 1, from, to)
	for r := range resources {
		u.Some[r] = c.series(e, someOf[r], 1, from, to)
		// Before Linux 5.13 the kernel does not report when all threads wait for CPU, and cAdvisor writes 0.
		if r != cpu || value(s, metric.CPUPressureFull) > 0 {
			u.Full[r] = c.series(e, fullOf[r], 1, from, to)
		}
	}
	return u
}

// disk is a disk of a pod, with the bytes of each second, and all since the pod's cgroup was made.
type disk struct {
	name        string
	rate, total float64
}

// sharesOf returns the share of each disk, now or, if the pod moves nothing now, of all its bytes. It is empty if
// the pod has moved none.
func sharesOf(disks []disk) map[string]float64 {
	shares, rate, total := map[string]float64{}, 0.0, 0.0
	for _, d := range disks {
		rate, total = rate+d.rate, total+d.total
	}
	for _, d := range disks {
		share := d.total / max(1, total)
		if rate > 0 {
			share = d.rate / rate
		}
		if share > 0 {
			shares[d.name] = share
		}
	}
	return shares
}

// node reads a node and its pods.
func (c *collector) node(name metric.NodeName, from, to time.Time) *nodeFacts {
	if n := c.nodes[name]; n != nil {
		return n
	}
	n := &nodeFacts{}
	c.nodes[name] = n
	from, to = from.Add(-slack), to.Add(slack)
	stalls, detailed := false, false
	disks := map[metric.PodRef][]disk{}
	c.EachOn(name, metric.Pod, func(s *metric.Sample) bool {
		ref := s.Entity.PodRef()
		if s.Entity.Part != "" {
			disks[ref] = append(disks[ref], disk{s.Entity.Part,
				value(s, metric.DiskReadBytesRate) + value(s, metric.DiskWriteBytesRate), value(s, metric.DiskReadBytes) + value(s, metric.DiskWriteBytes)})
			return true
		}
		disks[ref] = nil // its parts follow
		stalls = stalls || hasStalls(s)
		detailed = detailed || isDetailed(s)
		n.pods = append(n.pods, c.load(s, from, to))
		return true
	})
	for i := range n.pods {
		u := &n.pods[i]
		u.Disks = sharesOf(disks[metric.PodRef{Namespace: metric.Namespace(u.Namespace), Name: metric.PodName(u.Name)}])
	}
	for e := range c.PastPods(name) {
		if _, known := disks[e.PodRef()]; !known {
			disks[e.PodRef()] = nil
			if u := c.pastPod(e, from, to); len(u.CPU)+len(u.WorkingSet)+len(u.Read)+len(u.Write) > 0 {
				n.pods = append(n.pods, u)
			}
		}
	}
	if !stalls {
		n.noStalls = noStalls(string(name), detailed)
	}
	e := metric.Entity{Kind: metric.Node, Node: name}
	s, ok := c.Lookup(e)
	if !ok {
		return n
	}
	n.whole = c.load(s, from, to)
	n.whole.CPULimit, n.whole.CPURequest = reserve(s, metric.CPUNodeCapacity, metric.CPUNodeAllocatable, nanocores)
	n.whole.MemoryLimit, n.whole.MemoryRequest = reserve(s, metric.MemoryNodeCapacity, metric.MemoryNodeAllocatable, 1)
	return n
}

// pastPod reads a pod that has left. What it requested is known while the API server has it: a pod of a Job that
// has ended.
func (c *collector) pastPod(e metric.Entity, from, to time.Time) Use {
	u := c.load(&metric.Sample{Entity: e}, from, to)
	p := c.facts.Pod(e.PodRef())
	if u.NoRequests = p == nil || p.Node != e.Node; !u.NoRequests {
		u.CPURequest, u.MemoryRequest = requested(p, metric.CPURequest)*nanocores, requested(p, metric.MemoryRequest)
	}
	return u
}

// requested returns what the containers of a pod request that run together, or what the pod itself does.
func requested(p *cluster.Pod, id metric.ID) (total float64) {
	if whole, ok := p.Spec.Get(id); ok {
		return whole
	}
	for i := range p.Containers {
		if c := &p.Containers[i]; c.Role != cluster.Init && c.Role != cluster.Ephemeral {
			v, _ := c.Spec.Get(id)
			total += v
		}
	}
	return total
}

// reserve returns what a node has of a resource, and what it reserves of it for processes outside pods: nothing
// if that is not known.
func reserve(s *metric.Sample, capacityID, allocatableID metric.ID, scale float64) (capacity, reserved float64) {
	capacity = value(s, capacityID) * scale
	if allocatable := value(s, allocatableID) * scale; allocatable > 0 {
		reserved = max(0, capacity-allocatable)
	}
	return capacity, reserved
}

// hasStalls reports whether a node reports stalls of a pod. cAdvisor writes 0 where the kernel has none,
// and a pod that has run has waited for a CPU at some time.
func hasStalls(s *metric.Sample) bool {
	return slices.ContainsFunc(counterOf[:], func(id metric.ID) bool { return value(s, id) > 0 })
}

// isDetailed reports whether the endpoint that is read has details of memory.
func isDetailed(s *metric.Sample) bool { return s.Values.Has(metric.MemoryRSS) }

// noStalls returns why the pods of a node have no stalls. detailed is set if the node reports details of
// memory, which only an endpoint with stalls has.
func noStalls(node string, detailed bool) string {
	if !detailed {
		return "weir reads no stalls of node " + node + ": /metrics/resource has none. Read /metrics/cadvisor of its kubelet or of weir's agent: --source=kubelet:?endpoint=cadvisor."
	}
	return "node " + node + " reports no stalls of pods. On cgroup version 1 the kernel has none. On version 2 the kernel needs CONFIG_PSI (and psi=1 on its command line, if it is off by default), and a kubelet the feature gate KubeletPSI (on by default since Kubernetes 1.34)."
}

// collect returns the facts about a pod.
func (c *collector) collect(ref metric.PodRef) (f Facts, ok bool) {
	pod, containers := c.Pod(ref)
	if pod == nil || pod.Times[metric.CPU] == 0 {
		return f, false
	}
	from, to := c.span(pod)
	n := c.node(pod.Entity.Node, from, to)
	f = Facts{Node: string(pod.Entity.Node), From: from, To: to, Pod: c.use(pod, from, to), Whole: n.whole, NoStalls: n.noStalls}
	for _, s := range containers {
		f.Containers = append(f.Containers, c.use(s, from, to))
	}
	for i := range n.pods {
		if o := &n.pods[i]; o.Namespace == string(ref.Namespace) && o.Name == string(ref.Name) {
			f.Pod.Disks = o.Disks
		} else {
			f.Neighbours = append(f.Neighbours, *o)
		}
	}
	if p := c.facts.Pod(ref); p != nil {
		if owner := p.Workload(); owner.Name != "" {
			f.Workload = &owner
		}
	}
	return f, true
}

// lost returns the largest share of the time that a pod waited for one resource or, without stalls, that
// its own limits on CPU held it back.
func (c *collector) lost(pod *metric.Sample, stalls bool) (share float64) {
	from, to := c.span(pod)
	mean := func(e metric.Entity, id metric.ID, scale float64) float64 {
		v, _ := c.series(e, id, scale, from, to).mean(from)
		return v
	}
	if stalls {
		for _, id := range someOf {
			share = max(share, min(1, mean(pod.Entity, id, 1)))
		}
		return share
	}
	if !isDetailed(pod) { // no endpoint without details has throttled time
		return 0
	}
	_, containers := c.Pod(pod.Entity.PodRef())
	for _, s := range append(containers, pod) {
		if s.Values.Has(metric.CPUThrottled) {
			share = max(share, standstill(mean(s.Entity, metric.CPUThrottledRate, nanocores), mean(s.Entity, metric.CPUUsageRate, nanocores)))
		}
	}
	return share
}
