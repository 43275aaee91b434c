package kubelet

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(costServer) != "" {
		serveCost()
		return
	}
	goleak.VerifyTestMain(m)
}
