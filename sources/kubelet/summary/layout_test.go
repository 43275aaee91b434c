package summary_test

import (
	"testing"

	"github.com/weir-metrics/weir/sources/kubelet/summary"
	"github.com/weir-metrics/weir/test/payloadtest"
)

func TestLayoutStaysWhileEntitiesDo(t *testing.T) {
	payloadtest.Layouts(t, summary.New(), "summary.json")
}
