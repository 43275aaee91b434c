package explainapi

import (
	"context"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// Client reads the API of one weir.
type Client struct{ weir *weirdev.Client }

// NewClient returns a client that asks weir.
func NewClient(weir *weirdev.Client) *Client { return &Client{weir} }

// Pod explains a pod. What the server itself says is wrong is a *wire.Problem, here and
// below.
func (c *Client) Pod(ctx context.Context, ref metric.PodRef) (*explain.Explanation, error) {
	return c.explain(ctx, Request{Namespace: ref.Namespace, Pod: ref.Name})
}

// Container explains a container of a pod.
func (c *Client) Container(ctx context.Context, ref metric.PodRef, name string) (*explain.Explanation, error) {
	return c.explain(ctx, Request{Namespace: ref.Namespace, Pod: ref.Name, Container: name})
}

// Node explains a node.
func (c *Client) Node(ctx context.Context, name metric.NodeName) (*explain.Explanation, error) {
	return c.explain(ctx, Request{Node: name})
}

// Missing reports what is missing in a namespace, or in the cluster if it is
// empty.
func (c *Client) Missing(ctx context.Context, namespace metric.Namespace) (*explain.MissingReport, error) {
	var r ReportDocument
	if err := c.get(ctx, Request{Missing: true, Namespace: namespace}, &r); err != nil {
		return nil, err
	}
	return &r.MissingReport, nil
}

func (c *Client) explain(ctx context.Context, r Request) (*explain.Explanation, error) {
	var e ExplanationDocument
	if err := c.get(ctx, r, &e); err != nil {
		return nil, err
	}
	return &e.Explanation, nil
}

// get asks for r and reads the answer into body.
func (c *Client) get(ctx context.Context, r Request, body any) error {
	path, query := r.target()
	return c.weir.Get(ctx, r.String(), path, query, body)
}
