package zz

import (
	"os"
	"testing"

	"github.com/weir-metrics/weir/internal/transcript"
	"github.com/weir-metrics/weir/processors/identity"
	"github.com/weir-metrics/weir/processors/rate"
)

func TestTranscripts(t *testing.T) {
	transcript.Run(t, os.Getenv("TR"), func() []transcript.Processor {
		return []transcript.Processor{identity.New(identity.Options{}), rate.New(rate.Options{})}
	})
}
