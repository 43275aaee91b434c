package rules

import (
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// Rules are the content of a valid file. They are immutable.
type Rules struct {
	Prometheus Prometheus
	// Metrics are in the order of the file.
	Metrics []Rule

	byName map[string]*Rule
}

// Prometheus is how to reach the server.
type Prometheus struct {
	// URL is the server's URL, such as http://prometheus:9090. The path of the API is added to it.
	URL string
	// Timeout bounds one query, including the wait for a slot.
	Timeout time.Duration
	// CAFile holds the certificates to trust. If it is empty, the system's are trusted.
	CAFile string
	// BearerTokenFile is read for each query, because tokens are renewed.
	BearerTokenFile string
	// Username and PasswordFile are sent as basic authentication.
	Username, PasswordFile string
	Headers                map[string]string
}

// DefaultTimeout is the timeout if the file has none. An HPA queries four times a minute.
const DefaultTimeout = 10 * time.Second

// DefaultNamespaceLabel is the label that holds the namespace of a series if the rule names none.
const DefaultNamespaceLabel = "namespace"

// Rule is one rule.
type Rule struct {
	// Name is the metric's name in HPAs and in RBAC, as a resource of external.metrics.k8s.io.
	Name string
	Help string
	// Query is the query as written in the file.
	Query string
	// NamespaceLabel is the label that must equal the caller's namespace. It is empty for a rule
	// that is not namespaced.
	NamespaceLabel string
	// SelectorMetrics are the metrics of the query to which the caller's selector applies. If it is
	// empty, the selector applies to all.
	SelectorMetrics []string
	// Window is the longest range in the query, or 0 if it has none.
	Window time.Duration
	// Line is the line where the rule begins.
	Line int
}

// Metric returns the rule with that name, or nil.
func (r *Rules) Metric(name string) *Rule { return r.byName[name] }

// queryParser parses queries without experimental features, because the server may not have them.
// One of them, info(), would read metrics that the query does not name.
var queryParser = parser.NewParser(parser.Options{})
