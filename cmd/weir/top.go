package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/internal/top"
)

func newTop(getenv func(string) string, local string) *cobra.Command {
	var server string
	cmd := top.NewCommand(top.Options{Connect: func() (top.Lister, error) { return connect(cmp.Or(server, getenv("WEIR_SERVER")), local) }})
	cmd.PersistentFlags().StringVar(&server, "server", "",
		"URL of the weir to ask (default: $WEIR_SERVER, or else the one on this machine, http://"+local+")")
	return cmd
}

// connect returns a client of the weir at server, or of the one on this machine.
func connect(server, local string) (top.Lister, error) {
	if server != "" {
		return top.NewDirect(server, false)
	}
	return top.NewDirect("http://"+local, true)
}
