// Package enrich adds requests and limits of containers and pods, capacity and requests of
// nodes, and uptime. They come from the API server's facts. Without a cluster there are only
// the numbers that the source reported.
//
// Ratios of usage to request or capacity are computed by aggregate: a pod's usage is known only
// after its containers are summed.
//
// resources.go is Kubernetes' rule for a pod's requests and limits. network.go removes the
// node's network from pods that share it.
package enrich

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Enricher enriches the batches of one source. Its state between batches only saves work. It is
// not safe for concurrent use.
type Enricher struct {
	slots metric.SlotTable // used if no earlier step assigned slots
	round uint32           // counts batches
	seen  []uint32         // by the pod's slot: the last round that had a sample of it
	// requested is the sum of the requests and limits of the node's pods. It is valid while the
	// generation of the node's pods is this one.
	requested  resources
	node       metric.NodeName
	generation uint64
}

// New returns an Enricher for one source.
func New() *Enricher { return &Enricher{} }

// Process sets the Spec group of b's samples. If the batch has only containers of a pod or
// node, it adds a sample with only that group, which aggregate completes. It adds no sample for
// other entities, and does not change rejected samples.
func (e *Enricher) Process(facts *cluster.Facts, b *metric.Batch, now time.Time) {
	b.AssignSlots(&e.slots)
	e.round++
	e.seen = metric.BySlot(b.Slots, e.seen)
	sawNode := false
	reported := len(b.Samples)
	for i := range reported {
		if s := &b.Samples[i]; !s.Rejected() {
			e.enrich(facts, b, i, now)
			sawNode = sawNode || s.Entity.Kind == metric.Node && s.Entity.Part == "" && s.Entity.Node == b.Node
		}
	}
	e.addPods(facts, b, reported, now)
	if n := facts.Node(b.Node); n != nil && !sawNode && reported > 0 {
		s := b.AddAt(b.Slots.SlotOf(&metric.Entity{Kind: metric.Node, Node: b.Node}))
		e.setNode(s, facts)
		markSpec(s, 0, now)
	}
}

// enrich sets the Spec group of sample i.
func (e *Enricher) enrich(facts *cluster.Facts, b *metric.Batch, i int, now time.Time) {
	s := &b.Samples[i]
	var pod *cluster.Pod
	if s.Entity.Kind == metric.Pod || s.Entity.Kind == metric.Container {
		pod = podOf(facts, b, i)
	}
	if pod != nil && pod.HostNetwork && s.Entity.Kind == metric.Pod {
		removeNetwork(b, s)
	}
	if s.Entity.Part != "" {
		return
	}
	read := latest(s)
	setUptime(s, pod, read)
	switch {
	case s.Entity.Kind == metric.Node:
		e.setNode(s, facts)
	case pod != nil && s.Entity.Kind == metric.Container:
		if c := pod.Container(s.Entity.Name); c != nil {
			s.Values.SetAll(c.Spec.Values())
		}
	case pod != nil && s.Entity.Kind == metric.Pod:
		e.seen[s.Slot] = e.round
		setPod(s, pod)
	}
	markSpec(s, read, now)
}

// addPods adds a sample for each pod that has only containers in the batch.
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
		own := b.AddAt(slot) // s may point to the old array from here on
		own.Instance.UID = pod.ReportedUID()
		setPod(own, pod)
		switch {
		case pod.HostNetwork:
			removeNetwork(b, own)
		case own.Values.Len() == 0: // it has no requests or limits: no sample is needed
			b.Samples = b.Samples[:len(b.Samples)-1]
			continue
		}
		markSpec(own, 0, now)
	}
}

// podOf returns the facts of the pod that sample i is or belongs to; nil if they are of another
// pod of that name, or of a pod on another node.
func podOf(facts *cluster.Facts, b *metric.Batch, i int) *cluster.Pod {
	s := &b.Samples[i]
	pod := facts.PodOf(b, i)
	if pod == nil || pod.Node != s.Entity.Node || s.Instance.UID != "" && !pod.HasUID(s.Instance.UID) {
		return nil
	}
	return pod
}

func setPod(s *metric.Sample, pod *cluster.Pod) {
	total := resourcesOf(pod)
	total.set(&s.Values)
}

// setNode sets the node's capacity, and the requests of the pods on it that have not ended.
// Without any request the sum is 0, once all pods are known.
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

// requestedOn returns the sum of requests and limits of the pods on a node that have not ended.
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

// setUptime sets the age of the instance when it was read. A cgroup's modification time is not
// a start: the start by the API server is used, and without one there is no uptime.
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

// latest returns when the newest group of s was read, the group Spec excluded.
func latest(s *metric.Sample) int64 {
	var t int64
	for g, at := range s.Times {
		if metric.Group(g) != metric.Spec {
			t = max(t, at)
		}
	}
	return t
}

// markSpec marks the Spec group as measured, at the time of the sample's newest reading.
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

// firstSpec is the first metric of the group Spec, which is the last group of the catalogue.
const firstSpec = metric.Uptime
