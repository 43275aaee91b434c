package cadvisor_test

import (
	"testing"

	"github.com/weir-metrics/weir/sources/kubelet/cadvisor"
	"github.com/weir-metrics/weir/test/payloadtest"
)

func TestUnchangedPayloadAllocatesNothing(t *testing.T) {
	payloadtest.NoAllocations(t, cadvisor.New(), payloadtest.Capture(t, "01-steady/00/cadvisor.prom"))
}
