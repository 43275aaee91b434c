package resourcemetrics

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/served"
	"github.com/weir-metrics/weir/metric"
)

// A LIST of all pods has to find what the API server says of each, and to sort them. Both
// are the same as the last time for nearly all, and cost more than the numbers do: names
// lie all over the memory. So a LIST leaves a roll behind for those to come, good for each
// node as long as neither the view nor the facts tell of other pods there.

// roll is the pods that were served, in the order of names. It is immutable.
type roll struct {
	who   []subject
	nodes map[metric.NodeName]*listed
}

// listed is the pods of one node on a roll.
type listed struct {
	among any            // see served.PodUse; nil: not good for another LIST
	on    []*cluster.Pod // what the API server said of the node
	runs  int            // how many of these run
	who   []int32        // by the pods' places: which of the roll; -1 for others
}

// unlisted stands for a place at which no pod is on the roll.
const unlisted = -1

// is reports whether l holds for what is said now. l may be nil.
func (l *listed) is(among any, on []*cluster.Pod) bool {
	return l != nil && among != nil && l.among == among && len(on) == len(l.on) && (len(on) == 0 || &on[0] == &l.on[0])
}

// rolls keeps the last roll while there are LISTs.
type rolls struct {
	drop *time.Timer
	mu   struct {
		sync.Mutex
		last *roll
	}
}

// keepRoll is how long after a LIST its roll is kept: it holds on to what it names.
const keepRoll = time.Minute

func newRolls() *rolls {
	r := &rolls{}
	r.mu.last = &roll{}
	r.drop = time.AfterFunc(keepRoll, func() { r.set(&roll{}) })
	return r
}

func (r *rolls) get() *roll {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.last
}

func (r *rolls) set(last *roll) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.last = last
}

// put keeps a roll for the next LIST.
func (r *rolls) put(next *roll) {
	r.set(next)
	r.drop.Reset(keepRoll)
}

// call finds the pods of a view on a roll, node by node, and notes those that are not.
type call struct {
	roll  *roll
	facts *cluster.Facts
	calls []called
	fresh []newcomer
	// Pods that are served by another node's numbers than the one they are bound to.
	elsewhere map[metric.PodRef]bool
	find      neighbours
	sets      labelSets
}

// called is a node of the view.
type called struct {
	name   metric.NodeName
	was    *listed // nil if that does not hold any more
	from   int     // the readings of it begin here
	served int     // of the pods that are bound to it
	listed
}

// newcomer is a pod that is not on the roll.
type newcomer struct {
	subject
	node  int // which of those called
	place int
}

// pod returns which of the roll's pods u is, or ^i for the i-th newcomer. ok is false if it
// must not be served. read is how many have been read.
func (c *call) pod(u *served.PodUse, read int) (who int32, ok bool) {
	n := len(c.calls) - 1
	if n < 0 || c.calls[n].name != u.Node {
		c.node(u, read)
		n++
	}
	node := &c.calls[n]
	if node.was != nil && u.Place < len(node.was.who) && node.was.who[u.Place] != unlisted {
		if u.Held != 0 && !served.Runs(c.find.find(u), *u.UID, u.Held) {
			return 0, false
		}
		node.served++
		return node.was.who[u.Place], true
	}
	p := c.find.find(u)
	if !served.Runs(p, *u.UID, u.Held) {
		return 0, false
	}
	if p.Node == u.Node {
		node.served++
	} else {
		node.among = nil // what is said of it may change, though nothing does on this node
		if c.elsewhere == nil {
			c.elsewhere = map[metric.PodRef]bool{}
		}
		c.elsewhere[p.PodRef] = true
	}
	c.fresh = append(c.fresh, newcomer{newSubject(p.Namespace, string(p.Name), c.sets.of(p.Labels)), n, u.Place})
	return ^int32(len(c.fresh) - 1), true
}

func (c *call) node(u *served.PodUse, read int) {
	c.calls = append(c.calls, called{name: u.Node, from: read, listed: listed{among: u.Among, on: c.facts.PodsOn(u.Node)}})
	node := &c.calls[len(c.calls)-1]
	was := c.roll.nodes[u.Node]
	if was.is(node.among, node.on) {
		node.was, node.runs = was, was.runs
		return
	}
	for _, p := range node.on {
		if p.Phase == cluster.Running {
			node.runs++
		}
	}
	// Its pods come anew, most with labels that others on the roll share.
	if was != nil {
		for _, who := range was.who {
			if who != unlisted {
				c.sets.add(c.roll.who[who].labels)
			}
		}
	}
}

// subject returns what pod has found.
func (c *call) subject(who int32) *subject {
	if who < 0 {
		return &c.fresh[^who].subject
	}
	return &c.roll.who[who]
}

