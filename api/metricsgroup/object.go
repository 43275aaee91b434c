package metricsgroup

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/metrics/pkg/apis/custom_metrics"

	"github.com/weir-metrics/weir/explain"
)

// ObjectMetric has the values of a custom metric for the objects of one kind in a namespace.
type ObjectMetric interface {
	// Names returns the names of the objects that have a series, sorted.
	Names() []string
	// Value returns the value of an object. It returns nil if the object has no series, and an error
	// if an autoscaler cannot use the value.
	Value(name string) (*custom_metrics.MetricValue, error)
	// WhyMissing returns why an object has no series.
	WhyMissing(ctx context.Context, name string) explain.Finding
	// Series returns how many series there are.
	Series() int
}

// WithoutName returns the labels of a series without the name of its metric, for texts.
func WithoutName(series map[string]string) labels.Set {
	others := maps.Clone(series)
	delete(others, "__name__")
	return others
}
