package identity_test

import (
	"testing"

	"github.com/weir-metrics/weir/internal/transcript"
	"github.com/weir-metrics/weir/processors/identity"
	"github.com/weir-metrics/weir/processors/rate"
)

// Rates run behind identity in every transcript: what identity chose shows best
// in the numbers.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, "testdata", func() []transcript.Processor {
		return []transcript.Processor{identity.New(identity.Options{}), rate.New(rate.Options{})}
	})
}
