package host

import (
	"context"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/problems"
)

// readError returns what went wrong as a *metric.ReadError; nil if nothing did.
func readError(ctx context.Context, p *problems.List) error {
	err := p.Err()
	if err == nil {
		return nil
	}
	reason := metric.NodeScrapeError
	if ctx.Err() != nil {
		reason = metric.NodeTimeout
	}
	return &metric.ReadError{Reason: reason, Err: err}
}
