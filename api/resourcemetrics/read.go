package resourcemetrics

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/served"
)

// reading is what is served of one node or pod.
type reading struct {
	namespace metric.Namespace // of a pod
	name      string
	labels    map[string]string
	over      served.Span // the time it was measured over
	// uses are uses[from:to] of the readings it is one of: a node's own, or
	// one for each container of a pod.
	from, to int
}

// readings are what a LIST serves. They lie in two slices, so that a LIST of a
// large cluster is no matter of many small objects before it is encoded.
type readings struct {
	items []reading
	uses  []served.Use
}

// answer is all that one request needs.
type answer struct {
	view    View
	facts   *metric.Facts // nil where there is no API server
	options *Options
}

// add appends what s says its entity uses, and returns the time it is of and
// whether both numbers are there.
func (r *readings) add(s *metric.Sample) (over served.Span, ok bool) {
	u, over, ok := served.UseOf(s)
	if ok {
		r.uses = append(r.uses, u)
	}
	return over, ok
}

// addContainer counts a container into the last item.
func (r *readings) addContainer(s *metric.Sample) {
	over, ok := r.add(s)
	if !ok {
		return // it is not required: else the pod would not be whole
	}
	i := &r.items[len(r.items)-1]
	i.over, i.to = i.over.Oldest(over), len(r.uses)
}

// begin appends an item without numbers.
func (r *readings) begin(namespace metric.Namespace, name string, labels map[string]string) {
	r.items = append(r.items, reading{namespace: namespace, name: name, labels: labels, from: len(r.uses), to: len(r.uses)})
}

// finish drops the last item if it has no numbers and reports whether it has.
func (r *readings) finish() bool {
	n := len(r.items) - 1
	if r.items[n].from == r.items[n].to {
		r.items = r.items[:n]
		return false
	}
	return true
}

// sort puts the items in the order in which the API server lists objects.
func (r *readings) sort() {
	slices.SortFunc(r.items, func(a, b reading) int {
		return cmp.Or(strings.Compare(string(a.namespace), string(b.namespace)), strings.Compare(a.name, b.name))
	})
}

// served reports whether the numbers of a pod may be served. p is nil if the API
// server does not know the pod.
func (a *answer) served(p *metric.PodFacts, s *metric.Sample) bool {
	if a.facts == nil {
		return served.Whole(s)
	}
	return served.Pod(p, s)
}

// pods returns what is served of the chosen pods, and the running ones of
// which nothing is, in the order of names. Without facts nobody knows what runs
// beside what is served.
func (a *answer) pods(c choice) (r readings, missing []*metric.PodFacts) {
	if a.facts == nil {
		if c.namespace != "" && c.name != "" {
			if ref := (metric.PodRef{Namespace: c.namespace, Name: metric.PodName(c.name)}); c.has(c.namespace, c.name, nil) {
				a.lookup(&r, ref, nil)
			}
			return r, nil
		}
		a.scan(&r, c)
		r.sort()
		return r, nil
	}
	running, all := a.running(c)
	if len(running)*8 <= all {
		// A few of many are looked up: one application costs the same in a
		// large cluster as in a small one.
		for _, p := range running {
			if !a.lookup(&r, p.PodRef, p) {
				missing = append(missing, p)
			}
		}
	} else if a.scan(&r, c); len(r.items) < len(running) {
		missing = unserved(running, &r)
	}
	r.sort()
	slices.SortFunc(missing, func(p, q *metric.PodFacts) int {
		return cmp.Or(cmp.Compare(p.Namespace, q.Namespace), cmp.Compare(p.Name, q.Name))
	})
	return r, missing
}

// running returns the chosen pods that run, by what the API server says, and
// how many pods it has in all.
func (a *answer) running(c choice) (running []*metric.PodFacts, all int) {
	take := func(p *metric.PodFacts) bool {
		if p.Phase == metric.Running && c.has(p.Namespace, string(p.Name), p.Labels) {
			running = append(running, p)
		}
		return true
	}
	switch {
	case c.namespace == "":
		a.facts.EachPod(take)
	case c.name == "":
		for _, p := range a.facts.PodsIn(c.namespace) {
			take(p)
		}
	default:
		if p := a.facts.Pod(metric.PodRef{Namespace: c.namespace, Name: metric.PodName(c.name)}); p != nil {
			take(p)
		}
	}
	return running, a.facts.Pods()
}

// unserved returns the pods of running that r does not have.
func unserved(running []*metric.PodFacts, r *readings) (missing []*metric.PodFacts) {
	has := make(map[metric.PodRef]struct{}, len(r.items))
	for i := range r.items {
		has[metric.PodRef{Namespace: r.items[i].namespace, Name: metric.PodName(r.items[i].name)}] = struct{}{}
	}
	for _, p := range running {
		if _, ok := has[p.PodRef]; !ok {
			missing = append(missing, p)
		}
	}
	return missing
}

