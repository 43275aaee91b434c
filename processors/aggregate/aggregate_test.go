package aggregate_test

import (
	"testing"

	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/processors/aggregate"
	"github.com/weir-metrics/weir/processors/enrich"
	"github.com/weir-metrics/weir/test/transcript"
)

// TestRules runs aggregate on samples as rate leaves them.
func TestRules(t *testing.T) {
	transcript.Run(t, "testdata/rules", func() []transcript.Processor {
		return []transcript.Processor{aggregate.New()}
	})
}

// TestRatios runs enrich and aggregate together.
func TestRatios(t *testing.T) {
	transcript.Run(t, "testdata/ratios", func() []transcript.Processor {
		return []transcript.Processor{enrich.New(), aggregate.New()}
	})
}

// TestPipeline runs the four steps together on counters.
func TestPipeline(t *testing.T) {
	transcript.Run(t, "testdata/pipeline", func() []transcript.Processor {
		return []transcript.Processor{processors.New(processors.Options{})}
	})
}
