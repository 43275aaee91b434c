package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-metrics/weir/metric"
)

// problems are what went wrong in one read. Beyond the first few they are only
// counted: on a machine where one thing is wrong it is wrong with every cgroup.
type problems struct {
	errs []error
	more int
}

const mostProblems = 10

func (p *problems) add(errs ...error) {
	for _, err := range errs {
		switch {
		case err == nil:
		case len(p.errs) < mostProblems:
			p.errs = append(p.errs, err)
		default:
			p.more++
		}
	}
}

// readError returns them as one *metric.ReadError; nil if there are none.
func (p *problems) readError(ctx context.Context) error {
	if len(p.errs) == 0 {
		return nil
	}
	reason := metric.NodeScrapeError
	if ctx.Err() != nil {
		reason = metric.NodeTimeout
	}
	errs := p.errs
	if p.more > 0 {
		errs = append(errs[:len(errs):len(errs)], fmt.Errorf("and %d more", p.more))
	}
	return &metric.ReadError{Reason: reason, Err: errors.Join(errs...)}
}
