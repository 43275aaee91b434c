package app

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/client/connect"
	"github.com/weir-metrics/weir/client/explaincmd"
	"github.com/weir-metrics/weir/client/topcmd"
)

// newTop and newExplain return the commands that ask a running weir: the one at
// --server, or else the one on this machine, which is looked for at local.

func newTop(getenv func(string) string, local string) *cobra.Command {
	var server string
	cmd := topcmd.NewCommand(topcmd.Options{Connect: func() (connect.Lister, error) { return connectTo(cmp.Or(server, getenv("WEIR_SERVER")), local) }})
	addServer(cmd, &server, local)
	return cmd
}

func newExplain(getenv func(string) string, local string) *cobra.Command {
	var server string
	cmd := explaincmd.NewCommand(explaincmd.Options{Connect: func() (explaincmd.Asker, error) { return connectTo(cmp.Or(server, getenv("WEIR_SERVER")), local) }})
	addServer(cmd, &server, local)
	return cmd
}

func addServer(cmd *cobra.Command, server *string, local string) {
	cmd.PersistentFlags().StringVar(server, "server", "",
		"URL of the weir to ask (default: $WEIR_SERVER, or else the one on this machine, http://"+local+")")
}

// connectTo returns the weir at server, or the one on this machine.
func connectTo(server, local string) (*connect.Weir, error) {
	if server != "" {
		return connect.Direct(server, false)
	}
	return connect.Direct("http://"+local, true)
}
