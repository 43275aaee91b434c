package notify_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-metrics/weir/internal/hog"
)

func TestMain(m *testing.M) {
	hog.Child()
	goleak.VerifyTestMain(m)
}
