package resource_test

import (
	"testing"

	"github.com/weir-metrics/weir/sources/kubelet/payload/payloadtest"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
)

func TestLayoutStaysWhileEntitiesDo(t *testing.T) {
	payloadtest.Layouts(t, resource.New(), "resource.prom")
}
