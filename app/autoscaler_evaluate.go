package app

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/client/evaluatecmd"
)

// newEvaluate returns the command that asks a running weir what a manifest would do.
func newEvaluate(getenv func(string) string, local string) *cobra.Command {
	var server string
	cmd := evaluatecmd.NewCommand(evaluatecmd.Options{
		Connect: func() (evaluatecmd.Evaluator, error) { return connectTo(cmp.Or(server, getenv("WEIR_SERVER")), local) },
	})
	addServer(cmd, &server, local)
	return cmd
}
