package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/internal/reach"
	"github.com/weir-metrics/weir/internal/top"
	"github.com/weir-metrics/weir/internal/why"
)

// newTop and newExplain return the commands that ask a running weir: the one at
// --server, or else the one on this machine, which is looked for at local.

func newTop(getenv func(string) string, local string) *cobra.Command {
	var server string
	cmd := top.NewCommand(top.Options{Connect: func() (reach.Lister, error) { return connect(cmp.Or(server, getenv("WEIR_SERVER")), local) }})
	addServer(cmd, &server, local)
	return cmd
}

func newExplain(getenv func(string) string, local string) *cobra.Command {
	var server string
	cmd := why.NewCommand(why.Options{Connect: func() (why.Asker, error) { return connect(cmp.Or(server, getenv("WEIR_SERVER")), local) }})
	addServer(cmd, &server, local)
	return cmd
}

func addServer(cmd *cobra.Command, server *string, local string) {
	cmd.PersistentFlags().StringVar(server, "server", "",
		"URL of the weir to ask (default: $WEIR_SERVER, or else the one on this machine, http://"+local+")")
}

// connect returns the weir at server, or the one on this machine.
func connect(server, local string) (*reach.Weir, error) {
	if server != "" {
		return reach.Direct(server, false)
	}
	return reach.Direct("http://"+local, true)
}
