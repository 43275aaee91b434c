package docs_test

import (
	"testing"

	"github.com/weir-metrics/weir/test/pages"
)

// TestCommandsAreMarked checks that the marks of commands that test/local runs are well formed, and
// that they are not lost.
func TestCommandsAreMarked(t *testing.T) {
	all, err := pages.All("../..")
	if err != nil {
		t.Fatal(err)
	}
	const least = 12
	if len(all) < least {
		t.Errorf("%d pages have commands that a test runs, want %d at least", len(all), least)
	}
}
