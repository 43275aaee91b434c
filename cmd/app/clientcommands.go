package app

import (
	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/client/connect"
	"github.com/weir-metrics/weir/cmd/client/doctorcmd"
	"github.com/weir-metrics/weir/cmd/client/evaluatecmd"
	"github.com/weir-metrics/weir/cmd/client/explaincmd"
	"github.com/weir-metrics/weir/cmd/client/replaycmd"
	"github.com/weir-metrics/weir/cmd/client/resizecmd"
	"github.com/weir-metrics/weir/cmd/client/topcmd"
)

// newClientCommands returns the commands that ask a running weir: the one at --server, or else the
// one on this machine, at local. Commands that change pods use the user's kubeconfig, because a
// weir has no right to change pods.
func newClientCommands(getenv func(string) string, local string) []*cobra.Command {
	where := connect.Location{Getenv: getenv, Local: local}
	top := topcmd.NewCommand(topcmd.Options{Connect: func() (connect.Lister, error) { return where.Connect() }})
	explain := explaincmd.NewCommand(explaincmd.Options{Connect: func() (explaincmd.Asker, error) { return where.Connect() }})
	evaluate := evaluatecmd.NewCommand(evaluatecmd.Options{Connect: func() (evaluatecmd.Evaluator, error) { return where.Connect() }})
	resize := resizecmd.NewCommand(resizecmd.Options{
		Connect: func() (resizecmd.Asker, error) { return where.Connect() }, Cluster: where.Cluster,
	})
	for _, cmd := range []*cobra.Command{top, explain, evaluate, resize} {
		where.AddServerFlag(cmd.PersistentFlags())
	}
	where.AddClusterFlags(resize.PersistentFlags())
	cluster := connect.Location{Getenv: getenv} // without a weir on this machine: a doctor is for a cluster
	doctor := doctorcmd.NewCommand(doctorcmd.Options{
		Connect: func() (doctorcmd.Asker, error) { return cluster.Connect() }, Cluster: cluster.Cluster,
	})
	cluster.AddServerFlag(doctor.Flags())
	cluster.AddClusterFlags(doctor.Flags())
	autoscaler := cli.Group("autoscaler", "Say what an autoscaler's manifest would do, now or over time",
		`Say what the manifest of a HorizontalPodAutoscaler or an Autoscaler would do:
"evaluate" on the live metrics of a running weir, "replay" over a recording or a
Prometheus. "weir explain autoscaler" and "weir explain hpa" say what an autoscaler
of the cluster decides, and why. None of these commands changes anything.`,
		evaluate, replaycmd.NewCommand(replaycmd.Options{Pipeline: pipeline}))
	return []*cobra.Command{top, explain, autoscaler, resize, doctor}
}
