package resizeapi

import (
	"net/http"

	"github.com/weir-metrics/weir/api/rights"
)

// Rights returns the rights that the caller of r needs: to read the usage that recommendations are
// based on.
func Rights(r *http.Request) []rights.Right {
	request, err := ParseRequest(r)
	switch {
	case err != nil:
		return rights.Everything()
	case request.Pod != "":
		return []rights.Right{rights.GetPod(request.Namespace, request.Pod)}
	}
	return []rights.Right{rights.ListPods(request.Namespace)}
}
