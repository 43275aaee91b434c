package resource_test

import (
	"testing"

	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/test/payloadtest"
)

func BenchmarkParse(b *testing.B) {
	payloadtest.Benchmark(b, resource.New(), payloadtest.Capture(b, "01-steady/00/resource.prom"))
}
