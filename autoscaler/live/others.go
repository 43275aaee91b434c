package live

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

// defaultWindow is over what a metric without a window was measured, as Kubernetes'
// controller takes it.
const defaultWindow = time.Minute

// Why metrics of other kinds cannot be had at all.
var (
	errNoCustom   = errors.New("weir serves no custom metrics here: see --apis")
	errNoExternal = errors.New("weir has no external metrics: give it rules with --external-rules")
)

// notThen is the error for what is not remembered.
func (r *reader) notThen(kind string) error {
	return fmt.Errorf("weir remembers CPU and memory, not %s metrics: what they were at %s it cannot tell", kind, r.at.UTC().Format(time.RFC3339))
}

// patience returns the context of one question.
func (r *reader) patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.ctx, r.options.Timeout)
}

// ofPods returns a metric of each of the target's pods.
func (r *reader) ofPods(m *autoscalingv2.PodsMetricSource) autoscaler.Reading {
	of, err := choose(m.Metric.Selector)
	switch {
	case err != nil:
		return failed(err)
	case !r.at.IsZero():
		return failed(r.notThen("Pods"))
	case r.options.Custom == nil:
		return unfetched(customAPI, errNoCustom)
	}
	ctx, cancel := r.patience()
	defer cancel()
	info := provider.CustomMetricInfo{GroupResource: schema.GroupResource{Resource: "pods"}, Namespaced: true, Metric: m.Metric.Name}
	list, err := r.options.Custom.GetMetricBySelector(ctx, r.namespace, r.selector, info, of)
	switch {
	case err != nil:
		return unfetched(customAPI, err)
	case len(list.Items) == 0:
		return empty(customAPI)
	}
	reading := autoscaler.Reading{At: seconds(list.Items[0].Timestamp.Time), Samples: make([]autoscaler.Sample, len(list.Items))}
	for i := range list.Items {
		v := &list.Items[i]
		reading.Samples[i] = autoscaler.Sample{Pod: v.DescribedObject.Name, Milli: v.Value.MilliValue(), At: seconds(v.Timestamp.Time), Window: window(v)}
	}
	return reading
}

func window(v *custom_metrics.MetricValue) time.Duration {
	if v.WindowSeconds == nil {
		return defaultWindow
	}
	return time.Duration(*v.WindowSeconds) * time.Second
}

// ofObject returns the metric of one object. An object of kind Namespace is the
// target's own namespace, whatever its name: so it is with Kubernetes' controller,
// which lets nobody look into another's.
func (r *reader) ofObject(m *autoscalingv2.ObjectMetricSource) autoscaler.Reading {
	of, err := choose(m.Metric.Selector)
	switch {
	case err != nil:
		return failed(err)
	case !r.at.IsZero():
		return failed(r.notThen("Object"))
	case r.options.Custom == nil:
		return unfetched(customAPI, errNoCustom)
	}
	kind := schema.FromAPIVersionAndKind(m.DescribedObject.APIVersion, m.DescribedObject.Kind)
	// Which resource a kind is only the API server knows for sure. Weir has metrics
	// of few, of which the guess is right; of others it only says so.
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	name := types.NamespacedName{Namespace: r.namespace, Name: m.DescribedObject.Name}
	if kind.Kind == "Namespace" && kind.Group == "" {
		name = types.NamespacedName{Name: r.namespace}
	}
	info := provider.CustomMetricInfo{GroupResource: plural.GroupResource(), Namespaced: name.Namespace != "", Metric: m.Metric.Name}
	ctx, cancel := r.patience()
	defer cancel()
	v, err := r.options.Custom.GetMetricByName(ctx, name, info, of)
	if err != nil {
		return unfetched(customAPI, err)
	}
	return autoscaler.Reading{Values: []int64{v.Value.MilliValue()}, At: seconds(v.Timestamp.Time)}
}

// external returns the values of a metric from outside.
func (r *reader) external(m *autoscalingv2.ExternalMetricSource) autoscaler.Reading {
	of, err := choose(m.Metric.Selector)
	switch {
	case err != nil:
		return failed(err)
	case !r.at.IsZero():
		return failed(r.notThen("External"))
	case r.options.External == nil:
		return unfetched(externalAPI, errNoExternal)
	}
	ctx, cancel := r.patience()
	defer cancel()
	list, err := r.options.External.GetExternalMetric(ctx, r.namespace, of, provider.ExternalMetricInfo{Metric: m.Metric.Name})
	switch {
	case err != nil:
		return unfetched(externalAPI, err)
	case len(list.Items) == 0:
		return empty(externalAPI)
	}
	reading := autoscaler.Reading{At: seconds(list.Items[0].Timestamp.Time), Values: make([]int64, len(list.Items))}
	for i := range list.Items {
		reading.Values[i] = list.Items[i].Value.MilliValue()
	}
	return reading
}

// seconds cuts a time to whole seconds, as the APIs' encoding does.
func seconds(t time.Time) time.Time { return time.Unix(t.Unix(), 0) }
