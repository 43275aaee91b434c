package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/metric"
)

// Readings returns what reads the metrics of spec: Input.Read for a target in a
// namespace whose pods are pods, which sel matches. Of metrics.k8s.io all of them
// read one state. It is for one goroutine.
func (l *Live) Readings(ctx context.Context, now time.Time, namespace string, sel labels.Selector, spec *autoscalingv2.HorizontalPodAutoscalerSpec, pods []autoscaler.Pod) func(i int) autoscaler.Reading {
	r := &reader{Live: l, ctx: ctx, now: now, namespace: namespace, selector: sel, pods: pods}
	return func(i int) autoscaler.Reading {
		if i < 0 || i >= len(spec.Metrics) {
			return failed(fmt.Errorf("there is no metric %d of %d", i, len(spec.Metrics)))
		}
		return r.read(&spec.Metrics[i])
	}
}

// reader reads the metrics of one target.
type reader struct {
	*Live
	ctx       context.Context
	now       time.Time
	namespace string
	selector  labels.Selector
	pods      []autoscaler.Pod

	used *used // what the pods use, once it was asked for
}

func failed(err error) autoscaler.Reading { return autoscaler.Reading{Err: err} }

// read reads one metric. Which fields must be set the API server has seen to.
func (r *reader) read(m *autoscalingv2.MetricSpec) autoscaler.Reading {
	switch {
	case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
		return r.resource(m.Resource.Name, "")
	case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
		return r.resource(m.ContainerResource.Name, m.ContainerResource.Container)
	case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
		return r.ofPods(m.Pods)
	case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
		return r.ofObject(m.Object)
	case m.Type == autoscalingv2.ExternalMetricSourceType && m.External != nil:
		return r.external(m.External)
	}
	return failed(fmt.Errorf("a metric of type %q without its source cannot be read", m.Type))
}

// What Kubernetes' controller is told of an API that does not answer, and of one
// that answers with an empty list.
const (
	resourceAPI = "resource metrics API"
	customAPI   = "custom metrics API"
	externalAPI = "external metrics API"
)

func unfetched(api string, err error) autoscaler.Reading {
	return failed(fmt.Errorf("unable to fetch metrics from %s: %w", api, err))
}

func empty(api string) autoscaler.Reading {
	return failed(fmt.Errorf("no metrics returned from %s", api))
}

// resource returns the use of CPU or memory of all containers of the pods, or of one
// container if it is named.
func (r *reader) resource(name corev1.ResourceName, container string) autoscaler.Reading {
	if r.used == nil {
		r.used = r.look()
	}
	u := r.used
	switch {
	case u.err != nil:
		return unfetched(resourceAPI, u.err)
	case len(u.pods) == 0:
		return empty(resourceAPI)
	}
	reading := autoscaler.Reading{At: u.pods[0].at(), Samples: make([]autoscaler.Sample, 0, len(u.pods))}
	for i := range u.pods {
		p := &u.pods[i]
		if milli, ok := u.sum(p, name, container); ok {
			reading.Samples = append(reading.Samples, autoscaler.Sample{Pod: p.name, Milli: milli, At: p.at(), Window: p.over.Length})
		}
	}
	return reading
}

// look reads what the pods use.
func (r *reader) look() *used {
	facts := r.options.Facts()
	if facts == nil || !facts.Synced {
		return &used{err: errUnheard}
	}
	view := r.options.View()
	switch {
	case view != nil && !view.At().IsZero():
	case facts.Nodes() > 0:
		return &used{err: errors.New("weir has just started and has read no node yet")}
	default:
		return &used{} // there is nothing to read
	}
	refs := make([]metric.PodRef, len(r.pods))
	for i := range r.pods {
		refs[i] = metric.PodRef{Namespace: metric.Namespace(r.namespace), Name: metric.PodName(r.pods[i].Name)}
	}
	if !r.at.IsZero() {
		return r.remembered(view, facts, refs)
	}
	return usedNow(view, facts, refs)
}

// choose returns the selector of a metric. Kubernetes' client sends the one of
// everything as it does none at all.
func choose(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}
