package cadvisor_test

import (
	"testing"

	"github.com/weir-metrics/weir/sources/kubelet/cadvisor"
	"github.com/weir-metrics/weir/test/payloadtest"
)

func BenchmarkParse(b *testing.B) {
	payloadtest.Benchmark(b, cadvisor.New(), payloadtest.Capture(b, "01-steady/00/cadvisor.prom"))
}
