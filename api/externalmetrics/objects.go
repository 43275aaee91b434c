package externalmetrics

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/externalmetrics/rules"
	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/explain"
)

// Reasons why an object has no value.
const (
	noSeries    = "NoSeries"
	noLabel     = "NoLabel"
	seriesEnded = "SeriesEnded"
)

// endedAgo is how long ago an object must have had a value for its series to have ended.
const endedAgo = 10 * time.Minute

// severalSeries is the index of a name that several series have.
const severalSeries = -1

// ListObjectMetrics returns the metrics of objects, in the order of the file.
func (p *Provider) ListObjectMetrics() (all []provider.CustomMetricInfo) {
	known := p.Rules().Metrics
	for i := range known {
		if o := known[i].Object; o != nil {
			all = append(all, provider.CustomMetricInfo{GroupResource: o.Resource, Namespaced: o.Namespaced, Metric: known[i].Name})
		}
	}
	return all
}

// HasObjectMetric reports whether a rule has a query for a metric of objects with this resource.
func (p *Provider) HasObjectMetric(resource schema.GroupResource, name string) bool {
	m := p.Rules().Custom(resource, name)
	return m != nil && m.OverTime == nil
}

// OverTime returns the rule over time of a metric of objects with this resource, or nil.
func (p *Provider) OverTime(resource schema.GroupResource, name string) *metricsgroup.OverTime {
	return p.Rules().OverTime(resource, name)
}

// Mistake returns what is wrong with a rule of that name, or nothing.
func (p *Provider) Mistake(name string) string { return p.Rules().Mistake(name) }

// GetObjectMetric returns the values of a metric for the objects in a namespace, or for those in no
// namespace. A namespace is in itself; without one, the values are those of all namespaces. It returns nil
// if no rule has a query for the metric.
func (p *Provider) GetObjectMetric(ctx context.Context, namespace string, selector labels.Selector, info provider.CustomMetricInfo) (metricsgroup.ObjectMetric, error) {
	s := p.state.Load()
	m := s.rules.Custom(info.GroupResource, info.Metric)
	switch {
	case m == nil || m.OverTime != nil:
		return nil, nil
	case m.NamespaceLabel == "" && namespace != "":
		return nil, metricsgroup.NotFound("%s are in no namespace, so an autoscaler in one cannot refer to them: ask for %[1]s/NAME/%[2]s", info.GroupResource, m.Name)
	}
	q, result, err := p.ask(ctx, s, m, namespace, selector, 0)
	if err == nil && len(q.answer.Series) == 0 {
		result = resultEmpty
	}
	p.telemetry.queries.WithLabelValues(m.ID(), result).Inc()
	if err != nil {
		return nil, err
	}
	o := &objectMetric{provider: p, loaded: s, rule: m, namespace: namespace, selector: selector, query: q}
	o.answerSelector, err = metricsgroup.LabelSelector(selector)
	return o, err
}

// objectMetric is the answer of a rule for the objects in a namespace.
type objectMetric struct {
	provider       *Provider
	loaded         *loadedRules
	rule           *rules.Rule
	namespace      string
	selector       labels.Selector
	answerSelector *metav1.LabelSelector
	query          *sharedQuery
}

// seriesByName returns the index of the series of each object.
func (q *sharedQuery) seriesByName(label string) map[string]int {
	q.index.Do(func() {
		q.byName = make(map[string]int, len(q.answer.Series))
		for i := range q.answer.Series {
			name := q.answer.Series[i].Labels[label]
			if name == "" {
				continue
			}
			if _, several := q.byName[name]; several {
				i = severalSeries
			}
			q.byName[name] = i
		}
	})
	return q.byName
}

// Names returns the names of the objects with a series, sorted.
func (o *objectMetric) Names() []string {
	return slices.Sorted(maps.Keys(o.query.seriesByName(o.rule.Object.Label)))
}

// Series returns how many series the answer has.
func (o *objectMetric) Series() int { return len(o.query.answer.Series) }

// Value returns the value of an object, or nil if it has no series.
func (o *objectMetric) Value(name string) (*custom_metrics.MetricValue, error) {
	object := o.rule.Object
	i, ok := o.query.seriesByName(object.Label)[name]
	switch {
	case !ok:
		return nil, nil
	case i == severalSeries:
		return nil, metricsgroup.NotFound("the query of %s returns several series for %s=%s: aggregate them, as in sum by (%[2]s) (…)", o.rule.Name, object.Label, name)
	}
	series := &o.query.answer.Series[i]
	q, err := usableQuantity(o.rule, series.Value, fmt.Sprintf(" for %s=%s", object.Label, name))
	if err != nil {
		return nil, err
	}
	v := &custom_metrics.MetricValue{
		DescribedObject: custom_metrics.ObjectReference{Kind: object.Kind, Name: name, APIVersion: apiVersion(object)},
		Metric:          custom_metrics.MetricIdentifier{Name: o.rule.Name, Selector: o.answerSelector},
		Timestamp:       metav1.Time{Time: series.Time}, Value: q, WindowSeconds: windowSeconds(o.rule),
	}
	if object.Namespaced {
		v.DescribedObject.Namespace = o.namespace
	}
	return v, nil
}

// apiVersion returns "GROUP/VERSION", or nothing for a resource that weir does not know.
func apiVersion(o *rules.Object) string {
	if o.Version == "" {
		return ""
	}
	return strings.TrimPrefix(o.Resource.Group+"/"+o.Version, "/")
}

// WhyMissing returns why an object has no series. It asks Prometheus whether there was one earlier.
func (o *objectMetric) WhyMissing(ctx context.Context, name string) explain.Finding {
	label := o.rule.Object.Label
	now, where := o.query.seriesByName(label), narrowedBy(o.rule, o.namespace, o.selector)
	if all := len(o.query.answer.Series); all > 0 && len(now) == 0 {
		return explain.Finding{Reason: noLabel, Message: fmt.Sprintf("the query of %s returns %d series for %s, and none has the label %s", o.rule.Name, all, where, label),
			Advice: fmt.Sprintf("Keep the label in the query, as in sum by (%s) (…), or name the label that the series have in for: label.", label)}
	}
	earlier, _, err := o.provider.ask(ctx, o.loaded, o.rule, o.namespace, o.selector, endedAgo)
	if err == nil {
		if i, ok := earlier.seriesByName(label)[name]; ok {
			value := "several values"
			if i != severalSeries {
				value = fmt.Sprint(earlier.answer.Series[i].Value)
			}
			return explain.Finding{Reason: seriesEnded, Message: fmt.Sprintf("the query of %s returned %s for %s=%s ten minutes ago, and returns nothing now", o.rule.Name, value, label, name),
				Advice: "See in Prometheus whether its target is still there and up, and whether it still exports the metric."}
		}
	}
	f := explain.Finding{Reason: noSeries, Message: fmt.Sprintf("no series of the query of %s has %s=%s", o.rule.Name, label, name),
		Advice: "Check that Prometheus scrapes it, and that it exports the metrics of the rule's query: `weir check rules FILE --try` shows which objects have a value."}
	if len(now) == 0 {
		f.Message = fmt.Sprintf("the query of %s returns nothing for %s", o.rule.Name, where)
	}
	return f
}
