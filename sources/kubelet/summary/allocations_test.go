package summary_test

import (
	"testing"

	"github.com/weir-metrics/weir/sources/kubelet/payload/payloadtest"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
)

func TestUnchangedPayloadAllocatesNothing(t *testing.T) {
	payloadtest.NoAllocations(t, summary.New(), payloadtest.Capture(t, "01-steady/00/summary.json"))
}
