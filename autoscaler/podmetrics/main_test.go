package podmetrics_test

import (
	"testing"

	"github.com/weir-metrics/weir/test/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }
