package externalmetrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver/installer"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
	storage "sigs.k8s.io/custom-metrics-apiserver/pkg/registry/external_metrics"

	"github.com/weir-metrics/weir/api/externalmetrics/rules"
	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/internal/humanize"
)

// Provider answers requests for external metrics. It is safe for concurrent use.
type Provider struct {
	options   Options
	telemetry *telemetry
	slots     chan struct{}
	state     atomic.Pointer[loadedRules]

	mu struct {
		sync.Mutex
		broken  error  // why the last read of the file failed
		changed func() // called after a change of the rules; may be nil
	}
}

// loadedRules are the rules in use. They are immutable.
type loadedRules struct {
	rules  *rules.Rules
	client *history.Client
	source string // content of the file and of what it refers to
}

var _ provider.ExternalMetricsProvider = (*Provider)(nil)

// New returns a Provider with the rules in o.File. If the file has mistakes, the error is or wraps
// a rules.Mistakes. Run keeps the rules up to date. Close or Run frees the client.
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

// Install serves external.metrics.k8s.io from p with s. Discovery follows changes of the rules.
func Install(s *genericserver.GenericAPIServer, p *Provider) error {
	announce, err := metricsgroup.Install(s, external_metrics.GroupName, installer.MetricsAPIGroupVersion{
		DynamicStorage: storage.NewREST(p), ResourceLister: provider.NewExternalMetricResourceLister(p), Handlers: &installer.EMHandlers{},
	})
	if err == nil {
		p.onRulesChange(func() { _ = announce() }) // it fails only for subresources, and a rule's name has no slash
	}
	return err
}

// Close closes idle connections. Run calls it when it ends; without Run the caller does.
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

// GetExternalMetric returns the series of a rule for a namespace and a selector.
func (p *Provider) GetExternalMetric(ctx context.Context, namespace string, selector labels.Selector, info provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	s := p.state.Load()
	m := s.rules.Metric(info.Metric)
	if m == nil {
		return nil, metricsgroup.NotFound("there is no external metric %s: the file of rules has %s", info.Metric, ruleNames(s.rules))
	}
	list, result, err := p.answer(ctx, s, m, namespace, selector)
	p.telemetry.queries.WithLabelValues(m.Name, result).Inc()
	return list, err
}

