package explain

import (
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Survey answers for many pods and nodes, about their CPU and memory together or about one other
// metric. The first question about a node or its pods reads everything on the node, so questions
// should come node by node. It is not safe for concurrent use.
type Survey struct {
	explainer *Explainer
	about     []metric.ID                        // one metric, or none for CPU and memory
	few       bool                               // only a few pods of a node are asked about
	bound     map[metric.NodeName][]*cluster.Pod // these pods; nil for all pods
	nodes     map[metric.NodeName]*nodeState
	sources   map[metric.NodeName][]SourceState // those of many nodes have the key ""; nil until they are needed
}

// nodeState is what is known of a node and of the pods that the API server binds to it.
type nodeState struct {
	usage   *activeVerdict // on its CPU and memory; nil if there is none
	group   *activeVerdict // on the survey's own metric, if it has one
	pods    map[metric.PodRef]*podState
	cgroups map[string]*cgroupState // that belong to no pod, by name; nil for a survey of few
	outcome *Outcome                // of CPU and memory
	read    *reading
}

// podState is what is known of a pod.
type podState struct {
	measurement
	facts  *cluster.Pod   // nil if the API server does not know it
	looked bool           // its sample was read where it is bound
	best   *activeVerdict // why it is not served; nil if no verdict explains why
	doubt  doubt          // set if its instance was chosen among equals
}

// doubt is why a served instance is one that was chosen among equals.
type doubt struct {
	since time.Time
	rule  string // of identity
}

// Survey returns a Survey for many pods and nodes, about CPU and memory.
func (ex *Explainer) Survey() *Survey {
	return &Survey{explainer: ex, nodes: make(map[metric.NodeName]*nodeState, ex.Facts.Nodes())}
}

// SurveyOf returns a Survey for a few pods or nodes, about CPU and memory together or, if about has
// a metric, about that one.
func (ex *Explainer) SurveyOf(about ...metric.ID) *Survey {
	return &Survey{explainer: ex, about: about, few: true, nodes: map[metric.NodeName]*nodeState{}}
}

// surveyOfPods returns a Survey for these pods only.
func (ex *Explainer) surveyOfPods(pods []*cluster.Pod) *Survey {
	s := ex.SurveyOf()
	s.bound = map[metric.NodeName][]*cluster.Pod{}
	for _, p := range pods {
		s.bound[p.Node] = append(s.bound[p.Node], p)
	}
	return s
}

// group returns the group that the survey is about.
func (s *Survey) group() metric.Group {
	if len(s.about) == 0 {
		return metric.CPU
	}
	return s.about[0].Describe().Group
}

// measure returns the measurement of sample, which may be nil, for this survey.
func (s *Survey) measure(sample *metric.Sample) measurement {
	if len(s.about) == 0 {
		return measure(sample, metric.CPU, metric.Memory)
	}
	return measureMetric(sample, s.about[0])
}

// on returns what is known of a node and its pods.
func (s *Survey) on(name metric.NodeName) *nodeState {
	n := s.nodes[name]
	if n != nil {
		return n
	}
	bound := s.bound[name]
	if s.bound == nil {
		bound = s.explainer.Facts.PodsOn(name)
	}
	n = &nodeState{pods: make(map[metric.PodRef]*podState, len(bound))}
	s.nodes[name] = n
	pods := make([]podState, len(bound))
	for i, p := range bound {
		pods[i].facts = p
		n.pods[p.PodRef] = &pods[i]
	}
	if !s.few && s.explainer.View != nil {
		s.explainer.View.EachOn(name, metric.Pod, func(sample *metric.Sample) bool {
			if e := &sample.Entity; e.Part == "" {
				if p := n.pods[e.PodRef()]; p != nil {
					p.measurement, p.looked = s.measure(sample), true
				}
			}
			return true
		})
		s.explainer.View.EachOn(name, metric.System, func(sample *metric.Sample) bool {
			if e := &sample.Entity; e.Part == "" {
				c := n.cgroup(e.Name)
				c.cpu, c.memory = measure(sample, metric.CPU), measure(sample, metric.Memory)
			}
			return true
		})
	}
	s.noteVerdicts(name, n)
	return n
}

// noteVerdicts stores the verdicts of a node. A verdict on a pod that is bound to another node is
// ignored.
func (s *Survey) noteVerdicts(name metric.NodeName, n *nodeState) {
	var last metric.PodRef // pod of the last verdict: the next one is often about the same
	var pod *podState
	for v, since := range s.explainer.verdictsOn(name) {
		switch v.Entity.Kind {
		case metric.Node:
			if concernsUsage(&v) {
				keep(&n.usage, &v, since, metric.CPU)
			}
			if s.concerns(&v) {
				keep(&n.group, &v, since, s.group())
			}
		case metric.System:
			if !s.few && concernsUsage(&v) {
				keep(&n.cgroup(v.Entity.Name).best, &v, since, metric.CPU)
			}
		case metric.Pod, metric.Container:
			if ref := v.Entity.PodRef(); ref != last {
				last, pod = ref, n.pods[ref]
			}
			if pod != nil {
				s.noteVerdict(pod, &v, since)
			}
		}
	}
}

// concerns reports whether v can be the reason for an absence that this survey is about.
func (s *Survey) concerns(v *metric.Verdict) bool {
	if len(s.about) == 0 {
		return concernsUsage(v)
	}
	return concernsGroup(v, s.group())
}

// keep replaces *kept with v if v explains better why group g is not served.
func keep(kept **activeVerdict, v *metric.Verdict, since time.Time, g metric.Group) {
	if st := newActiveVerdict(v, since); st.betterThan(*kept, g) {
		better := st // most verdicts are not better and need no memory
		*kept = &better
	}
}

// noteVerdict stores a verdict on pod p or one of its containers if it explains the pod's absence
// better than the one before.
func (s *Survey) noteVerdict(p *podState, v *metric.Verdict, since time.Time) {
	if v.Reason == metric.Ambiguous {
		if v.Entity.Kind == metric.Pod && v.Entity.Part == "" && !isRejected(v) {
			p.doubt = doubt{since, v.Evidence.Rule}
		}
		return
	}
	if !s.concerns(v) || isIrrelevant(v, s.group()) {
		return
	}
	if st := newActiveVerdict(v, since); p.facts == nil || !st.replaced(p.facts) && !st.concernsRest(p.facts) {
		keep(&p.best, v, since, s.group())
	}
}

// reading returns the reading of a node.
func (s *Survey) reading(name metric.NodeName) *reading {
	n := s.on(name)
	if n.read != nil {
		return n.read
	}
	// Sorting the sources is worth it only for many nodes.
	if s.few && len(s.nodes) <= 8 {
		n.read = s.explainer.readingOf(name)
		return n.read
	}
	n.read = s.explainer.newReading(s.sourcesOf(name))
	return n.read
}

// sourcesOf returns the sources that read a node, its own and those of many nodes.
func (s *Survey) sourcesOf(name metric.NodeName) []SourceState {
	if s.sources == nil {
		s.sources = make(map[metric.NodeName][]SourceState, len(s.explainer.Sources))
		for _, source := range s.explainer.Sources {
			s.sources[source.Node] = append(s.sources[source.Node], source)
		}
	}
	if name == "" {
		return s.sources[""]
	}
	return slices.Concat(s.sources[name], s.sources[""])
}

// Node returns the outcome of a node.
func (s *Survey) Node(name metric.NodeName) Outcome {
	if len(s.about) == 0 {
		return s.ofNode(name)
	}
	sample := s.explainer.lookup(metric.Entity{Kind: metric.Node, Node: name})
	return s.explainer.judgeNode(name, s.group(), s.measure(sample), s.on(name).group, s.reading(name))
}

// ofNode returns the outcome of a node's CPU and memory.
func (s *Survey) ofNode(name metric.NodeName) Outcome {
	n := s.on(name)
	if n.outcome == nil {
		r := s.explainer.judgeNode(name, metric.CPU, s.explainer.lookNode(name), n.usage, s.reading(name))
		n.outcome = &r
	}
	return *n.outcome
}

// Pod returns the outcome of a pod that the API server knows.
func (s *Survey) Pod(p *cluster.Pod) Outcome {
	known := s.on(p.Node).pods[p.PodRef]
	if known == nil { // it is bound to no node, or does not belong to these facts
		known = &podState{}
	}
	if !known.looked && p.Node != "" {
		known.measurement, known.looked = s.measure(s.find(p)), true
	}
	q := question{
		explainer: s.explainer, pod: p, kind: metric.Pod, asked: s.group(), best: known.best, measurement: known.measurement,
		read: func() *reading { return s.reading(p.Node) }, node: func() Outcome { return s.ofNode(p.Node) },
	}
	r := q.outcome()
	if r.Reason == metric.Ambiguous {
		r.Since, r.evidence.Rule = known.doubt.since, known.doubt.rule
	}
	return r
}

// find returns the served sample of a pod that was not found on its node, or nil.
func (s *Survey) find(p *cluster.Pod) *metric.Sample {
	if s.few {
		return s.explainer.lookupPod(p.PodRef)
	}
	return s.explainer.lookup(metric.Entity{Kind: metric.Pod, Namespace: p.Namespace, Pod: p.Name})
}

// lookupPod returns the served sample of a pod, or nil. It looks on the node that the API server
// binds the pod to, and then on any node.
func (ex *Explainer) lookupPod(ref metric.PodRef) *metric.Sample {
	e := metric.Entity{Kind: metric.Pod, Namespace: ref.Namespace, Pod: ref.Name}
	if p := ex.Facts.Pod(ref); p != nil && p.Node != "" {
		e.Node = p.Node
		if s := ex.lookup(e); s != nil {
			return s
		}
		e.Node = ""
	}
	return ex.lookup(e)
}

// lookup returns the served sample of an entity, or nil.
func (ex *Explainer) lookup(e metric.Entity) *metric.Sample {
	if ex.View == nil {
		return nil
	}
	if s, ok := ex.View.Lookup(e); ok {
		return s
	}
	return nil
}

// lookNode returns the measurement of a node.
func (ex *Explainer) lookNode(name metric.NodeName) measurement {
	return measure(ex.lookup(metric.Entity{Kind: metric.Node, Node: name}), metric.CPU, metric.Memory)
}
