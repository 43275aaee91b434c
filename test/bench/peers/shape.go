//go:build linux

package main

import (
	"fmt"
	"time"

	"github.com/weir-metrics/weir/test/simulator"
)

// Shape is the cluster that is measured. The fleet of simulated kubelets is a
// pure function of it, so the process that serves the kubelets and the one that
// judges the answers have the same fleet.
type Shape struct {
	Nodes        int  `json:"nodes"`
	Pods         int  `json:"pods"`
	Containers   int  `json:"containers"`
	Housekeeping bool `json:"housekeeping,omitempty"`
	// Start is the start of the fleet.
	Start time.Time `json:"start,omitzero"`
	// Churn is for how long pods are replaced and containers restarted. It begins
	// Quiet after Start. It is 0 for a cluster without changes.
	Quiet time.Duration `json:"quiet,omitempty"`
	Churn time.Duration `json:"churn,omitempty"`
}

// churned is the share of all pods that is replaced each minute. In as many
// others a container restarts, which changes their status.
const churned = 0.01

// fleet returns the fleet.
func (s Shape) fleet() (*simulator.Fleet, error) {
	o := simulator.Options{Nodes: s.Nodes, Pods: s.Pods, Containers: s.Containers, Seed: 1, Start: s.Start, Fresh: !s.Housekeeping}
	if s.Churn > 0 {
		still, err := simulator.New(o)
		if err != nil {
			return nil, fmt.Errorf("make fleet: %w", err)
		}
		o.Faults = s.faults(still.Nodes())
	}
	fleet, err := simulator.New(o)
	if err != nil {
		return nil, fmt.Errorf("make fleet: %w", err)
	}
	return fleet, nil
}

// faults returns replacements and restarts, spread evenly over time and over
// the nodes. A pod is only chosen again after all others.
func (s Shape) faults(nodes []*simulator.Node) []simulator.Fault {
	type victim struct{ node, pod string }
	var victims []victim
	for i := range s.Pods {
		for _, n := range nodes {
			// The DaemonSet's and the static pod, at 0 and 1, are not replaced.
			if p := n.Pods(); i >= 2 && i < len(p) {
				victims = append(victims, victim{n.Name, p[i].Namespace + "/" + p[i].Name})
			}
		}
	}
	if len(victims) < 2 {
		return nil
	}
	each := time.Duration(float64(time.Minute) / (churned * float64(s.Nodes*s.Pods)))
	var faults []simulator.Fault
	for i := 0; time.Duration(i)*each < s.Churn; i++ {
		replaced, restarted := victims[i%len(victims)], victims[(i+len(victims)/2)%len(victims)]
		at := s.Quiet + time.Duration(i)*each
		faults = append(faults,
			simulator.Fault{Kind: simulator.Replace, Node: replaced.node, Pod: replaced.pod, At: at},
			simulator.Fault{Kind: simulator.Restart, Node: restarted.node, Pod: restarted.pod, At: at, Container: "app"})
	}
	return faults
}
