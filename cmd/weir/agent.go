package main

import (
	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/metric"
)

func newAgent(getenv func(string) string) *cobra.Command {
	c := newConfig(serverResolution, "host")
	var node string
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Measure this node of a cluster",
		Long: `Measure every cgroup of this node, and serve what was measured. With a cluster
named, pods' requests and limits stand beside what they use.`,
		Example: "  weir agent --in-cluster --node-name=$NODE_NAME",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if node == "" {
				node = getenv("NODE_NAME")
			}
			p, err := c.compile("host")
			if err != nil {
				return err
			}
			if node != "" && p.Host != nil {
				p.Host.name(metric.NodeName(node))
			}
			return start(cmd, c, p)
		},
	}
	c.addFlags(cmd.Flags())
	c.addClusterFlags(cmd.Flags())
	cmd.Flags().StringVar(&node, "node-name", "", "name of this node's Node object (default: $NODE_NAME, or else the host name)")
	return cmd
}