// answer runs the query of m. It also returns the result for the metric of queries.
func (p *Provider) answer(ctx context.Context, s *loadedRules, m *rules.Rule, namespace string, selector labels.Selector) (*external_metrics.ExternalMetricValueList, string, error) {
	if m.NamespaceLabel != "" && namespace == "" {
		return nil, resultSelector, metricsgroup.BadRequest("%s is read in a namespace: ask for namespaces/NAMESPACE/%s", m.Name, m.Name)
	}
	query, err := m.QueryFor(namespace, selector)
	if err != nil {
		return nil, resultSelector, metricsgroup.BadRequest("%s: %v", m.Name, err)
	}
	answer, err := p.runQuery(ctx, s, query)
	if err != nil {
		result, err := queryFailure(m.Name, s.rules.Prometheus.Timeout, err)
		return nil, result, err
	}
	for _, w := range answer.Warnings {
		metricsgroup.Warn(ctx, "prometheus", w)
	}
	if len(answer.Series) == 0 {
		return nil, resultEmpty, metricsgroup.NotFound("the query of %s returns nothing for %s", m.Name, narrowedBy(m, namespace, selector))
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

// runQuery sends a query once a slot is free.
func (p *Provider) runQuery(ctx context.Context, s *loadedRules, query string) (*history.Answer, error) {
	began := time.Now()
	defer func() { p.telemetry.duration.Observe(time.Since(began).Seconds()) }()
	ctx, cancel := context.WithTimeout(ctx, s.rules.Prometheus.Timeout)
	defer cancel()
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, &queueTimeout{cap(p.slots), ctx.Err()}
	}
	p.telemetry.running.Inc()
	defer p.telemetry.running.Dec()
	return s.client.Query(ctx, query, time.Now())
}

// queueTimeout is the error of a query that got no slot in time.
type queueTimeout struct {
	queries int
	err     error
}

func (q *queueTimeout) Error() string {
	return fmt.Sprintf("%d other queries did not end in time: Prometheus is slow", q.queries)
}

func (q *queueTimeout) Unwrap() error { return q.err }

// value converts a series to the API's type.
func value(m *rules.Rule, s history.InstantValue) (external_metrics.ExternalMetricValue, error) {
	seriesLabels := maps.Clone(s.Labels)
	delete(seriesLabels, "__name__")
	v := external_metrics.ExternalMetricValue{
		MetricName: m.Name, MetricLabels: seriesLabels, Timestamp: metav1.Time{Time: s.Time},
	}
	if m.Window > 0 {
		seconds := max(1, int64(m.Window/time.Second))
		v.WindowSeconds = &seconds
	}
	q, ok := quantity(s.Value)
	if !ok {
		about := ""
		if len(seriesLabels) > 0 {
			about = " for " + labels.Set(seriesLabels).String()
		}
		if math.IsNaN(s.Value) {
			return v, metricsgroup.NotFound("the query of %s returns NaN%s: perhaps it divides by zero", m.Name, about)
		}
		return v, metricsgroup.NotFound("the query of %s returns %v%s, which is not a number that an autoscaler can use", m.Name, s.Value, about)
	}
	v.Value = q
	return v, nil
}

// quantity rounds v to thousandths, and reports whether a quantity can hold it. Above 9e15 the
// value has no thousandths.
func quantity(v float64) (resource.Quantity, bool) {
	if milli := math.RoundToEven(v * 1000); math.Abs(milli) < 1<<63 {
		return *resource.NewMilliQuantity(int64(milli), resource.DecimalSI), true
	}
	if v = math.RoundToEven(v); math.Abs(v) < 1<<63 {
		return *resource.NewQuantity(int64(v), resource.DecimalSI), true
	}
	return resource.Quantity{}, false
}

// ruleNames lists the names of the first ten rules.
func ruleNames(r *rules.Rules) string {
	var all []string
	for i := range r.Metrics {
		all = append(all, r.Metrics[i].Name)
	}
	return humanize.List(all, 10)
}

// narrowedBy lists the matchers that were added to a query.
func narrowedBy(m *rules.Rule, namespace string, selector labels.Selector) string {
	var matchers []string
	if m.NamespaceLabel != "" {
		matchers = append(matchers, fmt.Sprintf("%s=%s", m.NamespaceLabel, namespace))
	}
	if selector != nil && !selector.Empty() {
		matchers = append(matchers, selector.String())
	}
	if len(matchers) == 0 {
		return "the whole cluster"
	}
	return strings.Join(matchers, ",")
}

// Options configure a Provider.
type Options struct {
	// File is the file of rules. Required.
	File string
	// MayName are files outside the folder of File that the rules may name, such as a bearer token.
	MayName []string
	// URL replaces the URL in the file if it is not empty, for example with a forwarded port to try
	// the rules from outside the cluster.
	URL string
	// MaxQueries is how many queries run at once; 0 means 16. Other queries wait until their
	// deadline.
	MaxQueries int
	// Reread is how often the file is read again; 0 means every 5 seconds.
	Reread time.Duration
	// Logger gets a line for each reload; nil for none.
	Logger *zap.Logger
	// Registerer gets the provider's own metrics; nil for none.
	Registerer prometheus.Registerer
}

func (o Options) withDefaults() (Options, error) {
	if o.File == "" {
		return o, errors.New("no file of rules: name one")
	}
	o.MaxQueries = cmp.Or(o.MaxQueries, 16)
	o.Reread = cmp.Or(o.Reread, 5*time.Second)
	o.Logger = cmp.Or(o.Logger, zap.NewNop())
	return o, nil
}
