// Command generate writes the generated pages of the documentation, and the
// generated lines of other pages. Run it in the root of the repository: go run
// ./test/docs/generate.
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
