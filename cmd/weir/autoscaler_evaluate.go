package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/internal/whatif"
)

// newEvaluate returns the command that asks a running weir what a manifest would do.
func newEvaluate(getenv func(string) string, local string) *cobra.Command {
	var server string
	cmd := whatif.NewCommand(whatif.Options{
		Connect: func() (whatif.Evaluator, error) { return connect(cmp.Or(server, getenv("WEIR_SERVER")), local) },
	})
	addServer(cmd, &server, local)
	return cmd
}
