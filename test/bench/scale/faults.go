//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weir-metrics/weir/test/bench/process"
)

// ways are what a third of the nodes does with --faults, one after another. The verbs are the
// simulator's; %s is the name of a node.
var ways = []struct{ name, fault string }{
	{"every node answers", ""},
	{"a third accepts connections and never answers", "hang node=%s"},
	{"a third refuses connections", "down node=%s"},
	{"a third answers after 9 s", "slow node=%s delay=9s"},
	{"every node answers again", ""},
}

// healthy reports whether a node answers at once throughout.
func healthy(i int) bool { return i%3 != 0 }

// nodeName returns the simulator's name of a node.
func nodeName(i int) string { return fmt.Sprintf("node-%04d", i+1) }

// measureFaults runs weir for one number of nodes, and prints for each of the ways how old the numbers
// of healthy nodes became.
func measureFaults(ctx context.Context, p plan, resolution time.Duration, nodes int) error {
	lead, each := cmp.Or(p.settle, 3*time.Minute), cmp.Or(p.window, max(8*resolution, 2*time.Minute))
	var faults []string
	others := make(map[string]bool)
	for i := range nodes {
		if healthy(i) {
			others[nodeName(i)] = true
			continue
		}
		for k, way := range ways {
			if way.fault != "" {
				faults = append(faults, fmt.Sprintf(way.fault+" at=%v for=%v", nodeName(i), lead+time.Duration(k)*each, each))
			}
		}
	}
	began := time.Now()
	var text strings.Builder
	fmt.Fprintf(&text, "%d nodes, every %v, each way for %v: numbers of the %d healthy nodes, looked at every second\n\n", nodes, resolution, each, len(others))
	text.WriteString("| | healthy nodes with CPU | oldest (intervals) | oldest (s) |\n|---|---:|---:|---:|\n")
	err := withWeir(ctx, p, resolution, nodes, func(base string, weir, _ *process.Process, _ time.Duration) error {
		if late := time.Since(began) - lead + 2*resolution; late > 0 {
			return fmt.Errorf("weir was ready %v too late for the first of the faults: give --settle more", late)
		}
		for k, way := range ways {
			if err := weir.Wait(ctx, time.Until(began.Add(lead+time.Duration(k)*each))); err != nil {
				return err
			}
			age, fewest, err := worst(ctx, base, weir, began.Add(lead+time.Duration(k+1)*each), others)
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, "| %s | %d | %.2f | %.1f |\n", way.name, fewest, age.Seconds()/resolution.Seconds(), age.Seconds())
		}
		return weir.Alive()
	}, faults...)
	fmt.Println(text.String())
	return err
}

// worst looks at weir's numbers of these nodes every second until then. It returns the largest age of
// a number, and the smallest number of nodes that had one.
func worst(ctx context.Context, base string, weir *process.Process, then time.Time, of map[string]bool) (age time.Duration, fewest int, err error) {
	fewest = len(of)
	for time.Now().Before(then) {
		now, nodes, err := oldest(ctx, base, func(node string) bool { return of[node] })
		if err != nil {
			return 0, 0, err
		}
		age, fewest = max(age, now), min(fewest, nodes)
		if err := weir.Wait(ctx, time.Second); err != nil {
			return 0, 0, err
		}
	}
	return age, fewest, nil
}
