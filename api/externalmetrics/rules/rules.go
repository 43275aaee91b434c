package rules

import (
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/internal/history"
)

// Rules are the valid rules of a file. They are immutable.
type Rules struct {
	// Prometheus is empty if no rule has a query.
	Prometheus Prometheus
	// Others are the servers that rules name.
	Others map[string]Prometheus
	// Metrics are in the order of the file.
	Metrics []Rule

	byID   map[ruleID]*Rule
	broken map[string]string // the first mistake of broken rules, by their names
}

// ruleID distinguishes the rules of a file. The resource of an external metric is empty.
type ruleID struct {
	resource schema.GroupResource
	name     string
}

// Prometheus is how to reach the server.
type Prometheus struct {
	history.Options
	// Timeout bounds one query, including the wait for a slot.
	Timeout time.Duration
}

// DefaultTimeout is the timeout if the file has none. An HPA queries four times a minute.
const DefaultTimeout = 10 * time.Second

// DefaultNamespaceLabel is the label that holds the namespace of a series if the rule names none.
const DefaultNamespaceLabel = "namespace"

// Rule is one rule.
type Rule struct {
	// Name is the metric's name in HPAs and in RBAC.
	Name string
	Help string
	// Object is what a value of the metric is of. It is nil for an external metric.
	Object *Object
	// Prometheus is the name of the server that is asked, or empty for Rules.Prometheus.
	Prometheus string
	// Query is the query as written in the file. It is empty for a rule over time.
	Query string
	// OverTime is what a rule over time is a function of; nil for a rule with a query.
	OverTime *metricsgroup.OverTime
	// NamespaceLabel is the label that must equal the caller's namespace. It is empty for a rule
	// that is not namespaced.
	NamespaceLabel string
	// SelectorMetrics are the metrics of the query to which the caller's selector applies. If it is
	// empty, the selector applies to all.
	SelectorMetrics []string
	// Window is that over time, or the longest range in the query, or 0 if it has none.
	Window time.Duration
	// Line is the line where the rule begins.
	Line int
}

// ID returns "RESOURCE/NAME" as in discovery, or the name of an external metric.
func (r *Rule) ID() string {
	if r.Object == nil {
		return r.Name
	}
	return r.Object.Resource.String() + "/" + r.Name
}

// IsOfNamespaces reports whether the values are of namespaces.
func (r *Rule) IsOfNamespaces() bool { return r.Object != nil && r.Object.IsNamespace() }

func (r *Rule) id() ruleID {
	if r.Object == nil {
		return ruleID{name: r.Name}
	}
	return ruleID{r.Object.Resource, r.Name}
}

// Mistake returns what is wrong with a broken rule of that name, or nothing.
func (r *Rules) Mistake(name string) string { return r.broken[name] }

// Server returns the server that a rule asks.
func (r *Rules) Server(m *Rule) *Prometheus {
	if m.Prometheus == "" {
		return &r.Prometheus
	}
	return new(r.Others[m.Prometheus])
}

// External returns the rule of an external metric, or nil.
func (r *Rules) External(name string) *Rule { return r.byID[ruleID{name: name}] }

// ExternalNames returns the names of the external metrics, in the order of the file.
func (r *Rules) ExternalNames() (names []string) {
	for i := range r.Metrics {
		if r.Metrics[i].Object == nil {
			names = append(names, r.Metrics[i].Name)
		}
	}
	return names
}

// Custom returns the rule of a metric of a kind of objects, or nil.
func (r *Rules) Custom(resource schema.GroupResource, name string) *Rule {
	return r.byID[ruleID{resource, name}]
}

// KeepBroken adds the rules of an earlier file that have the name of a broken rule and that r does not have.
func (r *Rules) KeepBroken(earlier *Rules) {
	for i := range earlier.Metrics {
		if m := earlier.Metrics[i]; r.broken[m.Name] != "" && r.byID[m.id()] == nil && r.hasServer(&m) {
			r.Metrics = append(r.Metrics, m)
		}
	}
	r.index()
}

// hasServer reports whether the server of a rule is there.
func (r *Rules) hasServer(m *Rule) bool {
	_, ok := r.Others[m.Prometheus]
	return ok || m.OverTime != nil || m.Prometheus == "" && r.Prometheus.URL != ""
}

func (r *Rules) index() {
	r.byID = make(map[ruleID]*Rule, len(r.Metrics))
	for i := range r.Metrics {
		r.byID[r.Metrics[i].id()] = &r.Metrics[i]
	}
}

// queryParser parses queries without experimental features, because the server may not have them.
// One of them, info(), would read metrics that the query does not name.
var queryParser = parser.NewParser(parser.Options{})
