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

// Provider answers requests for the metrics of the rules. It is safe for concurrent use.
type Provider struct {
	options   Options
	telemetry *telemetry
	state     atomic.Pointer[loadedRules]
	shared    sharedQueries

	mu struct {
		sync.Mutex
		mistakes error    // in the file, as of its last read
		changed  []func() // called after a change of the rules
	}
}

// loadedRules are the rules in use. They are immutable.
type loadedRules struct {
	rules   *rules.Rules
	servers map[string]*server // by name
	source  string             // content of the file and of what it refers to
}

// server is a Prometheus.
type server struct {
	*history.Client
	slots chan struct{} // one for each query that runs
}

var _ provider.ExternalMetricsProvider = (*Provider)(nil)

// New returns a Provider with the rules in o.File. Rules with mistakes are left out and logged. If the
// file has other mistakes, the error is or wraps a rules.Mistakes. Run keeps the rules up to date.
// Close or Run frees the client.
func New(o Options) (*Provider, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Provider{options: o, telemetry: newTelemetry(o.Registerer)}
	p.shared.mu.queries = map[queryKey]*sharedQuery{}
	_, err = p.reload()
	if p.state.Load() == nil {
		return nil, err
	}
	if err != nil {
		p.logMistakes(err)
	}
	return p, nil
}

// Install serves external.metrics.k8s.io from p with s. Discovery follows changes of the rules.
func Install(s *genericserver.GenericAPIServer, p provider.ExternalMetricsProvider) error {
	return metricsgroup.Install(s, external_metrics.GroupName, p, installer.MetricsAPIGroupVersion{
		DynamicStorage: storage.NewREST(p), ResourceLister: provider.NewExternalMetricResourceLister(p), Handlers: &installer.EMHandlers{},
	})
}

// Close closes idle connections. Run calls it when it ends; without Run the caller does.
func (p *Provider) Close() { p.state.Load().close() }

// Rules returns the rules in use.
func (p *Provider) Rules() *rules.Rules { return p.state.Load().rules }

// ListAllExternalMetrics returns the name of every rule of an external metric, in the order of the
// file.
func (p *Provider) ListAllExternalMetrics() (all []provider.ExternalMetricInfo) {
	for _, name := range p.Rules().ExternalNames() {
		all = append(all, provider.ExternalMetricInfo{Metric: name})
	}
	return all
}

// GetExternalMetric returns the series of a rule for a namespace and a selector.
func (p *Provider) GetExternalMetric(ctx context.Context, namespace string, selector labels.Selector, info provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	s := p.state.Load()
	m := s.rules.External(info.Metric)
	if m == nil {
		if mistake := s.rules.Mistake(info.Metric); mistake != "" {
			return nil, metricsgroup.NotFound("the rule of %s has a mistake: %s", info.Metric, mistake)
		}
		return nil, metricsgroup.NotFound("there is no external metric %s: the file of rules has %s", info.Metric, humanize.List(s.rules.ExternalNames(), 10))
	}
	list, result, err := p.externalList(ctx, s, m, namespace, selector)
	p.telemetry.queries.WithLabelValues(m.ID(), result).Inc()
	return list, err
}

// externalList returns the series of m. It also returns the result for the metric of queries.
func (p *Provider) externalList(ctx context.Context, s *loadedRules, m *rules.Rule, namespace string, selector labels.Selector) (*external_metrics.ExternalMetricValueList, string, error) {
	q, result, err := p.ask(ctx, s, m, namespace, selector, 0)
	switch {
	case err != nil:
		return nil, result, err
	case len(q.answer.Series) == 0:
		return nil, resultEmpty, metricsgroup.NotFound("the query of %s returns nothing for %s", m.Name, narrowedBy(m, namespace, selector))
	}
	list := &external_metrics.ExternalMetricValueList{Items: make([]external_metrics.ExternalMetricValue, 0, len(q.answer.Series))}
	for _, series := range q.answer.Series {
		v, err := value(m, series)
		if err != nil {
			return nil, resultRefused, err
		}
		list.Items = append(list.Items, v)
	}
	return list, resultOK, nil
}

// ask returns the answer to the query of m as of some time ago. It also returns the result for the
// metric of queries.
func (p *Provider) ask(ctx context.Context, s *loadedRules, m *rules.Rule, namespace string, selector labels.Selector, ago time.Duration) (*sharedQuery, string, error) {
	if m.NamespaceLabel != "" && namespace == "" && !m.IsOfNamespaces() {
		return nil, resultSelector, metricsgroup.BadRequest("%s is read in a namespace: ask for namespaces/NAMESPACE/%s", m.Name, m.Name)
	}
	query, err := m.QueryFor(namespace, selector)
	if err != nil {
		return nil, resultSelector, metricsgroup.BadRequest("%s: %v", m.Name, err)
	}
	q, err := p.share(ctx, s, queryKey{m, query, ago})
	if err != nil {
		result, err := queryFailure(m.Name, s.rules.Server(m).Timeout, err)
		return nil, result, err
	}
	for _, w := range q.answer.Warnings {
		metricsgroup.Warn(ctx, "prometheus", w)
	}
	return q, resultOK, nil
}

// value converts a series to the API's type.
func value(m *rules.Rule, s history.InstantValue) (external_metrics.ExternalMetricValue, error) {
	v := external_metrics.ExternalMetricValue{
		MetricName: m.Name, MetricLabels: maps.Clone(s.Labels), Timestamp: metav1.Time{Time: s.Time},
	}
	v.WindowSeconds = windowSeconds(m)
	about := ""
	if named := metricsgroup.WithoutName(s.Labels); len(named) > 0 {
		about = " for " + named.String()
	}
	var err error
	v.Value, err = usableQuantity(m, s.Value, about)
	return v, err
}

// windowSeconds returns the longest range in the query of m in seconds, or nil if it has none.
func windowSeconds(m *rules.Rule) *int64 {
	if m.Window == 0 {
		return nil
	}
	return new(max(1, int64(m.Window/time.Second)))
}

// usableQuantity returns a value as a quantity, or an error if an autoscaler cannot use it. about
// names the series.
func usableQuantity(m *rules.Rule, v float64, about string) (resource.Quantity, error) {
	q, ok := quantity(v)
	switch {
	case ok:
		return q, nil
	case math.IsNaN(v):
		return q, metricsgroup.NotFound("the query of %s returns NaN%s: perhaps it divides by zero", m.Name, about)
	}
	return q, metricsgroup.NotFound("the query of %s returns %v%s, which is not a number that an autoscaler can use", m.Name, v, about)
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

// narrowedBy lists the matchers that were added to a query.
func narrowedBy(m *rules.Rule, namespace string, selector labels.Selector) string {
	var matchers []string
	if m.NamespaceLabel != "" && namespace != "" {
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
	// Memory is what rules over time can read.
	Memory rules.Memory
	// URL replaces the URL in the file if it is not empty, for example with a forwarded port to try
	// the rules from outside the cluster.
	URL string
	// MaxQueries is how many queries of one server run at once; 0 means 16. Other queries wait until their
	// deadline.
	MaxQueries int
	// AnswerAge is how long an answer of Prometheus is used again; 0 means 10 seconds, a negative
	// value means that it is used once.
	AnswerAge time.Duration
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
	o.AnswerAge = cmp.Or(o.AnswerAge, 10*time.Second)
	o.Reread = cmp.Or(o.Reread, 5*time.Second)
	o.Logger = cmp.Or(o.Logger, zap.NewNop())
	return o, nil
}
