// Command generate writes the generated pages of the documentation, and the
// generated lines of other pages. Run it in the root of the repository: go run
// ./test/docs/generate.
package main

import (
	"fmt"
	"os"

	"github.com/weir-metrics/weir/test/docs"
	"github.com/weir-metrics/weir/test/faults"
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
	results, err := os.ReadFile("test/faults/" + faults.ResultsFile)
	if err != nil {
		return fmt.Errorf("read the results of test/faults: %w", err)
	}
	reliability, err := faults.Page(results)
	if err != nil {
		return err
	}
	if err := os.WriteFile("docs/reliability.md", []byte(reliability), 0o644); err != nil {
		return fmt.Errorf("write the page on reliability: %w", err)
	}
	runs, err := os.ReadFile(docs.LatencyRuns)
	if err != nil {
		return fmt.Errorf("read the runs of TestLatency: %w", err)
	}
	latency := func(page string) (string, error) { return docs.EvictionLatency(page, string(runs)) }
	for _, derived := range []struct {
		file   string
		derive func(page string) (string, error)
	}{{"docs/reasons.md", docs.Reasons}, {"docs/agent-as-kubelet.md", docs.KubeletDifferences}, {"docs/eviction-rules.md", latency}} {
		page, err := os.ReadFile(derived.file)
		if err != nil {
			return fmt.Errorf("read %s: %w", derived.file, err)
		}
		now, err := derived.derive(string(page))
		if err != nil {
			return fmt.Errorf("derive %s: %w", derived.file, err)
		}
		if err := os.WriteFile(derived.file, []byte(now), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", derived.file, err)
		}
	}
	return nil
}
