package custommetrics

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// objectKind is a kind of Kubernetes object that has metrics.
type objectKind struct {
	resource   string // in paths
	kind       string // in answers
	entities   metric.Kind
	namespaced bool
}

// objectKinds are all kinds with metrics.
var objectKinds = [...]objectKind{
	{"pods", "Pod", metric.Pod, true},
	{"nodes", "Node", metric.Node, false},
	{"namespaces", "Namespace", metric.Namespaced, false},
}

// catalogue lists the metrics of each kind. A pod also has the metrics of its containers, with a
// metric selector.
func catalogue() (all []provider.CustomMetricInfo) {
	for _, o := range objectKinds {
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

func (o *objectKind) has(d *metric.Descriptor) bool {
	return d.Kinds.Has(o.entities) || o.entities == metric.Pod && d.Kinds.Has(metric.Container)
}

// metricRequest is one request: a metric of a kind of object, and the state that answers it.
type metricRequest struct {
	options    *Options
	view       SampleReader
	facts      *cluster.Facts
	kind       metric.Kind
	object     *objectKind
	descriptor *metric.Descriptor
	// rule is the metric over time of what descriptor describes; nil for that itself.
	rule  *metricsgroup.OverTime
	parts partSelector
	// allNamespaces is set if the request is not for one namespace.
	allNamespaces bool
}

// newRequest validates a request.
func (p *Provider) newRequest(info provider.CustomMetricInfo, namespace string, selector labels.Selector) (*metricRequest, error) {
	q := p.requestFor(info.GroupResource, namespace)
	if q == nil {
		return nil, p.unknownMetric(info)
	}
	if namespace != "" && !q.object.namespaced {
		return nil, metricsgroup.NotFound("%s are in no namespace, so an autoscaler in one cannot refer to them: ask for %s/NAME/%s", q.object.resource, q.object.resource, info.Metric)
	}
	if q.rule = p.overTime(info); q.rule != nil {
		q.descriptor = q.rule.Metric.Describe()
	} else if id, ok := metric.ByName(info.Metric); ok {
		q.descriptor = id.Describe()
	}
	if q.descriptor == nil || q.rule == nil && info.Metric != q.descriptor.Prometheus || !q.object.has(q.descriptor) {
		return nil, p.unknownMetric(info)
	}
	if err := q.selectParts(selector); err != nil {
		return nil, err
	}
	if q.view = p.options.View(); q.view == nil {
		return nil, metricsgroup.Unavailable("weir has just started and has read no node yet")
	}
	return q, nil
}

// name returns the name of the metric.
func (m *metricRequest) name() string {
	if m.rule != nil {
		return m.rule.Name
	}
	return m.descriptor.Prometheus
}

// requestFor returns a request for objects with a resource, or nil for resources that weir does not measure.
func (p *Provider) requestFor(resource schema.GroupResource, namespace string) *metricRequest {
	for i := range objectKinds {
		if o := &objectKinds[i]; resource == (schema.GroupResource{Resource: o.resource}) {
			return &metricRequest{options: &p.options, object: o, kind: o.entities, facts: p.options.Facts(), allNamespaces: namespace == ""}
		}
	}
	return nil
}

// entity returns the entity with this name.
func (m *metricRequest) entity(namespace, name string) metric.Entity {
	switch m.kind {
	case metric.Pod:
		return metric.Entity{Kind: metric.Pod, Namespace: metric.Namespace(namespace), Pod: metric.PodName(name)}
	case metric.Node:
		return metric.Entity{Kind: metric.Node, Node: metric.NodeName(name)}
	default:
		return metric.Entity{Kind: metric.Namespaced, Namespace: metric.Namespace(name)}
	}
}

// selectEntities returns the objects with matching labels, sorted by namespace and name, without
// finished pods.
func (m *metricRequest) selectEntities(namespace string, selector labels.Selector) (chosen []metric.Entity, err error) {
	if m.kind == metric.Namespaced {
		if !selector.Empty() {
			return nil, metricsgroup.BadRequest("weir does not know the labels of namespaces: leave the label selector out")
		}
		m.view.Each(metric.Namespaced, func(s *metric.Sample) bool {
			chosen = append(chosen, s.Entity)
			return true
		})
		return chosen, nil
	}
	if m.facts == nil || !m.facts.Synced {
		return nil, metricsgroup.Unavailable("weir has not learnt the labels of %s from the API server yet", m.object.resource)
	}
	if m.kind == metric.Node {
		for n := range m.facts.EachNode {
			if selector.Matches(labels.Set(n.Labels)) {
				chosen = append(chosen, metric.Entity{Kind: metric.Node, Node: n.Name})
			}
		}
	} else {
		pods := m.facts.PodsIn(metric.Namespace(namespace))
		if namespace == "" {
			pods = slices.Collect(m.facts.EachPod)
		}
		for _, p := range pods {
			if p.Phase != cluster.Succeeded && p.Phase != cluster.Failed && selector.Matches(labels.Set(p.Labels)) {
				chosen = append(chosen, m.entity(string(p.Namespace), string(p.Name)))
			}
		}
	}
	slices.SortFunc(chosen, func(a, b metric.Entity) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Pod, b.Pod))
	})
	return chosen, nil
}

// reference returns the reference to the object e.
func (m *metricRequest) reference(e metric.Entity) custom_metrics.ObjectReference {
	ref := custom_metrics.ObjectReference{Kind: m.object.kind, APIVersion: "v1"}
	switch m.kind {
	case metric.Pod:
		ref.Namespace, ref.Name = string(e.Namespace), string(e.Pod)
	case metric.Node:
		ref.Name = string(e.Node)
	default:
		ref.Name = string(e.Namespace)
	}
	return ref
}
