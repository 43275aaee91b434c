package resourcemetrics

import (
	"context"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/metric"
)

// nodeStorage is the resource nodes.
type nodeStorage struct{ api *api }

var (
	_ rest.Getter               = (*nodeStorage)(nil)
	_ rest.Lister               = (*nodeStorage)(nil)
	_ rest.Scoper               = (*nodeStorage)(nil)
	_ rest.KindProvider         = (*nodeStorage)(nil)
	_ rest.SingularNameProvider = (*nodeStorage)(nil)
)

// New is part of rest.Storage.
func (*nodeStorage) New() runtime.Object { return &v1beta1.NodeMetrics{} }

// NewList is part of rest.Lister.
func (*nodeStorage) NewList() runtime.Object { return &v1beta1.NodeMetricsList{} }

// Destroy is part of rest.Storage; there is nothing to release.
func (*nodeStorage) Destroy() {}

// NamespaceScoped is part of rest.Scoper.
func (*nodeStorage) NamespaceScoped() bool { return false }

// Kind is part of rest.KindProvider.
func (*nodeStorage) Kind() string { return "NodeMetrics" }

// GetSingularName is part of rest.SingularNameProvider. There is none, so that
// "node" goes on meaning the node itself.
func (*nodeStorage) GetSingularName() string { return "" }

// List returns what is served of the chosen nodes, and warns of those that are
// missing.
func (s *nodeStorage) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	a, err := s.api.answer()
	if err != nil {
		return nil, err
	}
	r, missing := a.nodes(choose("", options))
	a.warnNodes(ctx, len(r.items), missing)
	now := s.api.options.Now()
	for i := range r.items {
		observe(s.api.ages.nodes, now, r.items[i].over.End)
	}
	return &v1beta1.NodeMetricsList{Items: r.nodeObjects(now)}, nil
}

// Get returns what is served of one node, or says why nothing is.
func (s *nodeStorage) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	a, err := s.api.answer()
	if err != nil {
		return nil, err
	}
	node := metric.NodeName(name)
	n := a.facts.Node(node)
	if n == nil && a.facts != nil {
		return nil, notFound("nodes", name)
	}
	var r readings
	sample, ok := a.view.Lookup(metric.Entity{Kind: metric.Node, Node: node})
	if n == nil {
		ok = ok && r.addNode(sample, nil)
	} else {
		ok = ok && r.addNode(sample, n.Labels)
	}
	if !ok {
		why, known := a.why(metric.Entity{Kind: metric.Node, Node: node})
		if !known {
			return nil, notFound("nodes", name)
		}
		return nil, withoutMetrics("nodemetrics", name, why)
	}
	now := s.api.options.Now()
	observe(s.api.ages.nodes, now, r.items[0].over.End)
	return &r.nodeObjects(now)[0], nil
}

// ConvertToTable is part of rest.TableConvertor.
func (*nodeStorage) ConvertToTable(_ context.Context, object, _ runtime.Object) (*metav1.Table, error) {
	return nodeTable(object)
}
