package docs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/test/docs"
)

func TestEvictionLatencyIsUpToDate(t *testing.T) {
	page, runs := read(t, "../../docs/eviction-rules.md"), read(t, "../../"+docs.LatencyRuns)
	want, err := docs.EvictionLatency(page, runs)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("docs/eviction-rules.md lags behind %s; run make generate (-want +got):\n%s", docs.LatencyRuns, diff)
	}
	if _, err := docs.EvictionLatency("no marks", runs); err == nil {
		t.Error("a page without marks gives no error")
	}
}
