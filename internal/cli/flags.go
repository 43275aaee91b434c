package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flags returns the names of cmd's flags.
func flags(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
