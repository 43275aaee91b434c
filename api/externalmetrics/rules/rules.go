package rules

import (
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// Rules are what a file without mistakes says. They are never changed.
type Rules struct {
	Prometheus Prometheus
	// Metrics are in the order of the file.
	Metrics []Metric

	byName map[string]*Metric
}

// Prometheus is how to reach whatever answers the queries.
type Prometheus struct {
	// URL is the server's, such as http://prometheus:9090; the API's path is
	// added to it.
	URL string
	// Timeout is that of one query, the time it waits for its turn included.
	Timeout time.Duration
	// CAFile holds the certificates to trust; the system's if empty.
	CAFile string
	// BearerTokenFile is read for each query, for tokens are renewed.
	BearerTokenFile string
	// Username and PasswordFile are sent as basic authentication.
	Username, PasswordFile string
	Headers                map[string]string
}

// DefaultTimeout is that of a query where the file names none. An HPA asks four
// times a minute.
const DefaultTimeout = 10 * time.Second

// DefaultNamespaceLabel is the label that holds a series' namespace where the
// rule names none.
const DefaultNamespaceLabel = "namespace"

// Metric is one rule.
type Metric struct {
	// Name is what an HPA calls the metric, and what RBAC calls it: a resource
	// of external.metrics.k8s.io.
	Name string
	Help string
	// Query is the query as written.
	Query string
	// NamespaceLabel is the label that must equal the caller's namespace; empty
	// for a rule that is not namespaced.
	NamespaceLabel string
	// SelectorMetrics are the metrics of the query that the caller's selector
	// narrows; empty for all.
	SelectorMetrics []string
	// Window is the longest range the query looks back over; 0 if it has none.
	Window time.Duration
	// Line is where the rule begins.
	Line int
}

// Metric returns the rule of that name, or nil.
func (r *Rules) Metric(name string) *Metric { return r.byName[name] }

// promQL is the language of queries: without what is experimental, for the
// server may not know it, and info() would read metrics the query does not name.
var promQL = parser.NewParser(parser.Options{})
