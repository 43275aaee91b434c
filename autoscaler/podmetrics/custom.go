package podmetrics

import (
	"context"
	"errors"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/autoscaler"
)

// defaultWindow is the window of a metric that has none, as in Kubernetes' controller.
const defaultWindow = time.Minute

// Errors for metrics of types that cannot be read.
var (
	errNoCustom   = errors.New("weir serves no custom metrics here: see --apis")
	errNoExternal = errors.New("weir has no external metrics: set rules with --external-rules")
)

// notRemembered returns the error for metrics without a history.
func (r *targetReader) notRemembered(kind string) error {
	return fmt.Errorf("weir keeps a history of CPU and memory only, so %s metrics at %s are unknown", kind, r.at.UTC().Format(time.RFC3339))
}

// withTimeout returns the context of one request.
func (r *targetReader) withTimeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.ctx, r.options.Timeout)
}

// podsMetric returns a metric of each of the target's pods.
func (r *targetReader) podsMetric(m *autoscalingv2.PodsMetricSource) autoscaler.Reading {
	series, err := metricSelector(m.Metric.Selector)
	switch {
	case err != nil:
		return failed(err)
	case !r.at.IsZero():
		return failed(r.notRemembered("Pods"))
	case r.options.Custom == nil:
		return fetchError(customAPI, errNoCustom)
	}
	ctx, cancel := r.withTimeout()
	defer cancel()
	info := provider.CustomMetricInfo{GroupResource: schema.GroupResource{Resource: "pods"}, Namespaced: true, Metric: m.Metric.Name}
	list, err := r.options.Custom.GetMetricBySelector(ctx, r.namespace, r.selector, info, series)
	switch {
	case err != nil:
		return fetchError(customAPI, err)
	case len(list.Items) == 0:
		return emptyAnswer(customAPI)
	}
	reading := autoscaler.Reading{At: seconds(list.Items[0].Timestamp.Time), Samples: make([]autoscaler.PodSample, len(list.Items))}
	for i := range list.Items {
		v := &list.Items[i]
		reading.Samples[i] = autoscaler.PodSample{Pod: v.DescribedObject.Name, Milli: v.Value.MilliValue(), At: seconds(v.Timestamp.Time), Window: window(v)}
	}
	return reading
}

func window(v *custom_metrics.MetricValue) time.Duration {
	if v.WindowSeconds == nil {
		return defaultWindow
	}
	return time.Duration(*v.WindowSeconds) * time.Second
}

// objectMetric returns the metric of one object. As in Kubernetes' controller, an object of kind
// Namespace is always the target's own namespace. Its name is ignored, so nobody can read the
// metric of another namespace.
func (r *targetReader) objectMetric(m *autoscalingv2.ObjectMetricSource) autoscaler.Reading {
	series, err := metricSelector(m.Metric.Selector)
	switch {
	case err != nil:
		return failed(err)
	case !r.at.IsZero():
		return failed(r.notRemembered("Object"))
	case r.options.Custom == nil:
		return fetchError(customAPI, errNoCustom)
	}
	resource, name := r.described(&m.DescribedObject)
	info := provider.CustomMetricInfo{GroupResource: resource, Namespaced: name.Namespace != "", Metric: m.Metric.Name}
	ctx, cancel := r.withTimeout()
	defer cancel()
	v, err := r.options.Custom.GetMetricByName(ctx, name, info, series)
	if err != nil {
		return fetchError(customAPI, err)
	}
	return autoscaler.Reading{Values: []int64{v.Value.MilliValue()}, At: seconds(v.Timestamp.Time)}
}

// described returns the resource and the name of the object of a metric.
func (r *targetReader) described(o *autoscalingv2.CrossVersionObjectReference) (schema.GroupResource, types.NamespacedName) {
	resource := resourceOf(o)
	if resource == (schema.GroupResource{Resource: "namespaces"}) {
		return resource, types.NamespacedName{Name: r.namespace}
	}
	return resource, types.NamespacedName{Namespace: r.namespace, Name: o.Name}
}

// resourceOf returns the resource of an object. Only the API server knows the resource of a kind. The guess
// is right for Kubernetes' own kinds, and for most others.
func resourceOf(o *autoscalingv2.CrossVersionObjectReference) schema.GroupResource {
	plural, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
	return plural.GroupResource()
}

// IsInMemory reports whether a metric is read without a request to another server.
func (r *Reader) IsInMemory(m *autoscalingv2.MetricSpec) bool {
	rules, ok := r.options.Custom.(RuleExplainer)
	switch {
	case m.Type == autoscalingv2.ExternalMetricSourceType:
		return false
	case ok && m.Pods != nil:
		return !rules.HasRule(schema.GroupResource{Resource: "pods"}, m.Pods.Metric.Name)
	case ok && m.Object != nil:
		return !rules.HasRule(resourceOf(&m.Object.DescribedObject), m.Object.Metric.Name)
	}
	return true
}

// answeredBy names who answers a metric; empty where only weir does, and for resource metrics.
func (r *targetReader) answeredBy(m *autoscalingv2.MetricSpec) string {
	routed, ok := r.options.Custom.(Router)
	if !ok || !r.at.IsZero() {
		return ""
	}
	namespace, answeredBy := r.namespace, routed.CustomAnsweredBy
	var identifier *autoscalingv2.MetricIdentifier
	switch {
	case m.Pods != nil:
		identifier = &m.Pods.Metric
	case m.Object != nil:
		_, name := r.described(&m.Object.DescribedObject)
		identifier, namespace = &m.Object.Metric, name.Namespace
	case m.External != nil:
		identifier, answeredBy = &m.External.Metric, routed.ExternalAnsweredBy
	default:
		return ""
	}
	series, err := metricSelector(identifier.Selector)
	if err != nil {
		return ""
	}
	return answeredBy(namespace, identifier.Name, series)
}

// externalMetric returns the values of an external metric.
func (r *targetReader) externalMetric(m *autoscalingv2.ExternalMetricSource) autoscaler.Reading {
	series, err := metricSelector(m.Metric.Selector)
	switch {
	case err != nil:
		return failed(err)
	case !r.at.IsZero():
		return failed(r.notRemembered("External"))
	case r.options.External == nil:
		return fetchError(externalAPI, errNoExternal)
	}
	ctx, cancel := r.withTimeout()
	defer cancel()
	list, err := r.options.External.GetExternalMetric(ctx, r.namespace, series, provider.ExternalMetricInfo{Metric: m.Metric.Name})
	switch {
	case err != nil:
		return fetchError(externalAPI, err)
	case len(list.Items) == 0:
		return emptyAnswer(externalAPI)
	}
	reading := autoscaler.Reading{At: seconds(list.Items[0].Timestamp.Time), Values: make([]int64, len(list.Items))}
	for i := range list.Items {
		reading.Values[i] = list.Items[i].Value.MilliValue()
	}
	return reading
}

// seconds truncates a time to whole seconds, as the encoding of the APIs does.
func seconds(t time.Time) time.Time { return time.Unix(t.Unix(), 0) }
