package faults

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/test/cmptest"
)

// TestPageIsUpToDate compares docs/reliability.md with the table and the results.
func TestPageIsUpToDate(t *testing.T) {
	want, err := Page([]byte(read(t, ResultsFile)))
	if err != nil {
		t.Fatal(err)
	}
	cmptest.Equal(t, "docs/reliability.md lags behind; run make generate", want, read(t, "../../docs/reliability.md"))
	if _, err := Page([]byte("{}")); err == nil {
		t.Error("missing results give no error")
	}
	if _, err := Page([]byte(strings.Replace(read(t, ResultsFile), "{", `{"Nobody": {},`, 1))); err == nil {
		t.Error("a result without a row gives no error")
	}
}

// TestEveryTestExists checks that the table names only existing tests.
func TestEveryTestExists(t *testing.T) {
	for _, r := range Rows {
		name, _, _ := strings.Cut(r.Test, "/")
		exists(t, "test/faults", "Test"+name)
	}
	words := regexp.MustCompile("`([^`]+)`|(Test\\w+)")
	for _, e := range Elsewhere {
		place := ""
		for _, word := range words.FindAllStringSubmatch(e.Test, -1) {
			if word[1] != "" {
				place = word[1]
			} else {
				exists(t, place, word[2])
			}
		}
	}
}

func exists(t *testing.T, folder, test string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.Contains(read(t, file), "\nfunc "+test+"(t *testing.T)") {
			return
		}
	}
	t.Errorf("%s has no %s", folder, test)
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
