package usage

import (
	"context"
	"fmt"

	"github.com/weir-metrics/weir/api/weirdev"
)

// Client reads the API of one weir.
type Client struct{ weir *weirdev.Client }

// NewClient returns a client that asks weir.
func NewClient(weir *weirdev.Client) *Client { return &Client{weir} }

// List asks for a list. What the server itself says is wrong is a *weirdev.Problem. One
// namespace is asked for by its own path, so that the right to that namespace is
// enough.
func (c *Client) List(ctx context.Context, r Resource, q Query) (*List, error) {
	path := []string{string(r)}
	if r.Namespaced() && isNamespaceName(q.Namespace) {
		path = []string{"namespaces", q.Namespace, string(r)}
		q.Namespace = ""
	}
	var list List
	if err := c.weir.Get(ctx, string(r), path, q.Values(), &list); err != nil {
		return nil, err
	}
	if list.Resource != r {
		return nil, fmt.Errorf("read %s: the answer is not from weir", r)
	}
	return &list, nil
}
