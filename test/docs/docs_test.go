package docs_test

import (
	"os"
	"regexp"
	"slices"
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

// TestDependenciesAreJustified compares the table of docs/dependencies.md with the modules that go.mod
// requires directly.
func TestDependenciesAreJustified(t *testing.T) {
	find := func(file, pattern string) []string {
		b, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(b, -1) {
			found = append(found, string(m[1]))
		}
		slices.Sort(found)
		return found
	}
	required := find("go.mod", `(?m)^\t([^ ]+) v[^ ]+$`)
	listed := find("docs/dependencies.md", "`([a-zA-Z0-9.]+\\.[a-z]+/[^`]+)`")
	if diff := cmp.Diff(required, listed); diff != "" || len(required) == 0 {
		t.Errorf("modules of go.mod (-) and of docs/dependencies.md (+):\n%s", diff)
	}
}
