//go:build linux

// Command cluster runs a real Kubernetes cluster of one node on this machine.
// Use it to try weir, and for its end-to-end tests.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/test/cluster/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(cli.Main(ctx, newRoot(), os.Args[1:], os.Stdout, os.Stderr))
}

func newRoot() *cobra.Command {
	var o harness.Options
	root := &cobra.Command{
		Use:   "cluster",
		Short: "Run a real Kubernetes cluster of one node on this machine",
		Long: `Run a real Kubernetes cluster of one node on this machine: etcd, kube-apiserver,
kube-controller-manager, kube-scheduler, kube-proxy, containerd and kubelet, in
namespaces of their own. Needs root and Debian's packages runc,
containernetworking-plugins and iptables. No image can be pulled: load them.`,
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVar(&o.Name, "name", "weir", "name of the cluster; several run side by side")
	root.PersistentFlags().StringVar(&o.Dir, "dir", "", "folder of clusters (default: weir-cluster/clusters in the user's cache folder)")
	root.AddCommand(newUp(&o), newDown(&o), newStatus(&o), newKubeconfig(&o), newBuild(), newLoad(&o), newKubectl(&o))
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

func newUp(o *harness.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Build what is missing, start a cluster and leave it running",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			begin := time.Now()
			o.Progress = cmd.ErrOrStderr()
			c, err := harness.Start(cmd.Context(), *o)
			switch {
			case errors.Is(err, harness.ErrRunning):
				if c, err = harness.Open(cmd.Context(), *o); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "Cluster %s is running already.\n", c.Name())
			case err != nil:
				return err
			default:
				fmt.Fprintf(cmd.OutOrStdout(), "Cluster %s is ready after %.1fs.\n", c.Name(), time.Since(begin).Seconds())
			}
			fmt.Fprintf(cmd.OutOrStdout(), `
  export KUBECONFIG=%s
  export PATH=%s:$PATH
  kubectl get nodes,pods -A

Images in it: %s (what test/cluster/workload does).
End it with: go run ./test/cluster down --name %s
`, c.Kubeconfig(), c.BinaryDir("kubectl"), harness.WorkloadImage, c.Name())
			return nil
		},
	}
	cmd.Flags().StringVar((*string)(&o.Node), "node", "", "v2: the node is a virtual machine, with Debian's kernel, systemd and cgroup version 2 (default: processes of this machine)")
	cmd.Flags().StringArrayVar(&o.APIServerArgs, "apiserver-arg", nil, "flag for kube-apiserver, such as --v=4; may be repeated")
	cmd.Flags().StringArrayVar(&o.ControllerManagerArgs, "controller-manager-arg", nil, "flag for kube-controller-manager; may be repeated")
	cmd.Flags().StringArrayVar(&o.KubeletArgs, "kubelet-arg", nil, "flag for kubelet; may be repeated")
	return cmd
}

func newDown(o *harness.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End a cluster and remove everything it made",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Progress = cmd.ErrOrStderr()
			c, err := open(cmd.Context(), *o)
			if errors.Is(err, harness.ErrNotFound) {
				fmt.Fprintln(cmd.OutOrStdout(), err)
				return nil // the cluster is already down
			}
			if err != nil {
				return err
			}
			return c.Down(cmd.Context())
		},
	}
}

func newStatus(o *harness.Options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say of each component whether it runs and is well",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := open(cmd.Context(), *o)
			if err != nil {
				return err
			}
			status := c.Status(cmd.Context())
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(status)
			}
			return writeStatus(cmd.OutOrStdout(), c, status)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func writeStatus(out io.Writer, c *harness.Cluster, status []harness.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "COMPONENT\tPID\tHEALTH\tADDRESS")
	ill := 0
	for _, s := range status {
		health := "ok"
		if s.Problem != "" {
			ill++
			health = s.Problem
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", s.Name, s.PID, health, s.Address)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if ill > 0 {
		return cli.Hintf(fmt.Errorf("%d of %d components are not well", ill, len(status)), "Their logs: %s/logs", c.Dir())
	}
	return nil
}

func newKubeconfig(o *harness.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the administrator's kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := open(cmd.Context(), *o)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), c.Kubeconfig())
			return nil
		},
	}
}

func newBuild() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build the programs of clusters and of their tests that the cache lacks, and print where they are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			programs, err := harness.Build(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if programs["metrics-server"], err = harness.BuildMetricsServer(cmd.Context(), cmd.ErrOrStderr()); err != nil {
				return err
			}
			for _, name := range programs.Names() {
				fmt.Fprintln(cmd.OutOrStdout(), programs.Path(name))
			}
			return nil
		},
	}
}

func newLoad(o *harness.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "load TARBALL...",
		Short: "Make images known to the node",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := open(cmd.Context(), *o)
			if err != nil {
				return err
			}
			for _, tarball := range args {
				if err := c.LoadImage(cmd.Context(), tarball); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func newKubectl(o *harness.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl -- ARGS...",
		Short: "Run the cluster's kubectl as its administrator",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := open(cmd.Context(), *o)
			if err != nil {
				return err
			}
			out, errs, err := c.Kubectl(cmd.Context(), args...)
			fmt.Fprint(cmd.OutOrStdout(), out)
			fmt.Fprint(cmd.ErrOrStderr(), errs)
			if err != nil {
				return errors.New("kubectl did not succeed")
			}
			return nil
		},
	}
}

func open(ctx context.Context, o harness.Options) (*harness.Cluster, error) {
	c, err := harness.Open(ctx, o)
	if errors.Is(err, harness.ErrNotFound) {
		return nil, cli.Hintf(err, "Start one with: go run ./test/cluster up --name %s", o.Name)
	}
	return c, err
}
