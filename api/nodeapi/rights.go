package nodeapi

import (
	"net/http"

	"github.com/weir-metrics/weir/api/rights"
)

// Rights returns the rights that the caller of r needs. The subresources have their own rights,
// because the answer names every pod of the node.
func Rights(r *http.Request) []rights.Right {
	request, err := ParseRequest(r)
	if err != nil {
		return rights.Everything()
	}
	return []rights.Right{rights.GetOwnNode(request.Node, request.Subresource)}
}
