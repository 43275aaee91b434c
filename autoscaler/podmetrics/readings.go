package podmetrics

import (
	"context"
	"errors"
	"fmt"
	"sync"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/metric"
)

// Readings returns Input.ReadMetric for a target with the selector sel, which matches pods. All
// resource metrics are read from one state. The first call starts the requests to other servers, so a
// metric that takes the whole time of ctx makes no other metric fail. Only one goroutine may call the
// function.
func (r *Reader) Readings(ctx context.Context, namespace string, sel labels.Selector, spec *autoscalingv2.HorizontalPodAutoscalerSpec, pods []autoscaler.PodInput) func(i int) autoscaler.Reading {
	target := &targetReader{Reader: r, ctx: ctx, namespace: namespace, selector: sel, pods: pods}
	read := make([]func() autoscaler.Reading, len(spec.Metrics))
	start := sync.OnceFunc(func() {
		for i := range spec.Metrics {
			m := &spec.Metrics[i]
			read[i] = func() autoscaler.Reading {
				reading := target.read(m)
				reading.AnsweredBy = target.answeredBy(m)
				return reading
			}
			if !r.IsInMemory(m) {
				read[i] = inBackground(read[i])
			}
		}
	})
	return func(i int) autoscaler.Reading {
		if i < 0 || i >= len(spec.Metrics) {
			return failed(fmt.Errorf("there is no metric %d of %d", i, len(spec.Metrics)))
		}
		start()
		return read[i]()
	}
}

// inBackground calls read in a goroutine. It returns a function that waits for the result, and that has the
// panic of read, because the caller recovers from it.
func inBackground(read func() autoscaler.Reading) func() autoscaler.Reading {
	var reading autoscaler.Reading
	var panicked any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		reading = read()
	}()
	return func() autoscaler.Reading {
		<-done
		if panicked != nil {
			panic(panicked)
		}
		return reading
	}
}

// targetReader reads the metrics of one target.
type targetReader struct {
	*Reader
	ctx       context.Context
	namespace string
	selector  labels.Selector
	pods      []autoscaler.PodInput

	usage *podUsages // the usage of the pods, set by the first resource metric
}

func failed(err error) autoscaler.Reading { return autoscaler.Reading{Err: err} }

// read reads one metric. The API server has validated that its fields are set.
func (r *targetReader) read(m *autoscalingv2.MetricSpec) autoscaler.Reading {
	switch {
	case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
		return r.resourceMetric(m.Resource.Name, "")
	case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
		return r.resourceMetric(m.ContainerResource.Name, m.ContainerResource.Container)
	case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
		return r.podsMetric(m.Pods)
	case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
		return r.objectMetric(m.Object)
	case m.Type == autoscalingv2.ExternalMetricSourceType && m.External != nil:
		return r.externalMetric(m.External)
	}
	return failed(fmt.Errorf("a metric of type %q without its source cannot be read", m.Type))
}

// The API names in the errors of Kubernetes' controller.
const (
	resourceAPI = "resource metrics API"
	customAPI   = "custom metrics API"
	externalAPI = "external metrics API"
)

func fetchError(api string, err error) autoscaler.Reading {
	return failed(fmt.Errorf("unable to fetch metrics from %s: %w", api, err))
}

func emptyAnswer(api string) autoscaler.Reading {
	return failed(fmt.Errorf("no metrics returned from %s", api))
}

// resourceMetric returns the usage of CPU or memory of the pods, or of one container of each pod if
// container is set.
func (r *targetReader) resourceMetric(name corev1.ResourceName, container string) autoscaler.Reading {
	if r.usage == nil {
		r.usage = r.readUsage()
	}
	u := r.usage
	switch {
	case u.err != nil:
		return fetchError(resourceAPI, u.err)
	case len(u.pods) == 0:
		return emptyAnswer(resourceAPI)
	}
	reading := autoscaler.Reading{At: u.pods[0].at(), Samples: make([]autoscaler.PodSample, 0, len(u.pods))}
	for i := range u.pods {
		p := &u.pods[i]
		if milli, ok := p.sum(name, container); ok {
			reading.Samples = append(reading.Samples, autoscaler.PodSample{Pod: p.name, Milli: milli, At: p.at(), Window: p.over.Length})
		}
	}
	return reading
}

// readUsage reads the usage of the pods.
func (r *targetReader) readUsage() *podUsages {
	facts := r.options.Facts()
	if facts == nil || !facts.Synced {
		return &podUsages{err: errPodsUnknown}
	}
	view := r.options.View()
	switch {
	case view != nil && !view.At().IsZero():
	case facts.Nodes() > 0:
		return &podUsages{err: errors.New("weir has just started and has read no node yet")}
	default:
		return &podUsages{} // nothing was read yet
	}
	refs := make([]metric.PodRef, len(r.pods))
	for i := range r.pods {
		refs[i] = metric.PodRef{Namespace: metric.Namespace(r.namespace), Name: metric.PodName(r.pods[i].Name)}
	}
	if !r.at.IsZero() {
		return r.pastUsage(view, facts, refs)
	}
	return currentUsage(view, facts, refs)
}

// metricSelector returns the selector of a metric. Without one it matches everything, as in
// Kubernetes' client.
func metricSelector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}