// lookup adds one pod and reports whether it is served. p is what the API
// server says of it, nil if nothing.
func (a *answer) lookup(r *readings, ref metric.PodRef, p *metric.PodFacts) bool {
	pod, containers := a.view.Pod(ref)
	if !a.served(p, pod) {
		return false
	}
	r.begin(ref.Namespace, string(ref.Name), labelsOf(p))
	for _, c := range containers {
		r.addContainer(c)
	}
	return r.finish()
}

// scan adds the chosen pods by going through all there are. The view yields
// pods and containers in one order, so that they are put together in passing.
func (a *answer) scan(r *readings, c choice) {
	type found struct {
		entity metric.Entity
		labels map[string]string
	}
	var pods []found
	a.view.Each(metric.Pod, func(s *metric.Sample) bool {
		e := s.Entity
		if e.Part != "" {
			return true
		}
		p := a.facts.Pod(e.PodRef())
		if a.served(p, s) && c.has(e.Namespace, string(e.Pod), labelsOf(p)) {
			pods = append(pods, found{e, labelsOf(p)})
		}
		return true
	})
	if len(pods) == 0 {
		return
	}
	r.items, r.uses = make([]reading, 0, len(pods)), make([]served.Use, 0, 2*len(pods))
	next := 0
	a.view.Each(metric.Container, func(s *metric.Sample) bool {
		if s.Entity.Part != "" {
			return true
		}
		of := s.Entity.OfPod()
		for next < len(pods) && pods[next].entity.Compare(of) < 0 {
			next++
		}
		if next == len(pods) {
			return false
		}
		if pods[next].entity != of {
			return true
		}
		if n := len(r.items); n == 0 || r.items[n-1].namespace != of.Namespace || r.items[n-1].name != string(of.Pod) {
			if n > 0 {
				r.finish()
			}
			r.begin(of.Namespace, string(of.Pod), pods[next].labels)
		}
		r.addContainer(s)
		return true
	})
	if len(r.items) > 0 {
		r.finish()
	}
}

// nodes returns what is served of the chosen nodes, and those of which nothing
// is.
func (a *answer) nodes(c choice) (r readings, missing []*metric.NodeFacts) {
	if a.facts == nil {
		a.view.Each(metric.Node, func(s *metric.Sample) bool {
			if s.Entity.Part == "" && c.has("", string(s.Entity.Node), nil) {
				r.addNode(s, nil)
			}
			return true
		})
		r.sort()
		return r, nil
	}
	a.facts.EachNode(func(n *metric.NodeFacts) bool {
		if !c.has("", string(n.Name), n.Labels) {
			return true
		}
		s, ok := a.view.Lookup(metric.Entity{Kind: metric.Node, Node: n.Name})
		if !ok || !r.addNode(s, n.Labels) {
			missing = append(missing, n)
		}
		return true
	})
	r.sort()
	slices.SortFunc(missing, func(n, m *metric.NodeFacts) int { return cmp.Compare(n.Name, m.Name) })
	return r, missing
}

// addNode adds a node and reports whether it is served.
func (r *readings) addNode(s *metric.Sample, labels map[string]string) bool {
	r.begin("", string(s.Entity.Node), labels)
	i := &r.items[len(r.items)-1]
	over, ok := r.add(s)
	if ok {
		i.over, i.to = over, len(r.uses)
	}
	return r.finish()
}

func labelsOf(p *metric.PodFacts) map[string]string {
	if p == nil {
		return nil
	}
	return p.Labels
}

// nothing is the view of a cluster that has nothing to read.
type nothing struct{}

func (nothing) At() time.Time                                                  { return time.Time{} }
func (nothing) Each(metric.Kind, func(*metric.Sample) bool)                    {}
func (nothing) EachOn(metric.NodeName, metric.Kind, func(*metric.Sample) bool) {}
func (nothing) Lookup(metric.Entity) (*metric.Sample, bool)                    { return nil, false }
func (nothing) Pod(metric.PodRef) (*metric.Sample, []*metric.Sample)           { return nil, nil }
func (nothing) Samples(metric.Kind) iter.Seq[*metric.Sample] {
	return func(func(*metric.Sample) bool) {}
}
func (nothing) Verdicts() iter.Seq2[metric.Verdict, time.Time] {
	return func(func(metric.Verdict, time.Time) bool) {}
}
func (n nothing) VerdictsOn(metric.NodeName) iter.Seq2[metric.Verdict, time.Time] {
	return n.Verdicts()
}
