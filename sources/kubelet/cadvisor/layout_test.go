package cadvisor_test

import (
	"testing"

	"github.com/weir-metrics/weir/sources/kubelet/cadvisor"
	"github.com/weir-metrics/weir/test/payloadtest"
)

func TestLayoutStaysWhileEntitiesDo(t *testing.T) {
	payloadtest.Layouts(t, cadvisor.New(), "cadvisor.prom")
}
