package ui

import (
	"net/http"

	"github.com/weir-metrics/weir/api/rights"
)

// Rights returns the rights that a request needs. They are those of the APIs that serve the same
// numbers. An invalid request needs none: its answer has no numbers.
func Rights(r *http.Request) []rights.Right {
	q, err := parse(r.URL)
	namespace := string(q.pod.Namespace)
	switch {
	case err != nil:
		return nil
	case q.view == oneEviction:
		return append(rights.Everything(), rights.GetOwnNode(string(q.node), "eviction"))
	case q.view == oneEvents:
		return []rights.Right{rights.ListEvents(q.events.Namespace)}
	case q.view == oneAutoscaler:
		return rights.GetAutoscaler(q.autoscalerKind, namespace, string(q.pod.Name))
	case namespace != "":
		return []rights.Right{rights.ListPods(namespace)}
	}
	return rights.Everything()
}
