package app

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/cmd/client"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/client/recordingcmd"
	"github.com/weir-metrics/weir/cmd/client/replaycmd"
	"github.com/weir-metrics/weir/internal/trace"
)

// newClientCommands returns the commands that ask a running weir: the one at --server, or else the
// one on this machine, at local. Commands that change pods use the user's kubeconfig, because a
// weir has no right to change pods.
func newClientCommands(getenv func(string) string, local string) []*cobra.Command {
	where := cli.Location{Getenv: getenv, Local: local}
	cluster := cli.Location{Getenv: getenv} // without a weir on this machine: a doctor is for a cluster
	commands := client.New(&where, &cluster, "", func(ctx context.Context, path, namespace string, line *cli.Progress) ([]trace.Entity, error) {
		return recordingcmd.Usage(ctx, path, namespace, line, pipeline)
	})
	for _, cmd := range []*cobra.Command{commands.Top, commands.Explain, commands.Evaluate, commands.Resize} {
		where.AddServerFlag(cmd.PersistentFlags())
	}
	where.AddClusterFlags(commands.Resize.PersistentFlags())
	cluster.AddServerFlag(commands.Doctor.Flags())
	cluster.AddClusterFlags(commands.Doctor.Flags())
	autoscaler := cli.Group("autoscaler", "Say what an autoscaler's manifest would do, now or over time",
		`Say what the manifest of a HorizontalPodAutoscaler or an Autoscaler would do:
"evaluate" on the live metrics of a running weir, "replay" over a recording or a
Prometheus. "weir explain autoscaler" and "weir explain hpa" show what an autoscaler
of the cluster decides, and why. None of these commands changes anything.`,
		commands.Evaluate, replaycmd.NewCommand(pipeline))
	return []*cobra.Command{commands.Top, commands.Explain, autoscaler, commands.Resize, commands.Doctor}
}
