package app

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/app/version"
	"github.com/weir-metrics/weir/client/cli"
)

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which weir this is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.OneOf("--output", output, "", "json"); err != nil {
				return err
			}
			if output == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(version.Get())
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Get())
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json; a line if empty")
	return cmd
}
