package eventsapi

import (
	"net/http"

	"github.com/weir-metrics/weir/api/rights"
)

// Rights returns the rights that the caller of r needs.
func Rights(r *http.Request) []rights.Right {
	o, err := parse(r)
	if err != nil {
		return rights.Everything()
	}
	return []rights.Right{rights.ListEvents(o.Namespace)}
}
