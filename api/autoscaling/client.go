package autoscaling

import (
	"context"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
)

// Client reads the API of one weir.
type Client struct{ weir *weirdev.Client }

// NewClient returns a client that asks weir.
func NewClient(weir *weirdev.Client) *Client { return &Client{weir} }

// Explain asks for the last decision about an autoscaler of a kind
// (HorizontalPodAutoscaler, Autoscaler). What the server itself says is wrong is a
// *wire.Problem, here and below.
func (c *Client) Explain(ctx context.Context, kind, namespace, name string) (*decisionreport.Report, error) {
	r := Request{Namespace: namespace, Kind: kind, Name: name}
	path, query := r.target()
	var answer Report
	if err := c.weir.Get(ctx, r.String(), path, query, &answer); err != nil {
		return nil, err
	}
	return &answer.Report, nil
}

// Evaluation is what is to be evaluated.
type Evaluation struct {
	Namespace string
	Manifest  []byte // YAML or JSON
	// At is an earlier time: RFC 3339, or how long before the server's present
	// ("5m"); now if empty.
	At       string
	Replicas *int32 // assumed in place of the target's; nil for that
}

// Evaluate asks what a manifest would do.
func (c *Client) Evaluate(ctx context.Context, e Evaluation) (*decisionreport.Report, error) {
	r := Request{Namespace: e.Namespace, Evaluate: true, Replicas: e.Replicas}
	path, query := r.target()
	if e.At != "" {
		query.Set("at", e.At)
	}
	var answer Report
	if err := c.weir.Post(ctx, r.String(), path, query, e.Manifest, &answer); err != nil {
		return nil, err
	}
	return &answer.Report, nil
}
