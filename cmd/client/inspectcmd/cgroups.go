// Package inspectcmd is the command "weir inspect": it looks for problems on this machine.
// cgroups.go is "inspect cgroups". pods.go reads the pods to compare with, from a kubelet, a file
// or the API server.
package inspectcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/inspect"
)

// NewCommand returns "inspect". getenv reads the environment.
func NewCommand(getenv func(string) string) *cobra.Command {
	return cli.Group("inspect", "Look for what is wrong on this machine", "", newInspectCgroups(getenv))
}

// cgroupsFlags are the flags of weir inspect cgroups.
type cgroupsFlags struct {
	podFlags
	root, cgroupfs, procfs string
	output                 string
	clean, dryRun          bool
}

func newInspectCgroups(getenv func(string) string) *cobra.Command {
	var f cgroupsFlags
	cmd := &cobra.Command{
		Use:   "cgroups",
		Short: "List the cgroups of pods, and mark those that should not be there",
		Long: `List every cgroup of a pod on this machine, of both cgroup drivers and in every
hierarchy of cgroups v1 and v2: its pod, its QoS class by path and by the pod's
spec, its processes, and whether it should be there. With leftovers, a kubelet
may report a pod twice.

The pods come from the kubelet, the API server or a file, read after the
cgroups. Without any of these, most cgroups are "unknown". Judgements:
  live           it is where it should be, and in use
  empty          it is where it should be, and nothing runs in it
  wrong-qos      used by the pod, but in another QoS class than the pod
  old-container  the container has ended or been replaced
  duplicate      the pod, or the container, uses another cgroup
  no-pod         there is no such pod
  unknown        there is no list of pods, or it cannot decide

--clean removes cgroups judged no-pod in which nothing runs, if they have not
changed for a minute. It is a dry run unless --dry-run=false is given too. If one
cannot be removed, the exit status is 1.`,
		Example: `  weir inspect cgroups
  weir inspect cgroups --kubeconfig=/etc/kubernetes/kubelet.conf --node-name=n1
  weir inspect cgroups --pods=https://127.0.0.1:10250/pods --token-file=token --ca-file=ca.crt -o wide
  weir inspect cgroups --in-cluster --clean`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.node = cmp.Or(f.node, getenv("NODE_NAME"))
			if err := f.check(cmd.Flags()); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f.addFlags(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "wide, json, yaml, or jsonpath=TEMPLATE; a narrow table if empty")
	cmd.Flags().BoolVar(&f.clean, "clean", false, "remove no-pod cgroups in which nothing runs; see --dry-run")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", true, "with --clean, only list what would be removed")
	cmd.Flags().StringVar(&f.root, "root", "/", "inspect and clean only `CGROUP` and the cgroups below it")
	cmd.Flags().StringVar(&f.cgroupfs, "cgroupfs", "", "`DIR` where the hierarchies are mounted, such as /host/sys/fs/cgroup in a pod (default: from mountinfo)")
	cmd.Flags().StringVar(&f.procfs, "procfs", "/proc", "`DIR` of the processes")
	return cmd
}

// check returns an error for flags that make no sense.
func (f *cgroupsFlags) check(flags *pflag.FlagSet) error {
	if err := cli.Output(f.output, "", "wide"); err != nil {
		return err
	}
	if err := f.podFlags.check(); err != nil {
		return err
	}
	switch {
	case flags.Changed("dry-run") && !f.clean:
		return cli.Usage(errors.New("--dry-run needs --clean"))
	case f.clean && !f.asks():
		return cli.Usage(errors.New("--clean needs a list of pods: add --pods, --kubeconfig or --in-cluster"))
	case f.clean && !f.verifies():
		return cli.Usage(errors.New("--clean needs a verified kubelet: set its https URL and --ca-file"))
	}
	return nil
}

// run inspects the cgroups, and removes those that are left behind if --clean is set.
func (f *cgroupsFlags) run(ctx context.Context, out io.Writer) error {
	i, err := inspect.New(inspect.Options{Mount: f.cgroupfs, Proc: f.procfs, Under: metric.CgroupPath(f.root)})
	if err != nil {
		return err
	}
	tree, err := i.Read()
	if err != nil {
		return fmt.Errorf("read cgroups: %w", err)
	}
	// The pods are read after the cgroups: every pod with a cgroup in the tree was then already
	// known to the kubelet.
	pods, err := f.ask(ctx)
	if err != nil {
		return err
	}
	report := inspect.Judge(tree, pods, time.Now())
	if f.clean && !f.dryRun {
		i.Clean(report)
	}
	write := f.table
	if f.output != "" && f.output != "wide" {
		write = func(out io.Writer, r *inspect.Report) error { return cli.WriteDocument(out, f.output, r) }
	}
	if err := write(out, report); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if failed := report.Failed(); failed > 0 {
		return fmt.Errorf("%d of %d cgroups could not be removed", failed, len(report.Removals))
	}
	return nil
}

// table writes the report for people.
func (f *cgroupsFlags) table(out io.Writer, r *inspect.Report) error {
	if err := r.WriteTable(out, f.output == "wide"); err != nil || !f.clean {
		return err
	}
	fmt.Fprintln(out)
	removable := len(r.Removals)
	var err error
	if f.dryRun {
		removable, err = r.WritePlan(out)
	} else {
		err = r.WriteRemovals(out)
	}
	switch {
	case err != nil:
		return err
	case removable == 0:
		fmt.Fprintln(out, "There is nothing to remove.")
	case f.dryRun:
		fmt.Fprintln(out, "This was a dry run. To remove: --clean --dry-run=false")
	}
	return nil
}
