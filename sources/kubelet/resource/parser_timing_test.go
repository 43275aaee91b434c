package resource_test

import (
	"testing"

	"github.com/weir-metrics/weir/sources/kubelet/payload/payloadtest"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
)

func BenchmarkParse(b *testing.B) {
	payloadtest.Benchmark(b, resource.New(), payloadtest.Capture(b, "01-steady/00/resource.prom"))
}
