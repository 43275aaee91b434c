package guard

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-metrics/weir/test/memoryload"
)

func TestMain(m *testing.M) {
	memoryload.Child()
	goleak.VerifyTestMain(m)
}
