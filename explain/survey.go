package explain

import (
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Survey answers for many pods and nodes, of their CPU and memory together or of
// one other metric. It is not safe for concurrent use.
type Survey struct {
	w      *World
	about  []metric.ID              // one, or none for CPU and memory
	walked map[metric.NodeName]bool // of which nodes what stands is noted; nil for all
	pods   map[metric.PodRef]*podStand
	nodes  map[metric.NodeName]*stand // against CPU and memory
	other  map[metric.NodeName]*stand // against what it is about, if that is another
	ruled  map[metric.NodeName]Ruling // of CPU and memory

	readings map[metric.NodeName]*reading
	sources  map[metric.NodeName][]Source // once many readings were asked for

	slab []podStand // to be given out
	last struct {   // that a verdict was about: the next is often too
		ref   metric.PodRef
		facts *metric.PodFacts
		pod   *podStand
	}
}

// podStand is what is known of a pod.
type podStand struct {
	sight
	looked bool            // for its sample
	node   metric.NodeName // where it was measured
	on     metric.NodeName // where the verdict was made
	said   bool
	best   stand
	// doubt is since when the instance is one chosen among equals.
	doubt time.Time
}

// Survey walks once over all verdicts and pods' samples, so as to answer for all.
func (w *World) Survey() *Survey {
	return w.survey(w.Facts.Pods(), func(metric.Namespace) bool { return true })
}

// SurveyOf returns a Survey that answers for a few, of CPU and memory together or,
// if one is given, of another metric. It walks over what stands on a node when first
// asked about something there.
func (w *World) SurveyOf(about ...metric.ID) *Survey {
	s := w.newSurvey(0)
	s.about, s.walked = about, map[metric.NodeName]bool{}
	if len(about) > 0 {
		s.other = map[metric.NodeName]*stand{}
	}
	return s
}

func (w *World) newSurvey(pods int) *Survey {
	return &Survey{
		w: w, pods: make(map[metric.PodRef]*podStand, pods), nodes: map[metric.NodeName]*stand{},
		readings: map[metric.NodeName]*reading{}, ruled: map[metric.NodeName]Ruling{},
	}
}

// group returns the group of what is asked about.
func (s *Survey) group() metric.Group {
	if len(s.about) == 0 {
		return metric.CPU
	}
	return s.about[0].Describe().Group
}

// look returns what a sample, which may be nil, holds of what is asked about.
func (s *Survey) look(sample *metric.Sample) sight {
	if len(s.about) == 0 {
		return look(sample, metric.CPU, metric.Memory)
	}
	return lookFor(sample, s.about[0])
}

// walk notes what stands on a node, unless that is done.
func (s *Survey) walk(name metric.NodeName) {
	if s.walked == nil || s.walked[name] {
		return
	}
	s.walked[name] = true
	for v, since := range s.w.verdictsOn(name) {
		s.hear(&v, since)
	}
}

// hear notes a verdict.
func (s *Survey) hear(v *metric.Verdict, since time.Time) {
	switch v.Entity.Kind {
	case metric.Node:
		if speaks(v) {
			keep(s.nodes, v, since)
		}
		if s.other != nil && speaksOf(v, s.group()) {
			keep(s.other, v, since)
		}
	case metric.Pod, metric.Container:
		switch {
		case v.Reason == metric.Ambiguous:
			if v.Entity.Kind == metric.Pod && v.Entity.Part == "" && !turnedAway(v) {
				s.note(v, since)
			}
		case s.other == nil && speaks(v), s.other != nil && speaksOf(v, s.group()):
			s.note(v, since)
		}
	}
}

// keep keeps a verdict on a node, if it says more than the one that was kept.
func keep(stands map[metric.NodeName]*stand, v *metric.Verdict, since time.Time) {
	st := standOf(v, since)
	if was := stands[v.Entity.Node]; was == nil || st.before(was) {
		stands[v.Entity.Node] = &st
	}
}

// each calls do with what is served of the entities of a kind, each good until
// do returns. The memory sink need not copy them for that.
func (w *World) each(kind metric.Kind, do func(*metric.Sample) bool) {
	if v, ok := w.View.(interface {
		Each(metric.Kind, func(*metric.Sample) bool)
	}); ok {
		v.Each(kind, do)
		return
	}
	w.View.Samples(kind)(do)
}

// survey walks so for about so many pods, of some namespaces.
func (w *World) survey(pods int, in func(metric.Namespace) bool) *Survey {
	s := w.newSurvey(pods)
	if w.View == nil {
		return s
	}
	w.each(metric.Pod, func(sample *metric.Sample) bool {
		if e := &sample.Entity; e.Part == "" && in(e.Namespace) {
			p := s.pod(e.PodRef())
			if p.node != "" { // several nodes report it: the view knows which to go by
				if sample = w.lookupPod(e.PodRef()); sample == nil {
					return true
				}
			}
			p.sight, p.node = s.look(sample), sample.Entity.Node
		}
		return true
	})
	for v, since := range w.View.Verdicts() {
		if v.Entity.Kind == metric.Node || in(v.Entity.Namespace) {
			s.hear(&v, since)
		}
	}
	return s
}

func (s *Survey) pod(ref metric.PodRef) *podStand {
	p := s.pods[ref]
	if p == nil {
		if len(s.slab) == 0 {
			s.slab = make([]podStand, min(256, max(16, len(s.pods))))
		}
		p, s.slab = &s.slab[0], s.slab[1:]
		s.pods[ref] = p
	}
	return p
}

// note keeps a verdict on a pod or container, if it says more than the one that
// was kept.
func (s *Survey) note(v *metric.Verdict, since time.Time) {
	last := &s.last
	if ref := v.Entity.PodRef(); last.pod == nil || last.ref != ref {
		last.ref, last.facts, last.pod = ref, s.w.Facts.Pod(ref), s.pod(ref)
	}
	if f := last.facts; f != nil && f.Node != "" && f.Node != v.Entity.Node {
		return // of another node's pod of that name: no reason for the present one's absence
	}
	if unheard(v) {
		return
	}
	if v.Reason == metric.Ambiguous {
		last.pod.doubt = since
		return
	}
	p, st := last.pod, standOf(v, since)
	better := !p.said || st.before(&p.best)
	if s.other != nil && !better && !p.best.before(&st) {
		better = st.group == s.group() && p.best.group != st.group
	}
	if better {
		p.said, p.best, p.on = true, st, v.Entity.Node
	}
}

// fewNodes is of how many nodes the sources are looked for one by one.
const fewNodes = 8

// reading returns how a node is read.
func (s *Survey) reading(name metric.NodeName) *reading {
	r := s.readings[name]
	if r != nil {
		return r
	}
	if s.walked != nil && len(s.readings) < fewNodes {
		r = s.w.readingOf(name)
	} else {
		s.sort()
		sources := s.sources[""]
		if name != "" {
			sources = slices.Concat(s.sources[name], sources)
		}
		r = newReading(sources, s.w.Now)
	}
	s.readings[name] = r
	return r
}

// sort sorts the sources by node; those of many nodes have none.
func (s *Survey) sort() {
	if s.sources != nil {
		return
	}
	s.sources = make(map[metric.NodeName][]Source, len(s.w.Sources))
	for _, source := range s.w.Sources {
		s.sources[source.Node] = append(s.sources[source.Node], source)
	}
}

// Node says what became of a node.
func (s *Survey) Node(name metric.NodeName) Ruling {
	if len(s.about) == 0 {
		return s.ofNode(name)
	}
	s.walk(name)
	var sample *metric.Sample
	if s.w.View != nil {
		sample, _ = s.w.View.Lookup(metric.Entity{Kind: metric.Node, Node: name})
	}
	return s.w.ruleNode(name, s.group(), s.look(sample), s.other[name], s.reading(name))
}

// ofNode says what became of a node's CPU and memory.
func (s *Survey) ofNode(name metric.NodeName) Ruling {
	r, ok := s.ruled[name]
	if !ok {
		s.walk(name)
		r = s.w.ruleNode(name, metric.CPU, s.w.lookNode(name), s.nodes[name], s.reading(name))
		s.ruled[name] = r
	}
	return r
}

// Pod says what became of a pod that the API server knows.
func (s *Survey) Pod(p *metric.PodFacts) Ruling {
	s.walk(p.Node)
	known := s.pods[p.PodRef]
	if s.walked != nil && s.w.View != nil && (known == nil || !known.looked) {
		known = s.pod(p.PodRef)
		known.sight, known.looked = s.look(s.w.lookupPod(p.PodRef)), true
	}
	l, st := sight{}, (*stand)(nil)
	if known != nil {
		l = known.sight
		if known.said {
			st = &known.best
		}
	}
	r := rulePod(p, s.group(), l, st, func() *reading { return s.reading(p.Node) }, func() Ruling { return s.ofNode(p.Node) })
	if r.Reason == metric.Ambiguous {
		r.Since = s.pods[p.PodRef].doubt
	}
	return r
}

// lookupPod returns what is served of a pod, or nil: on the node that the API
// server binds it to, or else where the view has it.
func (w *World) lookupPod(ref metric.PodRef) *metric.Sample {
	e := metric.Entity{Kind: metric.Pod, Namespace: ref.Namespace, Pod: ref.Name}
	if p := w.Facts.Pod(ref); p != nil && p.Node != "" {
		e.Node = p.Node
		if s, ok := w.View.Lookup(e); ok {
			return s
		}
		e.Node = ""
	}
	s, _ := w.View.Lookup(e)
	return s
}

// lookNode returns what is measured of a node.
func (w *World) lookNode(name metric.NodeName) sight {
	if w.View == nil {
		return sight{}
	}
	s, _ := w.View.Lookup(metric.Entity{Kind: metric.Node, Node: name})
	return look(s, metric.CPU, metric.Memory)
}
