package resourcemetrics

import (
	"cmp"
	"iter"
	"slices"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/served"
	"github.com/weir-metrics/weir/metric"
)

// namespaceField is how a field selector calls the namespace.
const namespaceField = "metadata.namespace"

// choice is which objects a LIST asks for.
type choice struct {
	namespace metric.Namespace // empty for all
	name      string           // the only one; empty for all
	labels    labels.Selector  // nil for all
	fields    fields.Selector  // nil for all
}

// choose returns what a request asks for. options may be nil.
func choose(namespace string, options *metainternalversion.ListOptions) choice {
	c := choice{namespace: metric.Namespace(namespace)}
	if options == nil {
		return c
	}
	if s := options.LabelSelector; s != nil && !s.Empty() {
		c.labels = s
	}
	if s := options.FieldSelector; s != nil && !s.Empty() {
		c.fields = s
		c.name, _ = s.RequiresExactMatch(metav1.ObjectNameField)
		if in, ok := s.RequiresExactMatch(namespaceField); ok && c.namespace == "" {
			c.namespace = metric.Namespace(in)
		}
	}
	return c
}

// everything reports whether all objects are chosen.
func (c *choice) everything() bool {
	return c.namespace == "" && c.name == "" && c.labels == nil && c.fields == nil
}

// has reports whether the object of that name and those labels is chosen.
func (c *choice) has(namespace metric.Namespace, name string, has map[string]string) bool {
	return (c.namespace == "" || c.namespace == namespace) &&
		(c.name == "" || c.name == name) &&
		(c.fields == nil || c.fields.Matches(named{namespace, name})) &&
		(c.labels == nil || c.labels.Matches(labels.Set(has)))
}

// named are the fields by which objects are selected.
type named struct {
	namespace metric.Namespace
	name      string
}

// Get is part of fields.Fields.
func (n named) Get(field string) string {
	switch field {
	case metav1.ObjectNameField:
		return n.name
	case namespaceField:
		return string(n.namespace)
	}
	return ""
}

// Has is part of fields.Fields.
func (n named) Has(field string) bool {
	return field == metav1.ObjectNameField || field == namespaceField && n.namespace != ""
}

// answer is all that one request needs.
type answer struct {
	view    View
	facts   *cluster.Facts // nil where there is no API server
	options *Options
	rolls   *rolls
}

// served reports whether the numbers of a pod may be served that was measured whole.
// p is nil if the API server does not know the pod.
func (a *answer) served(p *cluster.Pod, u *served.PodUse) bool {
	return a.facts == nil || served.Runs(p, *u.UID, u.Held)
}

// pods reads what is served of the chosen pods, in the order of names, and returns the
// running ones of which nothing is, in that order. Without facts nobody knows what runs
// beside what is served.
func (a *answer) pods(c choice, r *readings) (missing []*cluster.Pod) {
	switch {
	case a.facts == nil:
		a.unknown(c, r)
		r.sort()
		return nil
	case c.everything():
		missing = a.scan(r, c)
	default:
		running, all := a.running(c)
		r.grow(len(running))
		if len(running)*8 > all {
			a.scan(r, c)
			if len(r.items) < len(running) {
				missing = unserved(running, r)
			}
			break
		}
		// A few of many are looked up: one application costs the same in a
		// large cluster as in a small one.
		for _, p := range running {
			if !a.lookup(r, p.PodRef, p) {
				missing = append(missing, p)
			}
		}
		r.sort()
	}
	slices.SortFunc(missing, func(p, q *cluster.Pod) int {
		return cmp.Or(cmp.Compare(p.Namespace, q.Namespace), cmp.Compare(p.Name, q.Name))
	})
	return missing
}

// unknown reads the chosen pods where there is no API server to ask about them.
func (a *answer) unknown(c choice, r *readings) {
	if c.namespace != "" && c.name != "" {
		if ref := (metric.PodRef{Namespace: c.namespace, Name: metric.PodName(c.name)}); c.has(c.namespace, c.name, nil) {
			a.lookup(r, ref, nil)
		}
		return
	}
	a.view.EachUse(func(u *served.PodUse) bool {
		if c.has(u.Namespace, string(u.Name), nil) {
			r.addPod(u, r.add(newSubject(u.Namespace, string(u.Name), noLabels)))
		}
		return true
	})
}

