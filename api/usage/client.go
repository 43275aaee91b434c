package usage

import (
	"context"
	"fmt"
	"net/http"

	"github.com/weir-metrics/weir/api/wire"
)

// Client reads the API of one weir.
type Client struct{ weir *wire.Client }

// NewClient returns a client of the weir whose root lies at base, which may
// have a path (a proxy's). A nil client means http.DefaultClient.
func NewClient(base string, client *http.Client) (*Client, error) {
	weir, err := wire.NewClient(base, client)
	if err != nil {
		return nil, err
	}
	return &Client{weir}, nil
}

// Server returns the address the client asks.
func (c *Client) Server() string { return c.weir.Server() }

// List asks for a list. What the server itself says is wrong is a *wire.Problem. One
// namespace is asked for by its own path, so that the right to that namespace is
// enough.
func (c *Client) List(ctx context.Context, r Resource, q Query) (*List, error) {
	path := []string{string(r)}
	if r.Namespaced() && isLabel(q.Namespace) {
		path = []string{"namespaces", q.Namespace, string(r)}
		q.Namespace = ""
	}
	var list List
	if err := c.weir.Get(ctx, string(r), path, q.Values(), &list); err != nil {
		return nil, err
	}
	if list.Resource != r {
		return nil, fmt.Errorf("read %s: the answer is not weir's", r)
	}
	return &list, nil
}
