package usage

import (
	"net/http"

	"github.com/weir-metrics/weir/api/rights"
)

// Rights returns the rights that the caller of r needs.
func Rights(r *http.Request) []rights.Right {
	request, err := ParseRequest(r)
	switch {
	case err != nil:
		return rights.Everything()
	case request.Resource == Nodes:
		return []rights.Right{rights.ListNodes()}
	case request.Everywhere:
		return rights.Everything()
	}
	return []rights.Right{rights.ListPods(request.Query.Namespace)}
}
