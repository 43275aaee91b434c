package resource_test

import (
	"testing"

	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/test/payloadtest"
)

func TestUnchangedPayloadAllocatesNothing(t *testing.T) {
	payloadtest.NoAllocations(t, resource.New(), payloadtest.Capture(t, "01-steady/00/resource.prom"))
}
