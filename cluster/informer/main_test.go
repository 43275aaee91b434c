package informer

import (
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

func TestMain(m *testing.M) {
	// One of the default handlers spaces errors by a clock it has read before
	// the tests begin, which would sleep for decades of a test bubble's time.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}
