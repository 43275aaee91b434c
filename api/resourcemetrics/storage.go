package resourcemetrics

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/metrics/pkg/apis/metrics"

	"github.com/weir-metrics/weir/metric"
)

// storage serves one of the resources nodes and pods, in all versions.
type storage struct {
	*resourceAPI
	kind objectKind
	ages prometheus.Observer
}

var (
	_ rest.Getter               = (*storage)(nil)
	_ rest.Lister               = (*storage)(nil)
	_ rest.Scoper               = (*storage)(nil)
	_ rest.KindProvider         = (*storage)(nil)
	_ rest.SingularNameProvider = (*storage)(nil)
)

// New is part of rest.Storage.
func (s *storage) New() runtime.Object {
	if s.kind.isPod {
		return &metrics.PodMetrics{}
	}
	return &metrics.NodeMetrics{}
}

// NewList is part of rest.Lister.
func (s *storage) NewList() runtime.Object {
	if s.kind.isPod {
		return &metrics.PodMetricsList{}
	}
	return &metrics.NodeMetricsList{}
}

// Destroy is part of rest.Storage; there is nothing to release.
func (*storage) Destroy() {}

// NamespaceScoped is part of rest.Scoper.
func (s *storage) NamespaceScoped() bool { return s.kind.isPod }

// Kind is part of rest.KindProvider.
func (s *storage) Kind() string { return s.kind.object }

// GetSingularName is part of rest.SingularNameProvider. There is no singular name, so that
// "node" and "pod" still mean the node and the pod themselves.
func (*storage) GetSingularName() string { return "" }

// List returns the selected objects, and adds warnings for those that are missing.
func (s *storage) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	r, now, err := s.list(ctx, newListFilter(request.NamespaceValue(ctx), options))
	if err != nil {
		return nil, err
	}
	defer r.release()
	if s.kind.isPod {
		return &metrics.PodMetricsList{Items: r.podObjects(now)}, nil
	}
	return &metrics.NodeMetricsList{Items: r.nodeObjects(now)}, nil
}

// list reads the selected objects and adds warnings for those that are missing. It returns the
// time of the answer. The caller releases the list.
func (s *storage) list(ctx context.Context, c listFilter) (r *usageList, now time.Time, err error) {
	a, err := s.newReader()
	if err != nil {
		return nil, now, err
	}
	r = usageLists.Get().(*usageList)
	if s.kind.isPod {
		missing := a.readPods(c, r)
		a.warnPods(ctx, len(r.items), missing)
	} else {
		missing := a.readNodes(c, r)
		a.warnNodes(ctx, len(r.items), missing)
	}
	return r, s.observeAges(r), nil
}

// Get returns one object, or an error that explains why it is not served.
func (s *storage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	r, now, err := s.get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.release()
	if s.kind.isPod {
		return &r.podObjects(now)[0], nil
	}
	return &r.nodeObjects(now)[0], nil
}

// get reads one object, or returns an error that explains why it is not served. The caller releases
// the list.
func (s *storage) get(ctx context.Context, name string) (r *usageList, now time.Time, err error) {
	a, err := s.newReader()
	if err != nil {
		return nil, now, err
	}
	r = usageLists.Get().(*usageList)
	e := metric.Entity{Kind: metric.Node, Node: metric.NodeName(name)}
	exists := a.facts == nil
	var served bool
	if s.kind.isPod {
		e = metric.Entity{Kind: metric.Pod, Namespace: metric.Namespace(request.NamespaceValue(ctx)), Pod: metric.PodName(name)}
		p := a.facts.Pod(e.PodRef())
		exists = exists || p != nil
		served = exists && a.readPod(r, e.PodRef(), p)
	} else {
		n := a.facts.Node(e.Node)
		exists = exists || n != nil
		served = exists && a.readNode(r, e.Node, n)
	}
	if served {
		return r, s.observeAges(r), nil
	}
	r.release()
	if exists {
		if outcome, known := a.reasonFor(e); known {
			return nil, now, notServed(strings.ToLower(s.kind.object), name, outcome)
		}
	}
	return nil, now, notFound(s.kind.resource, name)
}

// observeAges records the ages of the numbers in r, and returns the present time.
func (s *storage) observeAges(r *usageList) (now time.Time) {
	now = s.options.Now()
	for i := range r.items {
		s.ages.Observe(time.Duration(now.UnixNano() - r.items[i].window.End).Seconds())
	}
	return now
}

// ConvertToTable is part of rest.TableConvertor.
func (*storage) ConvertToTable(_ context.Context, object, _ runtime.Object) (*metav1.Table, error) {
	return tableOf(object)
}
