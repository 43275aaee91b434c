package explainapi

import (
	"net/http"

	"github.com/weir-metrics/weir/api/rights"
)

// Rights returns the rights that the caller of r needs.
func Rights(r *http.Request) []rights.Right {
	request, err := ParseRequest(r)
	switch {
	case err != nil, request.Missing && request.Namespace == "":
		return rights.Everything()
	case request.Missing:
		return []rights.Right{rights.ListPods(string(request.Namespace))}
	case request.Node != "":
		return []rights.Right{rights.GetNode(string(request.Node))}
	}
	return []rights.Right{rights.GetPod(string(request.Namespace), string(request.Pod))}
}
