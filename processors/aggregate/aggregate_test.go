package aggregate_test

import (
	"testing"

	"github.com/weir-metrics/weir/processors/aggregate"
	"github.com/weir-metrics/weir/processors/aggregate/script"
)

func TestTranscripts(t *testing.T) {
	script.Run(t, "testdata", func() []script.Processor {
		return []script.Processor{aggregate.New(aggregate.Options{})}
	})
}
