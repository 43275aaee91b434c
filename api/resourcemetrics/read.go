package resourcemetrics

import (
	"cmp"
	"slices"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/podindex"
	"github.com/weir-metrics/weir/cluster/resourceusage"
	"github.com/weir-metrics/weir/metric"
)

// namespaceField is the name of the namespace in a field selector.
const namespaceField = "metadata.namespace"

// listFilter shows which objects a request selects.
type listFilter struct {
	namespace metric.Namespace // empty for all
	name      string           // of the only object; empty for all
	labels    labels.Selector  // nil for all
	fields    fields.Selector  // nil for all
}

// newListFilter returns the filter of a request. options may be nil.
func newListFilter(namespace string, options *metainternalversion.ListOptions) listFilter {
	c := listFilter{namespace: metric.Namespace(namespace)}
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

// selectsAll reports whether c selects all objects.
func (f *listFilter) selectsAll() bool {
	return f.namespace == "" && f.name == "" && f.labels == nil && f.fields == nil
}

// matches reports whether c selects the object with this name and these labels.
func (f *listFilter) matches(namespace metric.Namespace, name string, set map[string]string) bool {
	return (f.namespace == "" || f.namespace == namespace) &&
		(f.name == "" || f.name == name) &&
		(f.fields == nil || f.fields.Matches(selectableFields(namespace, name))) &&
		(f.labels == nil || f.labels.Matches(labels.Set(set)))
}

// selectableFields returns the fields by which an object can be selected.
func selectableFields(namespace metric.Namespace, name string) fields.Set {
	if namespace == "" {
		return fields.Set{metav1.ObjectNameField: name}
	}
	return fields.Set{metav1.ObjectNameField: name, namespaceField: string(namespace)}
}

// usageReader has the data that one request reads.
type usageReader struct {
	view    UsageReader    // nil for a cluster without nodes
	facts   *cluster.Facts // nil if there is no API server
	options *Options
	orders  *podOrderCache
	index   *podindex.Index
	swapOf  metric.NodeName // the node that hasSwap was asked for last
	swap    bool            // its answer
}

// hasSwap reports whether the API server reports swap space of a node. A LIST reads the pods of a
// node together, so that only the first one looks the node up.
func (u *usageReader) hasSwap(node metric.NodeName) bool {
	if u.swapOf != node {
		n := u.facts.Node(node)
		u.swapOf, u.swap = node, n != nil && n.Swap
	}
	return u.swap
}

// readPods reads the selected pods into r, sorted by name. It returns the running pods that are
// not served, also sorted. Without facts it returns none, because it is unknown which pods run.
func (u *usageReader) readPods(c listFilter, r *usageList) (missing []*cluster.Pod) {
	switch {
	case u.facts == nil:
		u.readWithoutFacts(c, r)
		r.sortByName()
		return nil
	case c.selectsAll():
		missing = u.scanPods(r, c)
	default:
		running, all := u.runningPods(c)
		r.grow(len(running))
		if len(running)*8 > all {
			u.scanPods(r, c)
			if len(r.items) < len(running) {
				missing = notListedPods(running, r)
			}
			break
		}
		// A small selection is looked up pod by pod: one application then costs the same in a
		// large cluster as in a small one.
		for _, p := range running {
			if !u.readPod(r, p.PodRef, p) {
				missing = append(missing, p)
			}
		}
		r.sortByName()
	}
	slices.SortFunc(missing, func(p, q *cluster.Pod) int {
		return cmp.Or(cmp.Compare(p.Namespace, q.Namespace), cmp.Compare(p.Name, q.Name))
	})
	return missing
}

// readWithoutFacts reads the selected pods if there is no API server.
func (u *usageReader) readWithoutFacts(c listFilter, r *usageList) {
	if c.namespace != "" && c.name != "" {
		if ref := (metric.PodRef{Namespace: c.namespace, Name: metric.PodName(c.name)}); c.matches(c.namespace, c.name, nil) {
			u.readPod(r, ref, nil)
		}
		return
	}
	u.view.EachPodUsage(func(usage *resourceusage.PodUsage) bool {
		if c.matches(usage.Namespace, string(usage.Name), nil) {
			r.addPod(usage, r.addMeta(newObjectMeta(usage.Namespace, string(usage.Name), noLabels)), false)
		}
		return true
	})
}

// runningPods returns the selected pods that run, by the API server, and the number of all
// pods.
func (u *usageReader) runningPods(c listFilter) (running []*cluster.Pod, all int) {
	if c.namespace == "" && c.labels == nil && c.fields == nil {
		running = make([]*cluster.Pod, 0, u.facts.Pods())
	}
	take := func(p *cluster.Pod) {
		if p.Phase == cluster.Running && c.matches(p.Namespace, string(p.Name), p.Labels) {
			running = append(running, p)
		}
	}
	switch {
	case c.namespace == "":
		// A running pod is bound to a node. The lists of nodes are read faster than the maps of
		// all pods.
		for _, pods := range u.facts.EachNodesPods {
			for _, p := range pods {
				take(p)
			}
		}
	case c.labels != nil:
		for _, p := range u.index.Find(u.facts, c.namespace, c.labels) {
			take(p)
		}
	case c.name == "":
		for _, p := range u.facts.PodsIn(c.namespace) {
			take(p)
		}
	default:
		if p := u.facts.Pod(metric.PodRef{Namespace: c.namespace, Name: metric.PodName(c.name)}); p != nil {
			take(p)
		}
	}
	return running, u.facts.Pods()
}

// notListedPods returns the pods of running that r does not have.
func notListedPods(running []*cluster.Pod, r *usageList) (missing []*cluster.Pod) {
	listed := make(map[metric.PodRef]struct{}, len(r.items))
	for i := range r.items {
		s := r.metaOf(&r.items[i])
		listed[metric.PodRef{Namespace: s.namespace, Name: metric.PodName(s.name)}] = struct{}{}
	}
	for _, p := range running {
		if _, ok := listed[p.PodRef]; !ok {
			missing = append(missing, p)
		}
	}
	return missing
}

// readPod adds one pod to r and reports whether it is served. p is nil if the API server does
// not know the pod.
func (u *usageReader) readPod(r *usageList, ref metric.PodRef, p *cluster.Pod) bool {
	if u.view == nil || !u.view.PodUsage(ref, &r.pod) || u.facts != nil && !resourceusage.MayServePod(p, &r.pod) {
		return false
	}
	labels := noLabels
	if p != nil {
		labels = r.labelSets.setOf(p.Labels)
	}
	r.addPod(&r.pod, r.addMeta(newObjectMeta(ref.Namespace, string(ref.Name), labels)), u.hasSwap(r.pod.Node))
	return true
}

// scanPods reads all pods and adds the selected ones to r, sorted by name. It returns the
// running pods that are not served, if c selects all.
func (u *usageReader) scanPods(r *usageList, c listFilter) (missing []*cluster.Pod) {
	known := u.orders.last.Load()
	scan := podOrderScan{last: known, facts: u.facts}
	everything := c.selectsAll()
	if everything {
		r.grow(len(known.pods))
	}
	add := func(usage *resourceusage.PodUsage) bool {
		position, ok := scan.findPod(usage, len(r.items))
		if !ok {
			return true
		}
		if s := scan.metaAt(position); everything || c.matches(s.namespace, s.name, s.labels.all) {
			r.addPod(usage, position, u.hasSwap(usage.Node))
		}
		return true
	}
	if u.view != nil {
		u.view.EachPodUsage(add)
	}
	if everything {
		missing = scan.missingPods(r.items)
	}
	next := scan.nextOrder(r.items)
	u.orders.put(next)
	r.metas = next.pods
	r.sortByMeta()
	return missing
}

// readNodes reads the selected nodes into r, sorted by name. It returns the nodes that are not
// served.
func (u *usageReader) readNodes(c listFilter, r *usageList) (missing []*cluster.Node) {
	defer r.sortByName()
	if u.facts == nil {
		u.view.Each(metric.Node, func(s *metric.Sample) bool {
			if s.Entity.Part == "" && c.matches("", string(s.Entity.Node), nil) {
				u.readNode(r, s.Entity.Node, nil)
			}
			return true
		})
		return nil
	}
	for n := range u.facts.EachNode {
		if c.matches("", string(n.Name), n.Labels) && !u.readNode(r, n.Name, n) {
			missing = append(missing, n)
		}
	}
	slices.SortFunc(missing, func(n, m *cluster.Node) int { return cmp.Compare(n.Name, m.Name) })
	return missing
}

// readNode adds a node to r and reports whether it is served. n is nil if the API server does
// not know the node.
func (u *usageReader) readNode(r *usageList, name metric.NodeName, n *cluster.Node) bool {
	if u.view == nil {
		return false
	}
	usage, over, ok := u.view.NodeUsage(name)
	if !ok {
		return false
	}
	labels := noLabels
	if n != nil && len(n.Labels) > 0 {
		labels = newLabelSet(n.Labels, "") // no two nodes have the same labels
	}
	r.addNode(newObjectMeta("", string(name), labels), usage, over, n != nil && n.Swap)
	return true
}
