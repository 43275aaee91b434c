package notify_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childEnv makes the test binary a child that uses up what a test watches.
const childEnv = "WEIR_NOTIFY_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}
