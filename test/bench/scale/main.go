//go:build linux

// Command scale measures one weir for several sizes of cluster. For each number
// of nodes, it starts weir-simulate (kubelets and API server) and weir server
// against it, waits until every node has been read a few times, and measures
// the cost of weir and the age of its numbers.
//
//	make bench-scale
//	go run ./scale --curve 15s:1000 --settle 45s
//
// It prints a table for each resolution and a straight line through its points:
// the cost of a node, the cost of weir without nodes, and how well the line
// fits. Ctrl-C ends everything that was started.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// plan says what is measured.
type plan struct {
	curves           []curve
	pods, containers int
	housekeeping     bool
	plain            bool
	faults           bool
	sending          bool
	only             string
	settle, window   time.Duration // 0 for a default that depends on the resolution
	ready            time.Duration
	churn            string
	weir, simulate   string
	// vmagent and prometheus are measured beside weir's senders.
	vmagent, prometheus string
	extra               string
	markdown, json      string
}

// everything is the default of what is measured: up to the supported size at
// the usual resolution, then as far as both sides get on a small machine.
const everything = "15s:100,1000,5000 60s:5000,15000,30000"

func parse(args []string) (plan, error) {
	var p plan
	var curves, nodes string
	var resolution time.Duration
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	f.StringVar(&curves, "curves", everything, "times between two reads of a node, each with its numbers of nodes")
	f.StringVar(&nodes, "nodes", "", "numbers of nodes for one curve at --resolution, instead of --curves")
	f.DurationVar(&resolution, "resolution", 15*time.Second, "time between two reads of each of --nodes")
	f.IntVar(&p.pods, "pods", 30, "pods on each node")
	f.IntVar(&p.containers, "containers", 2, "containers in each pod")
	f.BoolVar(&p.housekeeping, "housekeeping", false, "kubelets serve samples up to 15s old, as cAdvisor takes them, not as old as the request")
	f.BoolVar(&p.plain, "plain", false, "kubelets without TLS: where connections cannot all be kept, handshakes are most of what is measured")
	f.BoolVar(&p.faults, "faults", false, "a third of the nodes hangs, then refuses, then answers late: print how old the numbers of the others become, and no costs")
	f.BoolVar(&p.sending, "senders", false, "print what sending costs, for the last number of nodes: weir with and without a sender, vmagent and Prometheus in agent mode")
	f.StringVar(&p.only, "only", "", "with --senders, only programs whose name has this text")
	f.DurationVar(&p.settle, "settle", 0, "time after weir is ready before measuring (default 2 resolutions, at least 1m); with --faults, time from the simulator's start to the first fault (default 3m)")
	f.DurationVar(&p.window, "window", 0, "time measured (default 2 resolutions, at least 90s); with --faults, time for each way of failing (default 8 resolutions, at least 2m)")
	f.DurationVar(&p.ready, "ready", 10*time.Minute, "how long weir may take to become ready")
	f.StringVar(&p.churn, "churn", "0%/m", "share of the pods that is replaced in a minute")
	f.StringVar(&p.weir, "weir", "../../bin/weir", "weir's binary")
	f.StringVar(&p.simulate, "simulate", "../../bin/weir-simulate", "weir-simulate's binary")
	f.StringVar(&p.vmagent, "vmagent", "../../bin/vmagent", "vmagent's binary, for --senders")
	f.StringVar(&p.prometheus, "prometheus", "../../bin/prometheus", "Prometheus' binary, for --senders")
	f.StringVar(&p.extra, "weir-flags", "", "more flags for weir server, separated by spaces")
	f.StringVar(&p.markdown, "markdown", "", "write the tables here, in Markdown")
	f.StringVar(&p.json, "json", "", "write the figures here, in JSON")
	if err := f.Parse(args); err != nil {
		return p, err
	}
	if nodes != "" {
		curves = resolution.String() + ":" + nodes
	}
	for text := range strings.FieldsSeq(curves) {
		c, err := parseCurve(text)
		if err != nil {
			return p, err
		}
		p.curves = append(p.curves, c)
	}
	return p, nil
}

// times returns how long weir runs before the measurement, and the length of
// the measurement. That is a multiple of the resolution, so that all nodes are
// read equally often.
func (p plan) times(resolution time.Duration) (settle, window time.Duration) {
	settle, window = p.settle, p.window
	if settle == 0 {
		settle = max(2*resolution, time.Minute)
	}
	if window == 0 {
		window = max(2*resolution, 90*time.Second/resolution*resolution)
	}
	return settle, window
}

func run(ctx context.Context, args []string) error {
	p, err := parse(args)
	if err != nil {
		return err
	}
	programs := []string{p.weir, p.simulate}
	if p.sending {
		programs = append(programs, p.vmagent, p.prometheus)
	}
	for _, file := range programs {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("find binary: %w: run make build first", err)
		}
	}
	var failed error
	for i := range p.curves {
		// After an error, the earlier measurements are still written.
		if failed = p.curves[i].measure(ctx, p); failed != nil {
			break
		}
	}
	if err := p.write(); err != nil {
		return err
	}
	return failed
}
