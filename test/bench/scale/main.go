// Command scale measures one weir as clusters grow: for each number of nodes it starts
// weir-simulate (kubelets and API server) and weir server against it, waits until
// every node has been read a few times, and measures what weir costs and how old its
// numbers are.
//
//	make bench-scale
//	go run ./scale --nodes 100,1000,5000 --resolution 15s
//
// What it prints is a table and a straight line through it: what a node costs, what
// weir costs without one, and how straight it is. Ctrl-C ends everything that was started.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
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

// plan is what is measured.
type plan struct {
	nodes            []int
	pods, containers int
	resolution       time.Duration
	settle, window   time.Duration
	ready            time.Duration
	churn            string
	weir, simulate   string
	extra            string
	markdown, json   string
}

func parse(args []string) (plan, error) {
	var p plan
	var nodes string
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	f.StringVar(&nodes, "nodes", "100,1000,5000", "numbers of nodes, one after the other")
	f.IntVar(&p.pods, "pods", 30, "pods on each node")
	f.IntVar(&p.containers, "containers", 2, "containers in each pod")
	f.DurationVar(&p.resolution, "resolution", 15*time.Second, "time between two reads of a node")
	f.DurationVar(&p.settle, "settle", 0, "time after weir is ready before measuring (default 4 resolutions)")
	f.DurationVar(&p.window, "window", 0, "time measured (default 8 resolutions)")
	f.DurationVar(&p.ready, "ready", 5*time.Minute, "how long weir may take to become ready")
	f.StringVar(&p.churn, "churn", "0%/m", "share of the pods that is replaced in a minute")
	f.StringVar(&p.weir, "weir", "../../bin/weir", "weir's binary")
	f.StringVar(&p.simulate, "simulate", "../../bin/weir-simulate", "weir-simulate's binary")
	f.StringVar(&p.extra, "weir-flags", "", "more flags for weir server, separated by spaces")
	f.StringVar(&p.markdown, "markdown", "", "write the table here, in Markdown")
	f.StringVar(&p.json, "json", "", "write the figures here, in JSON")
	if err := f.Parse(args); err != nil {
		return p, err
	}
	for text := range strings.SplitSeq(nodes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 {
			return p, fmt.Errorf("--nodes %q: want numbers from 1, separated by commas", nodes)
		}
		p.nodes = append(p.nodes, n)
	}
	if p.settle == 0 {
		p.settle = 4 * p.resolution
	}
	if p.window == 0 {
		p.window = 8 * p.resolution
	}
	return p, nil
}

func run(ctx context.Context, args []string) error {
	p, err := parse(args)
	if err != nil {
		return err
	}
	for _, file := range []string{p.weir, p.simulate} {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("find binary: %w: run make build first", err)
		}
	}
	fmt.Printf("%d pods on a node, %d containers in a pod, every %v, churn %s; measured for %v\n\n", p.pods, p.containers, p.resolution, p.churn, p.window)
	fmt.Print(header)
	var all []point
	var failed error
	for _, n := range p.nodes {
		// What was measured before something went wrong is told all the same.
		got, err := measure(ctx, p, n)
		if err != nil {
			failed = fmt.Errorf("measure %d nodes: %w", n, err)
			break
		}
		all = append(all, got)
		fmt.Print(got.row())
	}
	fits := fitAll(all)
	fmt.Print("\n" + fits.String())
	if err := write(p, all, fits); err != nil {
		return err
	}
	return failed
}
