package externalmetrics

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/externalmetrics/rules"
	"github.com/weir-metrics/weir/history/promclient"
)

// Provider answers requests for external metrics. It is safe for concurrent use.
type Provider struct {
	options   Options
	telemetry *telemetry
	slots     chan struct{}
	state     atomic.Pointer[state]

	mu struct {
		sync.Mutex
		broken error  // why the file could not be used when last read
		tell   func() // those whom a change of rules concerns; may be nil
	}
}

// state is a file of rules that is in use. It is never changed.
type state struct {
	rules  *rules.Rules
	client *promclient.Client
	source string // what was read
}

var _ provider.ExternalMetricsProvider = (*Provider)(nil)

// New returns a Provider with the rules in o.File. If that has mistakes, the error
// is or wraps a rules.Mistakes. Run keeps the rules up to date, and Close or Run ends
// what New began.
func New(o Options) (*Provider, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Provider{options: o, telemetry: newTelemetry(o.Registerer), slots: make(chan struct{}, o.MaxQueries)}
	if _, err := p.reload(); err != nil {
		return nil, err
	}
	return p, nil
}

// Close ends the connections that no query uses. Run does so when it ends; who never
// calls Run calls Close.
func (p *Provider) Close() { p.state.Load().client.Close() }

// Rules returns the rules in use.
func (p *Provider) Rules() *rules.Rules { return p.state.Load().rules }

// ListAllExternalMetrics returns the name of every rule, in the order of the file.
func (p *Provider) ListAllExternalMetrics() []provider.ExternalMetricInfo {
	known := p.Rules().Metrics
	all := make([]provider.ExternalMetricInfo, len(known))
	for i := range known {
		all[i].Metric = known[i].Name
	}
	return all
}

// GetExternalMetric returns what the rule of that name gives for a namespace and
// a selector.
func (p *Provider) GetExternalMetric(ctx context.Context, namespace string, selector labels.Selector, info provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	s := p.state.Load()
	m := s.rules.Metric(info.Metric)
	if m == nil {
		return nil, notFound("there is no external metric %s: the file of rules has %s", info.Metric, names(s.rules))
	}
	list, result, err := p.answer(ctx, s, m, namespace, selector)
	p.telemetry.queries.WithLabelValues(m.Name, result).Inc()
	return list, err
}

// answer runs the query of m, and says what became of it.
func (p *Provider) answer(ctx context.Context, s *state, m *rules.Metric, namespace string, selector labels.Selector) (*external_metrics.ExternalMetricValueList, string, error) {
	if m.NamespaceLabel != "" && namespace == "" {
		return nil, resultSelector, badRequest("%s is read in a namespace: ask for namespaces/NAMESPACE/%s", m.Name, m.Name)
	}
	query, err := m.For(namespace, selector)
	if err != nil {
		return nil, resultSelector, badRequest("%s: %v", m.Name, err)
	}
	answer, err := p.ask(ctx, s, query)
	if err != nil {
		result, err := failure(m.Name, s.rules.Prometheus.Timeout, err)
		return nil, result, err
	}
	for _, w := range answer.Warnings {
		warning.AddWarning(ctx, "prometheus", oneLine(w))
	}
	if len(answer.Series) == 0 {
		return nil, resultEmpty, notFound("the query of %s gives nothing for %s", m.Name, chosen(m, namespace, selector))
	}
	list := &external_metrics.ExternalMetricValueList{Items: make([]external_metrics.ExternalMetricValue, 0, len(answer.Series))}
	for _, series := range answer.Series {
		v, err := value(m, series)
		if err != nil {
			return nil, resultRefused, err
		}
		list.Items = append(list.Items, v)
	}
	return list, resultOK, nil
}

// ask sends a query when its turn has come.
func (p *Provider) ask(ctx context.Context, s *state, query string) (*promclient.Answer, error) {
	began := time.Now()
	defer func() { p.telemetry.duration.Observe(time.Since(began).Seconds()) }()
	ctx, cancel := context.WithTimeout(ctx, s.rules.Prometheus.Timeout)
	defer cancel()
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, &crowded{cap(p.slots), ctx.Err()}
	}
	p.telemetry.running.Inc()
	defer p.telemetry.running.Dec()
	return s.client.Query(ctx, query, time.Now())
}

// crowded is a query whose turn did not come.
type crowded struct {
	queries int
	err     error
}

func (c *crowded) Error() string {
	return fmt.Sprintf("%d other queries did not end in time: Prometheus is slow", c.queries)
}

func (c *crowded) Unwrap() error { return c.err }

// value writes a series as the API does.
func value(m *rules.Metric, s promclient.Series) (external_metrics.ExternalMetricValue, error) {
	of := maps.Clone(s.Labels)
	delete(of, "__name__")
	v := external_metrics.ExternalMetricValue{
		MetricName: m.Name, MetricLabels: of, Timestamp: metav1.Time{Time: s.Time},
	}
	if m.Window > 0 {
		seconds := max(1, int64(m.Window/time.Second))
		v.WindowSeconds = &seconds
	}
	q, ok := quantity(s.Value)
	if !ok {
		about := ""
		if len(of) > 0 {
			about = " for " + labels.Set(of).String()
		}
		if math.IsNaN(s.Value) {
			return v, notFound("the query of %s gives NaN%s: perhaps it divides by zero", m.Name, about)
		}
		return v, notFound("the query of %s gives %v%s, which is no number an autoscaler can use", m.Name, s.Value, about)
	}
	v.Value = q
	return v, nil
}

// quantity returns v to the nearest thousandth, and whether it is a number that a
// quantity can hold. Beyond 9e15 there are no thousandths left.
func quantity(v float64) (resource.Quantity, bool) {
	if milli := math.RoundToEven(v * 1000); math.Abs(milli) < 1<<63 {
		return *resource.NewMilliQuantity(int64(milli), resource.DecimalSI), true
	}
	if v = math.RoundToEven(v); math.Abs(v) < 1<<63 {
		return *resource.NewQuantity(int64(v), resource.DecimalSI), true
	}
	return resource.Quantity{}, false
}

// names lists the rules' names, the first ten of many.
func names(r *rules.Rules) string {
	var all []string
	for i := range r.Metrics {
		if i == 10 {
			all = append(all, fmt.Sprintf("and %d more", len(r.Metrics)-i))
			break
		}
		all = append(all, r.Metrics[i].Name)
	}
	return strings.Join(all, ", ")
}

// chosen says by what a query was narrowed.
func chosen(m *rules.Metric, namespace string, selector labels.Selector) string {
	var by []string
	if m.NamespaceLabel != "" {
		by = append(by, fmt.Sprintf("%s=%s", m.NamespaceLabel, namespace))
	}
	if selector != nil && !selector.Empty() {
		by = append(by, selector.String())
	}
	if len(by) == 0 {
		return "the whole cluster"
	}
	return strings.Join(by, ",")
}
