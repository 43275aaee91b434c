package model

import (
	"net/http"

	"github.com/weir-metrics/weir/api/rights"
)

// Rights returns the rights that the caller of r needs. A path that is not understood needs all
// rights, so that a mistake here refuses and reveals nothing.
func Rights(r *http.Request) []rights.Right {
	t, _ := parsePath(r.URL.EscapedPath())
	switch t.shows {
	case nothing:
		return nil
	case nodes:
		return []rights.Right{rights.ListNodes()}
	case oneNamespace:
		return []rights.Right{rights.ListPods(string(t.entity.Namespace))}
	}
	return rights.Everything()
}
