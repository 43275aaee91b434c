package resourcemetrics

import (
	"context"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/metric"
)

// nodeStorage is the resource nodes.
type nodeStorage struct{ api *resourceAPI }

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
	r, now, err := s.list(ctx, newListFilter("", options))
	if err != nil {
		return nil, err
	}
	defer r.release()
	return &v1beta1.NodeMetricsList{Items: r.nodeObjects(now)}, nil
}

// list reads the chosen nodes, warns of those that are missing, and returns when that
// was. What it returns is to be released.
func (s *nodeStorage) list(ctx context.Context, c listFilter) (r *usageList, now time.Time, err error) {
	a, err := s.api.newReader()
	if err != nil {
		return nil, now, err
	}
	r = usageLists.Get().(*usageList)
	missing := a.readNodes(c, r)
	a.warnNodes(ctx, len(r.items), missing)
	return r, s.api.observeAges(s.api.ages.nodes, r), nil
}

// Get returns what is served of one node, or says why nothing is.
func (s *nodeStorage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	r, now, err := s.get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.release()
	return &r.nodeObjects(now)[0], nil
}

// get reads one node, or says why nothing is served of it. What it returns is to be
// released.
func (s *nodeStorage) get(_ context.Context, name string) (r *usageList, now time.Time, err error) {
	a, err := s.api.newReader()
	if err != nil {
		return nil, now, err
	}
	node := metric.NodeName(name)
	n := a.facts.Node(node)
	if n == nil && a.facts != nil {
		return nil, now, notFound("nodes", name)
	}
	var labels map[string]string
	if n != nil {
		labels = n.Labels
	}
	r = usageLists.Get().(*usageList)
	if a.readNode(r, node, labels) {
		return r, s.api.observeAges(s.api.ages.nodes, r), nil
	}
	r.release()
	why, known := a.reasonFor(metric.Entity{Kind: metric.Node, Node: node})
	if !known {
		return nil, now, notFound("nodes", name)
	}
	return nil, now, notServed("nodemetrics", name, why)
}

// ConvertToTable is part of rest.TableConvertor.
func (*nodeStorage) ConvertToTable(_ context.Context, object, _ runtime.Object) (*metav1.Table, error) {
	return nodeTable(object)
}

// podStorage is the resource pods.
type podStorage struct{ api *resourceAPI }

var (
	_ rest.Getter               = (*podStorage)(nil)
	_ rest.Lister               = (*podStorage)(nil)
	_ rest.Scoper               = (*podStorage)(nil)
	_ rest.KindProvider         = (*podStorage)(nil)
	_ rest.SingularNameProvider = (*podStorage)(nil)
)

// New is part of rest.Storage.
func (*podStorage) New() runtime.Object { return &v1beta1.PodMetrics{} }

// NewList is part of rest.Lister.
func (*podStorage) NewList() runtime.Object { return &v1beta1.PodMetricsList{} }

// Destroy is part of rest.Storage; there is nothing to release.
func (*podStorage) Destroy() {}

// NamespaceScoped is part of rest.Scoper.
func (*podStorage) NamespaceScoped() bool { return true }

// Kind is part of rest.KindProvider.
func (*podStorage) Kind() string { return "PodMetrics" }

// GetSingularName is part of rest.SingularNameProvider. There is none, so that
// "pod" goes on meaning the pod itself.
func (*podStorage) GetSingularName() string { return "" }

// List returns what is served of the chosen pods, and warns of those that run
// and are missing.
func (s *podStorage) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	r, now, err := s.list(ctx, newListFilter(request.NamespaceValue(ctx), options))
	if err != nil {
		return nil, err
	}
	defer r.release()
	return &v1beta1.PodMetricsList{Items: r.podObjects(now)}, nil
}

// list reads the chosen pods, warns of those that run and are missing, and returns when
// that was. What it returns is to be released.
func (s *podStorage) list(ctx context.Context, c listFilter) (r *usageList, now time.Time, err error) {
	a, err := s.api.newReader()
	if err != nil {
		return nil, now, err
	}
	r = usageLists.Get().(*usageList)
	missing := a.readPods(c, r)
	a.warnPods(ctx, len(r.items), missing)
	return r, s.api.observeAges(s.api.ages.pods, r), nil
}

// Get returns what is served of one pod, or says why nothing is.
func (s *podStorage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	r, now, err := s.get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.release()
	return &r.podObjects(now)[0], nil
}

// get reads one pod, or says why nothing is served of it. What it returns is to be
// released.
func (s *podStorage) get(ctx context.Context, name string) (r *usageList, now time.Time, err error) {
	a, err := s.api.newReader()
	if err != nil {
		return nil, now, err
	}
	ref := metric.PodRef{Namespace: metric.Namespace(request.NamespaceValue(ctx)), Name: metric.PodName(name)}
	p := a.facts.Pod(ref)
	if p == nil && a.facts != nil {
		return nil, now, notFound("pods", name)
	}
	r = usageLists.Get().(*usageList)
	if a.readPod(r, ref, p) {
		return r, s.api.observeAges(s.api.ages.pods, r), nil
	}
	r.release()
	why, known := a.reasonFor(metric.Entity{Kind: metric.Pod, Namespace: ref.Namespace, Pod: ref.Name})
	if !known {
		return nil, now, notFound("pods", name)
	}
	return nil, now, notServed("podmetrics", name, why)
}

// ConvertToTable is part of rest.TableConvertor.
func (*podStorage) ConvertToTable(_ context.Context, object, _ runtime.Object) (*metav1.Table, error) {
	return podTable(object)
}
