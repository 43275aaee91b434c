package app

import (
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/processors/aggregate"
	"github.com/weir-metrics/weir/processors/enrich"
	"github.com/weir-metrics/weir/processors/identity"
	"github.com/weir-metrics/weir/processors/rate"
)

// pipeline returns the steps each batch of a source goes through, in order:
// which samples are the truth, what they make as rates, what was asked for
// beside them, and what they add up to.
func pipeline(manager.Spec) []manager.Processor {
	return []manager.Processor{
		identity.New(identity.Options{}),
		rate.New(rate.Options{}),
		enrich.New(enrich.Options{}),
		aggregate.New(aggregate.Options{}),
	}
}
