// Package rules is the file that says which external metrics there are: its
// format, its mistakes, and how a rule becomes the query for one caller.
//
//	prometheus:
//	  url: http://prometheus.monitoring:9090
//	  timeout: 10s                    # of one query; 10s if left out
//	  caFile: /etc/weir/prometheus-ca.crt
//	  bearerTokenFile: /var/run/secrets/prometheus/token
//	  basicAuth:                      # in place of a token
//	    username: weir
//	    passwordFile: /etc/weir/prometheus-password
//	  headers:
//	    X-Scope-OrgID: shop
//	metrics:
//	  - name: queue_depth
//	    help: Jobs that wait.
//	    query: sum by (queue) (queue_depth)
//	    namespaced: true              # the default
//	    namespaceLabel: namespace     # the default
//	    selectorMetrics: [queue_depth]
//
// # A query is PromQL, not a template
//
// A rule's query is written as for the whole cluster, and can be pasted into
// Prometheus as it stands. weir narrows it for a caller by adding label matchers
// to the metrics it names:
//
//   - of a namespaced rule, the caller's namespace as the label namespaceLabel, to
//     every metric in the query, so that nobody reads another's numbers;
//   - what the HPA's metric selector requires, to every metric in the query or
//     only to those in selectorMetrics.
//
// Matchers are added to the parsed query, which is then written out again; no
// text of the caller's is ever pasted into a query.
//
// # Mistakes
//
// Parse finds all mistakes of a file at once, each with its line and column and
// what to do about it.
package rules
