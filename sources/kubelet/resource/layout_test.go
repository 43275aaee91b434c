package resource_test

import (
	"testing"

	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/test/payloadtest"
)

func TestLayoutStaysWhileEntitiesDo(t *testing.T) {
	payloadtest.Layouts(t, resource.New(), "resource.prom")
}
