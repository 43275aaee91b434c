package app

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/cmd/app/configfile"
	"github.com/weir-metrics/weir/cmd/app/httpserver"
	"github.com/weir-metrics/weir/cmd/app/logging"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/eviction/agent"
	"github.com/weir-metrics/weir/internal/feature"
)

// runResolution is the time between two reads of this machine. A read costs little, and a user who
// runs weir by hand is watching.
const runResolution = 5 * time.Second

func newRun() *cobra.Command {
	c := newConfig(runResolution, "host", "recording")
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Measure this machine, without a cluster",
		Long: `Measure every cgroup of this machine, and serve what was measured on this machine
alone. No cluster and no configuration is needed; as root it sees most.`,
		Example: "  weir run\n  weir run --source=host:?prefix=/system.slice --listen=127.0.0.1:9000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := c.compile("host")
			if err != nil {
				return err
			}
			p.Mode = "run"
			if p.Host != nil {
				p.features.guard = agent.NewObserver()
			}
			return start(cmd, newRun, c, p)
		},
	}
	c.addFlags(cmd.Flags())
	configfile.Add(cmd)
	cmd.SetFlagErrorFunc(hintServerFlag)
	return cmd
}

// hintServerFlag adds a hint to the error about an unknown flag if weir server has this flag.
func hintServerFlag(cmd *cobra.Command, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown || newServer(func(string) string { return "" }).Flags().Lookup(name) == nil {
		return cmd.Parent().FlagErrorFunc()(cmd, err)
	}
	return cli.Hintf(cli.Usage(fmt.Errorf("--%s is a flag of weir server; %s knows no cluster", name, cmd.CommandPath())),
		"Run weir server in a pod of the cluster, or with --kubeconfig=FILE.")
}

// writeBanner writes where weir serves, and a command to try. program is the command by which this weir
// was started.
func (w *weirProcess) writeBanner(out io.Writer, program string) {
	local := w.served.localURL
	fmt.Fprintf(out, "weir serves on %s\n", cmp.Or(strings.Join(w.served.urls, " and "), "no address"))
	if local == "" {
		return
	}
	fmt.Fprintf(out, "In a browser:         %s/ui/\n", local)
	if w.plan.Host != nil {
		address := ""
		if w.plan.Listen != httpserver.DefaultAddress {
			address = " --server=" + local
		}
		fmt.Fprintf(out, "In another terminal:  %s top cgroups --watch%s\n", program, address)
	}
}

// closeFileHandles keeps whoever takes over this process from opening files by their handles: by deny, or,
// on a kernel without seccomp, by giving up the capability for it.
func closeFileHandles(deny func() error, log *zap.Logger) error {
	err := deny()
	if err == nil {
		return nil
	}
	if failed := dropReadSearch(); failed != nil {
		return errors.Join(err, failed)
	}
	log.Warn("this kernel takes no seccomp filter: CAP_DAC_READ_SEARCH is dropped, and directories of other users on disks cannot be measured", zap.Error(err))
	return nil
}

// start runs a plan until a signal interrupts it. run, server and agent use it. fresh returns the
// same command as cmd with the defaults of all flags.
func start(cmd *cobra.Command, fresh func() *cobra.Command, c *config, p *plan) error {
	file, err := configfile.NewReloader(cmd, fresh)
	if err != nil {
		return err
	}
	log, level, err := logging.New(c.log, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	logging.TakeKlog(log)
	tuneCollector(log)
	if p.Host != nil {
		if err := closeFileHandles(denyFileHandles, log); err != nil {
			return err
		}
	}
	w, err := open(cmd.Context(), p, cmd.OutOrStdout(), log)
	if err != nil {
		return err
	}
	if file != nil {
		w.Add(feature.Part{Name: "configuration", Run: newConfigReload(file, log, level, c.log, w.Registry).run})
	}
	w.writeBanner(cmd.OutOrStdout(), os.Args[0])
	if p.features.guard.Plan() == nil {
		defer releaseStartupMemory(log).Stop()
	} else if err := lockMemory(); err != nil { // a guard needs its code at once when memory is short
		log.Info("weir may be late to decide when the node thrashes", zap.Error(err))
	}
	return w.run(cmd.Context())
}
