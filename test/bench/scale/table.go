package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// point is what one number of nodes came to.
type point struct {
	Nodes     int           `json:"nodes"`
	Cores     float64       `json:"cores"`     // of CPU, weir's
	PerScrape float64       `json:"perScrape"` // µs of weir's CPU a read of a node
	Steady    int64         `json:"steady"`    // bytes resident: the most at any look in the window
	Peak      int64         `json:"peak"`      // bytes resident: the most since weir started
	Oldest    time.Duration `json:"oldest"`    // age of the oldest node's sample: the most at any look
	Ready     time.Duration `json:"ready"`     // from weir's start
	Reads     int64         `json:"reads"`     // in the window
	Missed    int64         `json:"missed"`    // reads that should have been in the window and were not, or failed
	SimCores  float64       `json:"simulatorCores"`
	SimMemory int64         `json:"simulatorMemory"` // bytes resident
}

const header = `| nodes | CPU (cores) | µs a node-scrape | RSS steady (MiB) | RSS peak (MiB) | oldest sample (s) | ready (s) | reads | missed | simulator (cores) | simulator (MiB) |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
`

func (p point) row() string {
	return fmt.Sprintf("| %d | %.3f | %.0f | %d | %d | %.1f | %.1f | %d | %d | %.3f | %d |\n",
		p.Nodes, p.Cores, p.PerScrape, p.Steady>>20, p.Peak>>20, p.Oldest.Seconds(), p.Ready.Seconds(), p.Reads, p.Missed, p.SimCores, p.SimMemory>>20)
}

// write writes the files that were asked for.
func write(p plan, all []point, f fits) error {
	if p.markdown != "" {
		var b strings.Builder
		b.WriteString(header)
		for _, one := range all {
			b.WriteString(one.row())
		}
		b.WriteString("\n" + f.String())
		if err := os.WriteFile(p.markdown, []byte(b.String()), 0o644); err != nil {
			return fmt.Errorf("write table: %w", err)
		}
	}
	if p.json == "" {
		return nil
	}
	document := struct {
		Points []point `json:"points"`
		Fits   *fits   `json:"fits,omitempty"`
	}{Points: all}
	if f.ok {
		document.Fits = &f
	}
	b, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return fmt.Errorf("encode figures: %w", err)
	}
	if err := os.WriteFile(p.json, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}
