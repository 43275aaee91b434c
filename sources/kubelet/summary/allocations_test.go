package summary_test

import (
	"testing"

	"github.com/weir-metrics/weir/sources/kubelet/summary"
	"github.com/weir-metrics/weir/test/payloadtest"
)

func TestUnchangedPayloadAllocatesNothing(t *testing.T) {
	payloadtest.NoAllocations(t, summary.New(), payloadtest.Capture(t, "01-steady/00/summary.json"))
}