// unserved returns the pods that run and are not among items, which are all that may be
// served, as they were read. It goes by nodes, for what runs is bound to one, and where as
// many are served as run it does not look who they are.
func (c *call) unserved(items []reading) (missing []*cluster.Pod) {
	has := map[metric.PodRef]bool{}
	lacking := func(on []*cluster.Pod) {
		for _, p := range on {
			if p.Phase == cluster.Running && !has[p.PodRef] && !c.elsewhere[p.PodRef] {
				missing = append(missing, p)
			}
		}
	}
	uncalled := 0
	c.facts.EachNodesPods(func(metric.NodeName, []*cluster.Pod) bool { uncalled++; return true })
	for i := range c.calls {
		node, end := &c.calls[i], len(items)
		if len(node.on) > 0 {
			uncalled--
		}
		if node.served == node.runs {
			continue
		}
		if i+1 < len(c.calls) {
			end = c.calls[i+1].from
		}
		clear(has)
		for _, o := range items[node.from:end] {
			s := c.subject(o.who)
			has[metric.PodRef{Namespace: s.namespace, Name: metric.PodName(s.name)}] = true
		}
		lacking(node.on)
	}
	if uncalled > 0 {
		clear(has)
		called := make(map[metric.NodeName]bool, len(c.calls))
		for i := range c.calls {
			called[c.calls[i].name] = true
		}
		c.facts.EachNodesPods(func(name metric.NodeName, on []*cluster.Pod) bool {
			if !called[name] {
				lacking(on)
			}
			return true
		})
	}
	return missing
}

// next returns the roll with those that were called, and which each of the items is on
// it.
func (c *call) next(items []reading) *roll {
	if len(c.fresh) == 0 {
		return c.roll
	}
	next := &roll{nodes: make(map[metric.NodeName]*listed, len(c.calls))}
	moved := c.stay()
	came := c.merge(next, moved)
	for i := range c.calls {
		node := &c.calls[i]
		l := node.listed
		if node.was != nil {
			l.who = slices.Clone(node.was.who)
			for place, who := range l.who {
				if who != unlisted {
					l.who[place] = moved[who]
				}
			}
		}
		next.nodes[node.name] = &l
	}
	for i := range c.fresh {
		f := &c.fresh[i]
		l := next.nodes[c.calls[f.node].name]
		for len(l.who) <= f.place {
			l.who = append(l.who, unlisted)
		}
		l.who[f.place] = came[i]
	}
	for i := range items {
		if who := items[i].who; who < 0 {
			items[i].who = came[^who]
		} else {
			items[i].who = moved[who]
		}
	}
	return next
}

// stay returns for each pod of the roll whether it stays: 0, or unlisted.
func (c *call) stay() []int32 {
	stays := make([]int32, len(c.roll.who))
	for i := range stays {
		stays[i] = unlisted
	}
	for i := range c.calls {
		if was := c.calls[i].was; was != nil {
			for _, who := range was.who {
				if who != unlisted {
					stays[who] = 0
				}
			}
		}
	}
	return stays
}

// merge gives next the pods that stay and the newcomers, in order. It makes stays where
// the former now are, and returns where the newcomers are.
func (c *call) merge(next *roll, stays []int32) (came []int32) {
	who := make([]subject, len(c.fresh))
	for i := range c.fresh {
		who[i] = c.fresh[i].subject
	}
	came = make([]int32, len(who))
	next.who = make([]subject, 0, len(c.roll.who)+len(who))
	old := 0
	keep := func(end int) {
		for ; old < end; old++ {
			if stays[old] != unlisted {
				stays[old] = int32(len(next.who))
				next.who = append(next.who, c.roll.who[old])
			}
		}
	}
	order := sorted(who, nil)
	together(who, order)
	for _, i := range order {
		before, _ := slices.BinarySearchFunc(c.roll.who[old:], &who[i], func(s subject, o *subject) int { return s.compare(o) })
		keep(old + before)
		came[i] = int32(len(next.who))
		next.who = append(next.who, who[i])
	}
	keep(len(c.roll.who))
	return came
}

// together gives the names of subjects one piece of memory, in order: a LIST reads them
// one after the other.
func together(who []subject, order []int32) {
	size := 0
	for i := range who {
		size += len(who[i].name)
	}
	var text strings.Builder
	text.Grow(size)
	for _, i := range order {
		text.WriteString(who[i].name)
	}
	names, namespace := text.String(), metric.Namespace("")
	for _, i := range order {
		s := &who[i]
		s.name, names = names[:len(s.name)], names[len(s.name):]
		if s.namespace != namespace {
			namespace = s.namespace
		}
		s.namespace = namespace
	}
}
