package reportbuilder

import (
	"os"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/eviction"
)

// TestDocumentation checks that the README and docs/eviction.md show what the program prints, and
// that the tables in docs/eviction-rules.md have every signal with its node condition.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/eviction.md")
	if err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile("testdata/docs.txt")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```console\n")[1:]
	if len(blocks) != 2 {
		t.Errorf("got %d examples, want 2", len(blocks))
	}
	for _, b := range blocks {
		shown, _, _ := strings.Cut(b, "```")
		if _, rest, ok := strings.Cut(shown, "--node n1\n"); ok {
			shown = rest
		}
		if !strings.Contains(string(said), shown) {
			t.Errorf("the page shows what testdata/docs.txt does not have:\n%s", shown)
		}
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	captured, err := os.ReadFile("testdata/capture.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(readme), "$ kubectl weir explain eviction --node n1\n")
	if shown, _, ok := strings.Cut(shown, "...\n"); !ok || !strings.Contains(string(captured), shown) {
		t.Errorf("the README shows what testdata/capture.txt does not have:\n%s", shown)
	}
	rules, err := os.ReadFile("../../docs/eviction-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	signals := append(append(eviction.Signals(), eviction.OwnSignals()...), "memory.pressure.some.avg10", "cpu.pressure.\u2026", "io.pressure.\u2026")
	for _, s := range signals {
		condition := string(eviction.Signal(strings.Replace(string(s), "\u2026", "some.avg10", 1)).Condition())
		found := false
		for line := range strings.Lines(string(rules)) {
			found = found || strings.HasPrefix(line, "| `"+string(s)+"`") && strings.Contains(line, "| "+condition)
		}
		if !found {
			t.Errorf("no row has %s with %s", s, condition)
		}
	}
}
