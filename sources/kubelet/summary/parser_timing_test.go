package summary_test

import (
	"testing"

	"github.com/weir-metrics/weir/sources/kubelet/summary"
	"github.com/weir-metrics/weir/test/payloadtest"
)

func BenchmarkParse(b *testing.B) {
	payloadtest.Benchmark(b, summary.New(), payloadtest.Capture(b, "01-steady/00/summary.json"))
}
