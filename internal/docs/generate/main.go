// Command generate writes the derived pages of documentation. Run it from the
// repository's root: go run ./internal/docs/generate.
package main

import (
	"fmt"
	"os"

	"github.com/weir-metrics/weir/internal/docs"
)

func main() {
	if err := os.WriteFile("docs/metrics.md", []byte(docs.Metrics()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
