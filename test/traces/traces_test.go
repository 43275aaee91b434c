package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/resize-evaluation.md has the text of resize-evaluation.txt.
func TestPageHasTheText(t *testing.T) {
	written, err := os.ReadFile(filepath.FromSlash("../../docs/resize-evaluation.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(page) {
		if !strings.Contains(line, "{{") && !strings.Contains(string(written), line) {
			t.Errorf("docs/resize-evaluation.md does not have %q: run make resize-evaluation TRACES=DIR", line)
		}
	}
	for i := range sources {
		if !strings.Contains(string(written), sources[i].commit[:12]) {
			t.Errorf("docs/resize-evaluation.md was written with another commit of %s than %s", sources[i].repository, sources[i].commit)
		}
	}
}

// The units of a trace become cores and bytes, and lines without order are sorted.
func TestConvertBitbrains(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, filepath.FromSlash("opendc-trace/opendc-trace-api/src/test/resources/bitbrains/bitbrains.csv"))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "Timestamp [ms];\tCPU cores;\tCPU capacity\n20;\t1;\t2600;\t1300;\t50;\t2048;\t1024\n10;\t1;\t2600;\t260;\t10;\t2048;\t512\n"
	if err := os.WriteFile(name, []byte(strings.Replace(text, "CPU capacity", "a;\tb;\tc;\td;\te", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := convertBitbrains(folder)
	if err != nil {
		t.Fatal(err)
	}
	for metric, want := range map[string][2]float64{"cpu": {0.1, 0.5}, "cpu_request": {1, 1}, "memory": {512 << 10, 1024 << 10}, "memory_request": {2 << 20, 2 << 20}} {
		s := list[0].Metrics[metric]
		if len(s) != 2 || s[0].At.Unix() != 10 || s[1].At.Unix() != 20 || s[0].Value != want[0] || s[1].Value != want[1] {
			t.Errorf("%s: got %v, want %v at 10 s and 20 s", metric, s, want)
		}
	}
}