// running returns the chosen pods that run, by what the API server says, and
// how many pods it has in all.
func (a *answer) running(c choice) (running []*cluster.Pod, all int) {
	if c.namespace == "" && c.labels == nil && c.fields == nil {
		running = make([]*cluster.Pod, 0, a.facts.Pods())
	}
	take := func(p *cluster.Pod) bool {
		if p.Phase == cluster.Running && c.has(p.Namespace, string(p.Name), p.Labels) {
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
func unserved(running []*cluster.Pod, r *readings) (missing []*cluster.Pod) {
	has := make(map[metric.PodRef]struct{}, len(r.items))
	for i := range r.items {
		s := r.subject(&r.items[i])
		has[metric.PodRef{Namespace: s.namespace, Name: metric.PodName(s.name)}] = struct{}{}
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
func (a *answer) lookup(r *readings, ref metric.PodRef, p *cluster.Pod) bool {
	if !a.view.Use(ref, &r.said) || !a.served(p, &r.said) {
		return false
	}
	r.addPod(&r.said, r.add(newSubject(ref.Namespace, string(ref.Name), r.sets.of(labelsOf(p)))))
	return true
}

// scan adds the chosen pods by going through all there are, in the order of names, and
// returns those that run and are not served, if all are chosen.
func (a *answer) scan(r *readings, c choice) (missing []*cluster.Pod) {
	known := a.rolls.get()
	roll := call{roll: known, facts: a.facts, find: neighbours{facts: a.facts}, sets: labelSets{}}
	everything := c.everything()
	if everything {
		r.grow(len(known.who))
	}
	a.view.EachUse(func(u *served.PodUse) bool {
		who, ok := roll.pod(u, len(r.items))
		if !ok {
			return true
		}
		if s := roll.subject(who); everything || c.has(s.namespace, s.name, s.labels.all) {
			r.addPod(u, who)
		}
		return true
	})
	if everything {
		missing = roll.unserved(r.items)
	}
	next := roll.next(r.items)
	a.rolls.put(next)
	r.who = next.who
	r.seat()
	return missing
}

// neighbours finds the facts of pods that come node by node. Those of one node are few
// and lie together, while a look-up among all pods is at the mercy of the cache.
type neighbours struct {
	facts *cluster.Facts
	node  metric.NodeName
	pods  []*cluster.Pod // bound to the node
	next  int            // the one after that found last
}

// manyNeighbours is how many pods are too many to go through for each.
const manyNeighbours = 128

// find returns what facts say of the pod of u; nil if nothing.
func (n *neighbours) find(u *served.PodUse) *cluster.Pod {
	if u.Node != n.node {
		n.node, n.pods, n.next = u.Node, n.facts.PodsOn(u.Node), 0
	}
	if len(n.pods) <= manyNeighbours {
		for range n.pods {
			if n.next >= len(n.pods) {
				n.next = 0
			}
			p := n.pods[n.next]
			n.next++
			if p.Name == u.Name && p.Namespace == u.Namespace {
				return p
			}
		}
	}
	return n.facts.Pod(*u.PodRef) // bound elsewhere, say
}

// nodes reads what is served of the chosen nodes, in the order of names, and returns
// those of which nothing is.
func (a *answer) nodes(c choice, r *readings) (missing []*cluster.Node) {
	defer r.sort()
	if a.facts == nil {
		a.view.Each(metric.Node, func(s *metric.Sample) bool {
			if s.Entity.Part == "" && c.has("", string(s.Entity.Node), nil) {
				a.node(r, s.Entity.Node, nil)
			}
			return true
		})
		return nil
	}
	a.facts.EachNode(func(n *cluster.Node) bool {
		if c.has("", string(n.Name), n.Labels) && !a.node(r, n.Name, n.Labels) {
			missing = append(missing, n)
		}
		return true
	})
	slices.SortFunc(missing, func(n, m *cluster.Node) int { return cmp.Compare(n.Name, m.Name) })
	return missing
}

// node adds a node and reports whether it is served.
func (a *answer) node(r *readings, name metric.NodeName, labels map[string]string) bool {
	u, over, ok := a.view.NodeUse(name)
	if ok {
		r.addNode(newSubject("", string(name), r.sets.of(labels)), u, over)
	}
	return ok
}

func labelsOf(p *cluster.Pod) map[string]string {
	if p == nil {
		return nil
	}
	return p.Labels
}

// nothing is the view of a cluster that has nothing to read.
type nothing struct{}

func (nothing) At() time.Time                                                     { return time.Time{} }
func (nothing) EachUse(func(*served.PodUse) bool)                                 {}
func (nothing) Use(metric.PodRef, *served.PodUse) bool                            { return false }
func (nothing) NodeUse(metric.NodeName) (u served.Use, over served.Span, ok bool) { return }
func (nothing) Each(metric.Kind, func(*metric.Sample) bool)                       {}
func (nothing) EachOn(metric.NodeName, metric.Kind, func(*metric.Sample) bool)    {}
func (nothing) Lookup(metric.Entity) (*metric.Sample, bool)                       { return nil, false }
func (nothing) Pod(metric.PodRef) (*metric.Sample, []*metric.Sample)              { return nil, nil }
func (nothing) Samples(metric.Kind) iter.Seq[*metric.Sample] {
	return func(func(*metric.Sample) bool) {}
}
func (nothing) Verdicts() iter.Seq2[metric.Verdict, time.Time] {
	return func(func(metric.Verdict, time.Time) bool) {}
}
func (n nothing) VerdictsOn(metric.NodeName) iter.Seq2[metric.Verdict, time.Time] {
	return n.Verdicts()
}
