package autoscaling

import (
	"context"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
)

// Client reads the API of one weir.
type Client struct{ Weir *weirdev.Client }

// Autoscaler requests the last decision about an autoscaler of a kind (HorizontalPodAutoscaler,
// Autoscaler). An error that the server reports is a *weirdev.Problem, here and in Evaluate.
func (c *Client) Autoscaler(ctx context.Context, kind, namespace, name string) (*decisionreport.DecisionReport, error) {
	r := Request{Namespace: namespace, Kind: kind, Name: name}
	path, query := r.pathAndQuery()
	return weirdev.Get[decisionreport.DecisionReport](ctx, c.Weir, r.String(), path, query, ExplanationKind)
}

// Evaluation describes what to evaluate.
type Evaluation struct {
	Namespace string
	Manifest  []byte // YAML or JSON
	// At is an earlier time: RFC 3339, or how long ago ("5m"). If it is empty, the time is now.
	At       string
	Replicas *int32 // assumed instead of the target's count; nil for the target's count
}

// Evaluate requests what a manifest would do.
func (c *Client) Evaluate(ctx context.Context, e Evaluation) (*decisionreport.DecisionReport, error) {
	r := Request{Namespace: e.Namespace, Evaluate: true, Replicas: e.Replicas}
	path, query := r.pathAndQuery()
	if e.At != "" {
		query.Set("at", e.At)
	}
	return weirdev.Post[decisionreport.DecisionReport](ctx, c.Weir, r.String(), path, query, e.Manifest, EvaluationKind)
}
