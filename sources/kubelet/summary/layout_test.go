package summary_test

import (
	"testing"

	"github.com/weir-metrics/weir/sources/kubelet/payload/payloadtest"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
)

func TestLayoutStaysWhileEntitiesDo(t *testing.T) {
	payloadtest.Layouts(t, summary.New(), "summary.json")
}
