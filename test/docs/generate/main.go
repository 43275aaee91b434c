// Command generate writes the derived pages of documentation, and the derived
// lines of those written by hand. Run it from the repository's root:
// go run ./test/docs/generate.
package main

import (
	"fmt"
	"os"

	"github.com/weir-metrics/weir/test/docs"
)

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate() error {
	if err := os.WriteFile("docs/metrics.md", []byte(docs.Metrics()), 0o644); err != nil {
		return fmt.Errorf("write the metrics: %w", err)
	}
	const file = "docs/reasons.md"
	page, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the reasons: %w", err)
	}
	reasons, err := docs.Reasons(string(page))
	if err != nil {
		return fmt.Errorf("derive %s: %w", file, err)
	}
	if err := os.WriteFile(file, []byte(reasons), 0o644); err != nil {
		return fmt.Errorf("write the reasons: %w", err)
	}
	return nil
}
