package docs_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestReadme checks that README.md is short, leads to each page below docs, and shows of a replay what
// docs/replay.md shows.
func TestReadme(t *testing.T) {
	const root = "../.."
	readme := read(t, filepath.Join(root, "README.md"))
	if got := strings.Count(readme, "\n"); got > 130 {
		t.Errorf("README.md has %d lines, want at most 130: move details to a page below docs", got)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("got %d pages below docs, %v", len(pages), err)
	}
	linked := readme + read(t, filepath.Join(root, "docs", "agent.md")) + read(t, filepath.Join(root, "docs", "eviction.md"))
	for _, page := range pages {
		if name := filepath.Base(page); !strings.Contains(linked, name+")") {
			t.Errorf("README.md has no link to docs/%s", name)
		}
	}
	const command = "$ weir autoscaler replay -f new.yaml --against old.yaml --prometheus http://localhost:9090 --from 24h\n"
	_, shown, _ := strings.Cut(readme, command)
	shown, _, ok := strings.Cut(shown, "```")
	replay := read(t, filepath.Join(root, "docs", "replay.md"))
	for line := range strings.Lines(shown) {
		if !ok || line != "...\n" && !strings.Contains(replay, strings.TrimSuffix(line, "\n")) {
			t.Errorf("README.md shows of a replay what docs/replay.md does not: %q", line)
		}
	}
}
