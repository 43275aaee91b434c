package usage

import (
	"context"

	"github.com/weir-metrics/weir/api/weirdev"
)

// Client reads the API of one weir.
type Client struct{ Weir *weirdev.Client }

// List requests a list. An error that the server itself reports is a *weirdev.Problem. If q names
// one namespace, the path is that of the namespace, so that the right to that namespace is enough.
func (c *Client) List(ctx context.Context, r Resource, q Query) (*List, error) {
	path := []string{string(r)}
	if r.Namespaced() && isNamespaceName(q.Namespace) {
		path = []string{"namespaces", q.Namespace, string(r)}
		q.Namespace = ""
	}
	return weirdev.Get[List](ctx, c.Weir, string(r), path, q.Values(), r.Kind()+"List")
}
