package kubeletapi

import (
	"net/http"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/metric"
)

// RightsOf returns the rights that the caller of a path needs, as at the node's kubelet.
func RightsOf(node metric.NodeName) func(*http.Request) []rights.Right {
	return func(r *http.Request) []rights.Right {
		if r.URL.Path == SummaryPath {
			return []rights.Right{rights.GetNodeStats(string(node))}
		}
		return []rights.Right{rights.GetNodeMetrics(string(node))}
	}
}
