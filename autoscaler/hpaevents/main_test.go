package hpaevents

import (
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

func TestMain(m *testing.M) {
	// One of the default error handlers limits the rate of errors by a clock that it read before the
	// tests begin. In a test bubble it would sleep for decades.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}
