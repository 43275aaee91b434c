// Package enrich writes beside what is used what was asked for and what there
// is: requests and limits of containers and pods, capacity and requests of
// nodes, uptime. It knows these from the API server's facts; without a cluster
// only what the source itself reported is there.
//
// Ratios of use to request or capacity are not made here: a pod's use is known
// only when its containers have been added up, which is aggregate's work, and
// all ratios are made there.
//
// resources.go is Kubernetes' rule for what a pod amounts to, network.go takes
// the node's network off pods that merely share it.
package enrich

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Enricher enriches the batches of one source. What it keeps between batches
// only saves work. It is not safe for concurrent use.
type Enricher struct {
	slots metric.SlotTable // used if no step before has one
	round uint32           // counts batches
	seen  []uint32         // by the pod's slot: the last round that had a sample of it
	// requested is what the pods of the node ask for, together. It is current while the
	// generation of the node's pods is this one.
	requested  resources
	node       metric.NodeName
	generation uint64
}

// New returns an Enricher for one source.
func New() *Enricher { return &Enricher{} }

// Process sets the Spec group of b's samples. A pod or a node of which the batch
// only has containers gets a sample that holds nothing else, for the numbers
// that aggregate will add; nothing is added for what the batch does not speak
// of. Rejected samples are left alone.
func (e *Enricher) Process(facts *cluster.Facts, b *metric.Batch, now time.Time) {
	b.AssignSlots(&e.slots)
	e.round++
	e.seen = metric.BySlot(b.Slots, e.seen)
	sawNode := false
	reported := len(b.Samples)
	for i := range reported {
		s := &b.Samples[i]
		if s.Rejected() {
			continue
		}
		var pod *cluster.Pod
		if s.Entity.Kind == metric.Pod || s.Entity.Kind == metric.Container {
			pod = podOf(facts, b, i)
		}
		if pod != nil && pod.HostNetwork && s.Entity.Kind == metric.Pod {
			removeNetwork(b, s)
		}
		if s.Entity.Part != "" {
			continue
		}
		read := latest(s)
		setUptime(s, pod, read)
		switch s.Entity.Kind {
		case metric.Container:
			if pod != nil {
				setContainer(s, pod.Container(s.Entity.Name))
			}
		case metric.Pod:
			if pod != nil {
				e.seen[s.Slot] = e.round
				setPod(s, pod)
			}
		case metric.Node:
			sawNode = sawNode || s.Entity.Node == b.Node
			e.setNode(s, facts)
		}
		markSpec(s, read, now)
	}
	e.addPods(facts, b, reported, now)
	if n := facts.Node(b.Node); n != nil && !sawNode && reported > 0 {
		s := b.AddAt(b.Slots.SlotOf(&metric.Entity{Kind: metric.Node, Node: b.Node}))
		e.setNode(s, facts)
		markSpec(s, 0, now)
	}
}

// addPods adds a sample for each pod of which there are containers only.
func (e *Enricher) addPods(facts *cluster.Facts, b *metric.Batch, reported int, now time.Time) {
	for i := range reported {
		s := &b.Samples[i]
		if s.Entity.Kind != metric.Container || s.Entity.Part != "" || s.Rejected() {
			continue
		}
		pod := podOf(facts, b, i)
		slot := b.Slots.PodOf(s.Slot)
		if pod == nil || e.seen[slot] == e.round {
			continue
		}
		e.seen[slot] = e.round
		own := b.AddAt(slot) // s may be of the old array from here on
		own.Instance.UID = pod.ReportedUID()
		setPod(own, pod)
		switch {
		case pod.HostNetwork:
			removeNetwork(b, own)
		case own.Values.Len() == 0: // it asks for nothing: no need of a sample
			b.Samples = b.Samples[:len(b.Samples)-1]
			continue
		}
		markSpec(own, 0, now)
	}
}

