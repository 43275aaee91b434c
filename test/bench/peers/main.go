//go:build linux

// Command peers measures weir beside metrics-server, and beside the cost of
// fetching the same bytes and dropping them: on one machine, with one real API
// server and the same simulated kubelets, one program at a time. README.md, one
// folder up, explains each row.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/cmd/client/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(cli.Main(ctx, newRoot(), os.Args[1:], os.Stdout, os.Stderr))
}

func newRoot() *cobra.Command {
	o := defaults()
	root := &cobra.Command{
		Use:   "peers",
		Short: "Measure weir beside metrics-server",
		Long: `Measure weir beside metrics-server: start etcd and kube-apiserver, seed nodes and
pods, serve their kubelets, then run both programs alone and in turn and print a
table of ratios. Needs root (namespaces) and Linux; about an hour and a half for
1,000 nodes, some minutes with --quick.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Quick {
				o.shorten(cmd.Flags().Changed)
			}
			return measure(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := root.Flags()
	f.IntVar(&o.Shape.Nodes, "nodes", o.Shape.Nodes, "number of nodes")
	f.IntVar(&o.Shape.Pods, "pods", o.Shape.Pods, "number of pods on each node")
	f.IntVar(&o.Shape.Containers, "containers", o.Shape.Containers, "number of containers in each pod")
	f.BoolVar(&o.Shape.Housekeeping, "housekeeping", false, "kubelets serve samples up to 15s old, as cAdvisor takes them, not as old as the request")
	f.DurationVar(&o.Resolution, "resolution", o.Resolution, "time between two reads of a node")
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "how often each program has its turn on the cluster that stands still")
	f.IntVar(&o.ChurnRounds, "churn-rounds", o.ChurnRounds, "how often on the one that changes")
	f.DurationVar(&o.Warm, "warm", o.Warm, "how long a program runs before it is measured")
	f.DurationVar(&o.Window, "window", o.Window, "how long CPU time is measured, with nobody asking")
	f.DurationVar(&o.FloorWindow, "floor-window", o.FloorWindow, "the same for a mere fetch")
	f.DurationVar(&o.Burst, "burst", o.Burst, "how long each kind of request is repeated, at least")
	f.IntVar(&o.Requests, "requests", o.Requests, "how often each kind of request is repeated, at least")
	f.IntVar(&o.Looks, "looks", o.Looks, "how often the ages and rates of all that is served are judged, each time at another part of a resolution")
	f.DurationVar(&o.Fill, "fill", o.Fill, "age at which weir's last turn is measured: its 15 minutes of history are full; 0 measures it as young as the others")
	f.BoolVar(&o.Quick, "quick", false, "a run of some minutes: one round, short windows, history not full; not for comparing")
	f.StringVar(&o.Only, "only", "", "static or churn; both if empty")
	f.StringArrayVar(&o.Out, "out", nil, "write the table to a `FILE` ending in .md, or all raw numbers to one in .json; repeatable")
	f.StringVar(&o.Weir, "weir", o.Weir, "the weir to measure")
	f.BoolVar(&o.Keep, "keep-logs", false, "leave the programs' logs, and say where")
	root.AddCommand(newKubelets(), newFloor())
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// Options say what is measured, for how long, and the size of the cluster.
type Options struct {
	Shape       Shape         `json:"shape"`
	Resolution  time.Duration `json:"resolution"`
	Rounds      int           `json:"rounds"`
	ChurnRounds int           `json:"churnRounds"`
	Warm        time.Duration `json:"warm"`
	Window      time.Duration `json:"window"`
	FloorWindow time.Duration `json:"floorWindow"`
	Burst       time.Duration `json:"burst"`
	Requests    int           `json:"requests"`
	Looks       int           `json:"looks"`
	Fill        time.Duration `json:"fill"`
	Quick       bool          `json:"quick,omitempty"`
	Only        string        `json:"only,omitempty"`
	Out         []string      `json:"-"`
	Weir        string        `json:"-"`
	Keep        bool          `json:"-"`
}

func defaults() Options {
	return Options{
		Shape:      Shape{Nodes: 1000, Pods: 30, Containers: 2},
		Resolution: 15 * time.Second, Rounds: 3, ChurnRounds: 1,
		Warm: time.Minute, Window: 3 * time.Minute, FloorWindow: time.Minute,
		Burst: 15 * time.Second, Requests: 40, Looks: 10, Fill: 16 * time.Minute, Weir: "../../bin/weir",
	}
}

// shorten shortens every time that no flag sets.
func (o *Options) shorten(given func(flag string) bool) {
	short := Options{Rounds: 1, ChurnRounds: 1, Warm: 30 * time.Second, Window: 45 * time.Second, FloorWindow: 30 * time.Second, Burst: 2 * time.Second, Requests: 20, Looks: 5}
	for flag, set := range map[string]func(){
		"rounds": func() { o.Rounds = short.Rounds }, "churn-rounds": func() { o.ChurnRounds = short.ChurnRounds },
		"warm": func() { o.Warm = short.Warm }, "window": func() { o.Window = short.Window }, "floor-window": func() { o.FloorWindow = short.FloorWindow },
		"burst": func() { o.Burst = short.Burst }, "requests": func() { o.Requests = short.Requests }, "looks": func() { o.Looks = short.Looks }, "fill": func() { o.Fill = 0 },
	} {
		if !given(flag) {
			set()
		}
	}
}
