// Package client lists the commands that ask a weir. Each command is a folder below this one; cli is
// what they share.
package client

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/client/doctorcmd"
	"github.com/weir-metrics/weir/cmd/client/evaluatecmd"
	"github.com/weir-metrics/weir/cmd/client/explaincmd"
	"github.com/weir-metrics/weir/cmd/client/resizecmd"
	"github.com/weir-metrics/weir/cmd/client/topcmd"
)

// Commands are the commands that ask a weir, for weir itself and for the plugin of kubectl.
type Commands struct {
	Top, Explain, Evaluate, Resize, Doctor *cobra.Command
}

// New returns the commands. They ask the weir at where, and Doctor the one at cluster. A plugin has
// the name program and uses the namespace of the kubeconfig; program is empty for weir itself. recorded
// plays recordings; a program that plays none passes nil.
func New(where, cluster *cli.Location, program string, recorded resizecmd.RecordedUsage) Commands {
	var namespace func() (string, error)
	if program != "" {
		namespace = where.Namespace
	}
	explain := func() *cobra.Command {
		return explaincmd.NewCommand(explaincmd.Options{
			Connect: func() (explaincmd.Asker, error) { return where.Connect() }, Namespace: namespace, Program: program,
		})
	}
	return Commands{
		Top: topcmd.NewCommand(topcmd.Options{
			Connect: func() (cli.Lister, error) { return where.Connect() }, Namespace: namespace,
			Explain: func(ctx context.Context, out io.Writer, args ...string) {
				root := &cobra.Command{Use: cmp.Or(program, "weir")}
				root.AddCommand(explain())
				cli.Main(ctx, root, append([]string{"explain"}, args...), out, out)
			},
		}),
		Explain: explain(),
		Evaluate: evaluatecmd.NewCommand(evaluatecmd.Options{
			Connect: func() (evaluatecmd.Evaluator, error) { return where.Connect() }, Namespace: namespace, Program: program,
		}),
		Resize: resizecmd.NewCommand(resizecmd.Options{
			Connect: func() (resizecmd.Asker, error) { return where.Connect() }, Cluster: func() (resizecmd.Pods, error) { return where.Cluster() }, Namespace: namespace, Program: program, Recorded: recorded,
		}),
		Doctor: doctorcmd.NewCommand(doctorcmd.Options{
			Connect: func() (doctorcmd.Asker, error) { return cluster.Connect() }, Cluster: cluster.Cluster, Program: program,
		}),
	}
}
