package nodeapi

import (
	"context"
	"encoding/json"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/eviction/evictionreport/document"
)

// Client reads the API of one weir.
type Client struct{ weir *weirdev.Client }

// NewClient returns a client that asks weir.
func NewClient(weir *weirdev.Client) *Client { return &Client{weir} }

// Eviction asks how a node stands. What the server itself says is wrong is a
// *wire.Problem, here and below.
func (c *Client) Eviction(ctx context.Context, node string) (*document.Report, error) {
	var answer Report
	if err := c.get(ctx, Request{node, Eviction}, &answer); err != nil {
		return nil, err
	}
	return &answer.Report, nil
}

// PodCgroups asks what the pod cgroups of a node hold.
func (c *Client) PodCgroups(ctx context.Context, node string) (json.RawMessage, error) {
	var answer json.RawMessage
	return answer, c.get(ctx, Request{node, PodCgroups}, &answer)
}

func (c *Client) get(ctx context.Context, r Request, answer any) error {
	return c.weir.Get(ctx, r.String(), r.path(), nil, answer)
}
