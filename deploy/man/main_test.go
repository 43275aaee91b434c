package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPages checks that every command has a page with its flags and examples.
func TestPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	for page, want := range map[string]string{
		"weir.1": "weir-server(1)", "weir-server.1": "metric-resolution", "weir-top-pods.1": "--selector", "weir-explain-missing.1": "weir explain missing -n shop", "weir-doctor.1": "--exit-code",
	} {
		text, err := os.ReadFile(filepath.Join(dir, page))
		if err != nil {
			t.Error(err)
			continue
		}
		if plain := strings.ReplaceAll(string(text), `\-`, "-"); !strings.Contains(plain, want) {
			t.Errorf("%s does not have %q:\n%.2000s", page, want, plain)
		}
	}
}
