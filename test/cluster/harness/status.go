//go:build linux

package harness

import (
	"context"
)

// Status is the state of one process of a cluster.
type Status struct {
	Process
	// Problem says what is wrong, in a few words. It is empty if the process is
	// healthy.
	Problem string `json:"problem,omitempty"`
}

// Status checks every process of the cluster, in the order in which they were
// started.
func (c *Cluster) Status(ctx context.Context) []Status {
	client := prober()
	c.mu.Lock()
	processes := append([]Process(nil), c.state.Processes...)
	booted := c.state.Boot == bootID()
	c.mu.Unlock()
	var all []Status
	for _, p := range processes {
		s := Status{Process: p}
		if !booted || !p.Alive() {
			s.Problem = "not running"
		} else if p.Health != "" {
			if err := healthy(ctx, client, p.Health); err != nil {
				s.Problem = err.Error()
			}
		}
		all = append(all, s)
	}
	return all
}
