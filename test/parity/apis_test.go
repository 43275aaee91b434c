package parity

import (
	"context"
	"errors"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coreinformers "k8s.io/client-go/informers/core/v1"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	custom "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	external "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	metricsapi "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	customclient "k8s.io/metrics/pkg/client/custom_metrics"
	externalclient "k8s.io/metrics/pkg/client/external_metrics"
)

var errAPI = errors.New("the API does not answer")

// apis answers upstream's clients from a test input, and the controller from a
// step.
type apis struct {
	testInput *testInput
	step      *step
	// The writes so far.
	updates []int32
	status  *autoscalingv2.HorizontalPodAutoscalerStatus
}

// The metrics APIs. The embedded interfaces are nil, because upstream calls no
// other methods.

type resourceAPI struct {
	resourceclient.PodMetricsInterface
	*apis
}

func (a resourceAPI) PodMetricses(string) resourceclient.PodMetricsInterface { return a }

func (a resourceAPI) List(context.Context, metav1.ListOptions) (*metricsapi.PodMetricsList, error) {
	if a.testInput.Resource == nil {
		return nil, errAPI
	}
	return &metricsapi.PodMetricsList{Items: *a.testInput.Resource}, nil
}

type customAPI struct{ *apis }

func (a customAPI) RootScopedMetrics() customclient.MetricsInterface       { return a }
func (a customAPI) NamespacedMetrics(string) customclient.MetricsInterface { return a }

func (a customAPI) GetForObject(_ schema.GroupKind, _, metric string, _ labels.Selector) (*custom.MetricValue, error) {
	if v, ok := a.testInput.Object[metric]; ok {
		return &v, nil
	}
	return nil, errAPI
}

func (a customAPI) GetForObjects(_ schema.GroupKind, _ labels.Selector, metric string, _ labels.Selector) (*custom.MetricValueList, error) {
	if v, ok := a.testInput.Custom[metric]; ok {
		return &custom.MetricValueList{Items: v}, nil
	}
	return nil, errAPI
}

type externalAPI struct{ *apis }

func (a externalAPI) NamespacedMetrics(string) externalclient.MetricsInterface { return a }

func (a externalAPI) List(metric string, _ labels.Selector) (*external.ExternalMetricValueList, error) {
	if v, ok := a.testInput.External[metric]; ok {
		return &external.ExternalMetricValueList{Items: v}, nil
	}
	return nil, errAPI
}

// podInformer lists pods from the informer's own cache, unless the input makes
// it fail.
type podInformer struct {
	coreinformers.PodInformer
	*apis
}

func (p podInformer) Lister() corelisters.PodLister {
	return podLister{p.PodInformer.Lister(), p.apis}
}

type podLister struct {
	corelisters.PodLister
	*apis
}

func listerOver(indexer cache.Indexer, a *apis) corelisters.PodLister {
	return podLister{corelisters.NewPodLister(indexer), a}
}

func (p podLister) Pods(namespace string) corelisters.PodNamespaceLister {
	return podNamespaceLister{p.PodLister.Pods(namespace), p.apis}
}

type podNamespaceLister struct {
	corelisters.PodNamespaceLister
	*apis
}

func (p podNamespaceLister) List(selector labels.Selector) ([]*corev1.Pod, error) {
	if p.testInput.PodsFail {
		return nil, errAPI
	}
	return p.PodNamespaceLister.List(selector)
}

// mapper finds the API resource of a kind.
type mapper struct {
	meta.RESTMapper
	*apis
}

func (m mapper) RESTMappings(schema.GroupKind, ...string) ([]*meta.RESTMapping, error) {
	resource := func(name string) *meta.RESTMapping {
		return &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: name}}
	}
	switch m.step.Faults.Scale {
	case "kind":
		return nil, errors.New("no matches for kind")
	case "mappings":
		return nil, nil
	case "first":
		return []*meta.RESTMapping{resource("failing"), resource("deployments")}, nil
	}
	return []*meta.RESTMapping{resource("deployments")}, nil
}

type scaleAPI struct {
	scale.ScaleInterface
	*apis
}

func (a scaleAPI) Scales(string) scale.ScaleInterface { return a }

func (a scaleAPI) Get(_ context.Context, resource schema.GroupResource, name string, _ metav1.GetOptions) (*autoscalingv1.Scale, error) {
	if a.step.Faults.Scale == "get" || resource.Resource == "failing" ||
		a.step.Faults.ScaleRefresh && len(a.updates) > 0 {
		return nil, errAPI
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       autoscalingv1.ScaleSpec{Replicas: a.step.Target.SpecReplicas},
		Status:     autoscalingv1.ScaleStatus{Replicas: a.step.Target.StatusReplicas, Selector: a.step.Target.Selector},
	}, nil
}

func (a scaleAPI) Update(_ context.Context, resource schema.GroupResource, s *autoscalingv1.Scale, _ metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	try := len(a.updates)
	a.apis.updates = append(a.updates, s.Spec.Replicas)
	if err := a.step.Faults.scaleUpdate(try); err != nil {
		return nil, err
	}
	return s, nil
}

// scaleUpdate returns the error of the nth update of the scale, counted from 0.
func (f *faults) scaleUpdate(n int) error {
	switch {
	case n >= len(f.ScaleUpdates):
		return nil
	case f.ScaleUpdates[n] == conflict:
		return apierrors.NewConflict(schema.GroupResource{Group: "apps", Resource: "deployments"}, name, errors.New("it was changed"))
	}
	return errAPI
}

type statusAPI struct {
	autoscalingclient.HorizontalPodAutoscalerInterface
	*apis
}

func (a statusAPI) HorizontalPodAutoscalers(string) autoscalingclient.HorizontalPodAutoscalerInterface {
	return a
}

func (a statusAPI) UpdateStatus(_ context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, _ metav1.UpdateOptions) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	a.apis.status = stored(&hpa.Status)
	if a.step.Faults.Status {
		return nil, errAPI
	}
	return hpa, nil
}

// stored returns a status as the API server returns it: with times in whole
// seconds.
func stored(status *autoscalingv2.HorizontalPodAutoscalerStatus) *autoscalingv2.HorizontalPodAutoscalerStatus {
	s := status.DeepCopy()
	if s.LastScaleTime != nil {
		whole := s.LastScaleTime.Rfc3339Copy()
		s.LastScaleTime = &whole
	}
	for i := range s.Conditions {
		c := &s.Conditions[i]
		c.LastTransitionTime = c.LastTransitionTime.Rfc3339Copy()
	}
	return s
}
