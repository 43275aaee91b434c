package custommetrics

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// object is a kind of Kubernetes object that has metrics.
type object struct {
	resource   string // in paths
	kind       string // in answers
	entities   metric.Kind
	namespaced bool
}

// objects are all there are.
var objects = [...]object{
	{"pods", "Pod", metric.Pod, true},
	{"nodes", "Node", metric.Node, false},
	{"namespaces", "Namespace", metric.Namespaced, false},
}

// catalogue lists what each object has. A pod that has a metric only in its
// containers has it nevertheless: with a metric selector.
func catalogue() (all []provider.CustomMetricInfo) {
	for _, o := range objects {
		for i := range metric.Catalogue {
			if d := &metric.Catalogue[i]; o.has(d) {
				all = append(all, provider.CustomMetricInfo{
					GroupResource: schema.GroupResource{Resource: o.resource}, Namespaced: o.namespaced, Metric: d.Prometheus,
				})
			}
		}
	}
	return all
}

func (o *object) has(d *metric.Descriptor) bool {
	return d.Kinds.Has(o.entities) || o.entities == metric.Pod && d.Kinds.Has(metric.Container)
}

// question is one request: which metric of which kind of object, and from what
// state it is answered.
type question struct {
	options *Options
	view    View
	facts   *cluster.Facts
	kind    metric.Kind
	of      *object
	d       *metric.Descriptor
	parts   chooser
	// everywhere says that the question is about several namespaces.
	everywhere bool
}

// ask turns a request into a question, or says what is wrong with it.
func (p *Provider) ask(info provider.CustomMetricInfo, namespace string, selector labels.Selector) (*question, error) {
	i := slices.IndexFunc(objects[:], func(o object) bool { return info.GroupResource == schema.GroupResource{Resource: o.resource} })
	if i < 0 {
		return nil, notFound("weir has metrics of pods, nodes and namespaces, not of %s", info.GroupResource)
	}
	q := &question{options: &p.options, of: &objects[i], kind: objects[i].entities, everywhere: namespace == ""}
	if namespace != "" && !q.of.namespaced {
		return nil, notFound("%s are in no namespace, so an autoscaler in one cannot refer to them: ask for %s/NAME/%s", q.of.resource, q.of.resource, info.Metric)
	}
	id, ok := metric.ByName(info.Metric)
	if ok {
		q.d = id.Describe()
		ok = info.Metric == q.d.Prometheus && q.of.has(q.d)
	}
	if !ok {
		return nil, notFound("%s have no metric %s: GET /apis/%s/v1beta2 lists those there are", q.of.resource, info.Metric, custom_metrics.GroupName)
	}
	var err error
	if q.parts, err = newChooser(q.d, q.kind, selector); err != nil {
		return nil, err
	}
	q.facts = p.options.Facts()
	if q.view = p.options.View(); q.view == nil {
		return nil, unavailable("weir has just started and has read no node yet")
	}
	return q, nil
}

// entity returns the entity of q's kind that goes by that name.
func (q *question) entity(namespace, name string) metric.Entity {
	switch q.kind {
	case metric.Pod:
		return metric.Entity{Kind: metric.Pod, Namespace: metric.Namespace(namespace), Pod: metric.PodName(name)}
	case metric.Node:
		return metric.Entity{Kind: metric.Node, Node: metric.NodeName(name)}
	default:
		return metric.Entity{Kind: metric.Namespaced, Namespace: metric.Namespace(name)}
	}
}

// choose returns the objects whose labels match, by namespace and name. Pods
// that have finished have nothing to say and are left out.
func (q *question) choose(namespace string, selector labels.Selector) (chosen []metric.Entity, err error) {
	if q.kind == metric.Namespaced {
		if !selector.Empty() {
			return nil, badRequest("weir does not know the labels of namespaces: leave the label selector out")
		}
		q.view.Each(metric.Namespaced, func(s *metric.Sample) bool {
			chosen = append(chosen, s.Entity)
			return true
		})
		return chosen, nil
	}
	if q.facts == nil || !q.facts.Synced {
		return nil, unavailable("weir has not learnt the labels of %s from the API server yet", q.of.resource)
	}
	if q.kind == metric.Node {
		q.facts.EachNode(func(n *cluster.Node) bool {
			if selector.Matches(labels.Set(n.Labels)) {
				chosen = append(chosen, metric.Entity{Kind: metric.Node, Node: n.Name})
			}
			return true
		})
	} else {
		q.eachPod(metric.Namespace(namespace), func(p *cluster.Pod) {
			if p.Phase != cluster.Succeeded && p.Phase != cluster.Failed && selector.Matches(labels.Set(p.Labels)) {
				chosen = append(chosen, q.entity(string(p.Namespace), string(p.Name)))
			}
		})
	}
	slices.SortFunc(chosen, func(a, b metric.Entity) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Pod, b.Pod))
	})
	return chosen, nil
}

// eachPod calls do for the pods of a namespace, or for all if it is empty.
func (q *question) eachPod(namespace metric.Namespace, do func(*cluster.Pod)) {
	if namespace == "" {
		q.facts.EachPod(func(p *cluster.Pod) bool { do(p); return true })
		return
	}
	for _, p := range q.facts.PodsIn(namespace) {
		do(p)
	}
}

// reference returns the object that e is.
func (q *question) reference(e metric.Entity) custom_metrics.ObjectReference {
	ref := custom_metrics.ObjectReference{Kind: q.of.kind, APIVersion: "v1"}
	switch q.kind {
	case metric.Pod:
		ref.Namespace, ref.Name = string(e.Namespace), string(e.Pod)
	case metric.Node:
		ref.Name = string(e.Node)
	default:
		ref.Name = string(e.Namespace)
	}
	return ref
}