// podOf returns the facts of the pod that sample i is or belongs to: nil if they are
// of another pod of that name.
func podOf(facts *cluster.Facts, b *metric.Batch, i int) *cluster.Pod {
	s := &b.Samples[i]
	pod := facts.PodOf(b, i)
	if pod == nil || pod.Node != s.Entity.Node || s.Instance.UID != "" && !pod.HasUID(s.Instance.UID) {
		return nil
	}
	return pod
}

func setContainer(s *metric.Sample, c *cluster.Container) {
	if c == nil {
		return
	}
	s.Values.SetAll(c.Spec.Values())
}

func setPod(s *metric.Sample, pod *cluster.Pod) {
	total := resourcesOf(pod)
	total.set(&s.Values)
}

// setNode sets what the node has, and what the pods on it that have not ended
// ask for. Nothing asked for is a 0, once all pods are known.
func (e *Enricher) setNode(s *metric.Sample, facts *cluster.Facts) {
	n := facts.Node(s.Entity.Node)
	if n == nil {
		return
	}
	for id, v := range n.Spec.All() {
		s.Values.Set(id, v)
	}
	if !facts.Synced {
		return
	}
	for _, id := range [...]metric.ID{metric.CPURequest, metric.MemoryRequest, metric.EphemeralStorageRequest} {
		s.Values.Set(id, 0)
	}
	asked := e.requestedOn(facts, s.Entity.Node)
	asked.set(&s.Values)
}

// requestedOn returns what those pods of a node ask for that have not ended.
func (e *Enricher) requestedOn(facts *cluster.Facts, node metric.NodeName) *resources {
	generation := facts.PodsGeneration(node)
	if node == e.node && generation == e.generation {
		return &e.requested
	}
	e.requested, e.node, e.generation = resources{}, node, generation
	for _, pod := range facts.PodsOn(node) {
		if pod.Phase != cluster.Succeeded && pod.Phase != cluster.Failed {
			total := resourcesOf(pod)
			e.requested.add(&total)
		}
	}
	return &e.requested
}

// setUptime tells the instance's age when it was read. A cgroup's modification
// time is no start: the API server's word is better, and without that there is
// no uptime.
func setUptime(s *metric.Sample, pod *cluster.Pod, read int64) {
	if read == 0 {
		return
	}
	start := s.Instance.Start
	if s.Instance.Origin < metric.StartReported {
		start = 0
	}
	if start == 0 && pod != nil {
		start = startByFacts(s, pod)
	}
	if start > 0 && start <= read {
		s.Values.Set(metric.Uptime, float64(read-start))
	}
}

func startByFacts(s *metric.Sample, pod *cluster.Pod) int64 {
	started := pod.Started
	if s.Entity.Kind == metric.Container {
		c := pod.Container(s.Entity.Name)
		if c == nil || c.State != cluster.StateRunning || s.Instance.ID != "" && s.Instance.ID != c.ID {
			return 0
		}
		started = c.StartedAt
	}
	if started.IsZero() {
		return 0
	}
	return started.UnixNano()
}

// latest returns when the newest group of s was read.
func latest(s *metric.Sample) int64 {
	var t int64
	for g, at := range s.Times {
		if metric.Group(g) != metric.Spec {
			t = max(t, at)
		}
	}
	return t
}

// markSpec marks the Spec group as measured, as of the sample's newest reading.
func markSpec(s *metric.Sample, read int64, now time.Time) {
	if !s.Values.HasFrom(firstSpec) {
		return
	}
	s.Reasons[metric.Spec] = metric.Measured
	if read != 0 {
		s.Times[metric.Spec] = read
	} else if s.Times[metric.Spec] == 0 {
		s.Times[metric.Spec] = now.UnixNano()
		s.Received |= 1 << metric.Spec
	}
}

// firstSpec is the first metric of the group Spec: they are the last ones of the
// catalogue.
const firstSpec = metric.Uptime
