package docs_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/test/docs"
)

func TestMetricsPageIsUpToDate(t *testing.T) {
	got, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(docs.Metrics(), string(got)); diff != "" {
		t.Errorf("docs/metrics.md lags behind the catalogue; run make generate (-want +got):\n%s", diff)
	}
}
