package enrich_test

import (
	"testing"

	"github.com/weir-metrics/weir/internal/script"
	"github.com/weir-metrics/weir/internal/transcript"
	"github.com/weir-metrics/weir/processors/enrich"
)

func TestTranscripts(t *testing.T) {
	script.Run(t, "testdata", func() []transcript.Processor {
		return []transcript.Processor{enrich.New(enrich.Options{})}
	})
}
