package enrich_test

import (
	"testing"

	"github.com/weir-metrics/weir/processors/enrich"
	"github.com/weir-metrics/weir/test/transcript"
)

func TestTranscripts(t *testing.T) {
	transcript.Run(t, "testdata", func() []transcript.Processor {
		return []transcript.Processor{enrich.New()}
	})
}
