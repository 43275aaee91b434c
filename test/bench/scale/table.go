//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// point has the measurements for one number of nodes.
type point struct {
	Nodes     int           `json:"nodes"`
	Cores     float64       `json:"cores"`     // CPU of weir
	PerScrape float64       `json:"perScrape"` // µs of weir's CPU for a read of a node
	Steady    int64         `json:"steady"`    // resident bytes: the largest reading in the window
	Peak      int64         `json:"peak"`      // resident bytes: the maximum since weir's start
	Files     int           `json:"files"`     // of weir at the end of the window; nearly all are connections
	Oldest    time.Duration `json:"oldest"`    // age of the oldest served node sample at the end of the window
	Ready     time.Duration `json:"ready"`     // from weir's start
	Reads     int64         `json:"reads"`     // in the window
	Missed    int64         `json:"missed"`    // reads that failed, or that should have started in the window and did not
	SimCores  float64       `json:"simulatorCores"`
	SimMemory int64         `json:"simulatorMemory"` // bytes resident
	Took      time.Duration `json:"took"`            // the whole measurement, from the simulator's start
}

const header = `| nodes | CPU (cores) | µs a node-scrape | RSS steady (MiB) | RSS peak (MiB) | open files | oldest sample (s) | ready (s) | reads | missed | simulator (cores) | simulator (MiB) | took (s) |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
`

func (p point) row() string {
	return fmt.Sprintf("| %d | %.3f | %.0f | %d | %d | %d | %.1f | %.1f | %d | %d | %.3f | %d | %.0f |\n",
		p.Nodes, p.Cores, p.PerScrape, p.Steady>>20, p.Peak>>20, p.Files, p.Oldest.Seconds(), p.Ready.Seconds(), p.Reads, p.Missed, p.SimCores, p.SimMemory>>20, p.Took.Seconds())
}

// write writes the files that the flags name.
func (p plan) write() error {
	if p.markdown != "" {
		var all []string
		for i := range p.curves {
			all = append(all, p.curves[i].text(p))
		}
		if err := os.WriteFile(p.markdown, []byte(strings.Join(all, "\n")), 0o644); err != nil {
			return fmt.Errorf("write tables: %w", err)
		}
	}
	if p.json == "" {
		return nil
	}
	b, err := json.MarshalIndent(struct {
		Curves []curve `json:"curves"`
	}{p.curves}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode figures: %w", err)
	}
	if err := os.WriteFile(p.json, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}
