package resizecmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/internal/trace"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/estimate"
	"github.com/weir-metrics/weir/resize/promusage"
	"github.com/weir-metrics/weir/resize/replay"
)

// replayCommand is one run of "replay".
type replayCommand struct {
	Options
	prometheus                                        prometheusFlags
	namespace                                         string
	options                                           replay.Options
	warmup, until, leastShrink, floor, memoryFloor, o string
}

func newReplay(o Options) *cobra.Command {
	r := &replayCommand{Options: o, options: replay.Defaults()}
	d := &r.options
	cmd := &cobra.Command{
		Use:   "replay {FILE... | --prometheus URL}",
		Short: "Score estimators of requests on your own past: slack, overrun, OOM kills, changes",
		Long: `Score estimators of requests on what containers used. The command walks through that
time: at an interval each estimator recommends from what was known by then, the
recommendation is applied, and the time until the next one shows what was requested and
not used, what was used above the request, and which memory would have been killed for.
All have the same floors, rounding and least change. No weir and no cluster is asked.

--prometheus reads from a Prometheus that scrapes weir or the kubelets. A FILE is a
recording of weir, or CSV: the columns time and name, then cpu in cores, memory in
bytes, and cpu_request and memory_request if known; an empty cell was not measured.
What each container requested is the baseline.`,
		Example: fmt.Sprintf(`  %[1]s resize replay --prometheus http://prometheus.monitoring:9090 --since 14d -n shop
  %[1]s resize replay run.weirrec --interval 10m
  %[1]s resize replay trace.csv --estimator weir,vpa --interval 24h --warmup 50%%
  %[1]s resize replay day.csv --vpa-peaks 1h --cpu-limit 2 -o csv`, o.Program),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 == (r.prometheus.url != "") {
				return cli.Usage(errors.New("name a Prometheus by --prometheus=URL, or files: recordings, or CSV with the columns time, name, cpu, memory"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args) },
	}
	f := cmd.Flags()
	r.prometheus.addFlags(f)
	f.StringVarP(&r.namespace, "namespace", "n", "", "only containers of this namespace, of --prometheus or a recording")
	f.StringSliceVar(&d.Estimators, "estimator", d.Estimators, "what to score: "+strings.Join(estimate.Names(), ", "))
	f.DurationVar(&d.Interval, "interval", d.Interval, "time between two recommendations")
	f.StringVar(&r.warmup, "warmup", "33.3%", "`SHARE` of each series that is only observed")
	f.StringVar(&r.until, "until", "100%", "`SHARE` of each series after which nothing is read")
	f.DurationVar(&d.History, "history", d.History, "how far back the estimator "+estimate.OwnRule+" looks")
	f.DurationVar(&d.VPAPeaks, "vpa-peaks", d.VPAPeaks, "time for which VPA keeps one peak of memory; a trace of a day needs less")
	f.StringVar(&r.leastShrink, "least-shrink", "0%", "`SHARE` by which a request must shrink for the smaller one to be applied, for all estimators")
	f.Float64Var(&d.CPULimit, "cpu-limit", d.CPULimit, "CPU limit as a multiple of the request; 0 for none")
	f.Float64Var(&d.MemoryLimit, "memory-limit", d.MemoryLimit, "memory limit as a multiple of the request; 0 for none: then memory above the request counts as an OOM kill")
	f.StringVar(&r.floor, "floor", resize.FormatAmount(resize.CPU, d.Floors.CPU.Value), "`CPU` that no request is to go below")
	f.StringVar(&r.memoryFloor, "memory-floor", resize.FormatAmount(resize.Memory, d.Floors.Memory.Value), "`MEMORY` that no request is to go below")
	f.Uint64Var(&d.Seed, "seed", d.Seed, "seed of the bootstrap")
	f.IntVar(&d.Resamples, "resamples", d.Resamples, "how often the bootstrap draws containers")
	f.StringVarP(&r.o, "output", "o", "", "csv, svg (a picture), json, yaml, jsonpath=TEMPLATE or custom-columns=TITLE:PATH,...; a table if empty")
	cli.CompleteFlag(cmd, "estimator", cli.Fixed(estimate.Names()...))
	cli.CompleteFlag(cmd, "output", cli.Fixed("csv", "svg", "json", "yaml", "jsonpath="))
	return cmd
}

func (r *replayCommand) run(cmd *cobra.Command, files []string) error {
	if err := cli.Output(r.o, "", "csv", "svg"); err != nil {
		return err
	}
	if err := r.parse(); err != nil {
		return cli.Usage(err)
	}
	if err := r.prometheus.check(cmd.Flags(), &resize.Options{}); err != nil {
		return err
	}
	line := cli.StartProgress(cmd.ErrOrStderr())
	defer line.Stop()
	var entities []trace.Entity
	if r.prometheus.url != "" {
		var err error
		if entities, err = r.fromPrometheus(cmd.Context(), line); err != nil {
			return err
		}
	}
	for _, name := range files {
		list, err := r.fromFile(cmd.Context(), name, line)
		var truncated *recording.TruncatedError
		if errors.As(err, &truncated) && len(list) > 0 {
			line.Stop()
			fmt.Fprintf(cmd.ErrOrStderr(), "%s is scored up to its end: %v\n", name, err)
			err = nil
		}
		if err != nil {
			return fmt.Errorf("read trace %s: %w", name, err)
		}
		entities = append(entities, list...)
	}
	line.Set("scoring", 0, 0)
	result, err := replay.Run(cmd.Context(), entities, r.options)
	line.Stop()
	switch {
	case err != nil:
		return err
	case r.o == "":
		return result.WriteTable(cmd.OutOrStdout())
	case r.o == "csv":
		return result.WriteCSV(cmd.OutOrStdout())
	case r.o == "svg":
		return result.WriteSVG(cmd.OutOrStdout())
	}
	return cli.WriteDocument(cmd.OutOrStdout(), r.o, result)
}

// parse sets the options of the flags that are texts.
func (r *replayCommand) parse() error {
	for _, flag := range []struct {
		name, text string
		share      *float64
	}{
		{"warmup", r.warmup, &r.options.Warmup}, {"until", r.until, &r.options.Until}, {"least-shrink", r.leastShrink, &r.options.LeastShrink},
	} {
		number, found := strings.CutSuffix(flag.text, "%")
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !found {
			return fmt.Errorf("--%s: %q is not a share: write 33%%", flag.name, flag.text)
		}
		*flag.share = v / 100
	}
	cpu, err := resource.ParseQuantity(r.floor)
	if err != nil {
		return fmt.Errorf("--floor: %q is not an amount of CPU: write 10m", r.floor)
	}
	memory, err := resource.ParseQuantity(r.memoryFloor)
	if err != nil {
		return fmt.Errorf("--memory-floor: %q is not an amount of memory: write 16Mi", r.memoryFloor)
	}
	r.options.Floors = resize.Amounts{CPU: resize.Of(cpu.MilliValue()), Memory: resize.Of(memory.Value())}
	return r.options.Validate()
}

// fromFile reads a recording or CSV.
func (r *replayCommand) fromFile(ctx context.Context, name string, line *cli.Progress) ([]trace.Entity, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !recording.IsRecording(f) {
		return trace.Read(f)
	}
	if r.Recorded == nil {
		return nil, cli.Hintf(errors.New("it is a recording, which only weir itself plays"), "Run `weir resize replay %s`.", name)
	}
	return r.Recorded(ctx, name, r.namespace, line)
}

// fromPrometheus reads what containers used and requested.
func (r *replayCommand) fromPrometheus(ctx context.Context, line *cli.Progress) ([]trace.Entity, error) {
	client, err := r.prometheus.open(line)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	now := time.Now()
	request := promusage.Request{Namespace: r.namespace, From: now.Add(-r.prometheus.span), To: now}
	used, err := promusage.Read(ctx, client, request)
	if err != nil {
		return nil, err
	}
	requests, err := promusage.ReadRequests(ctx, client, request)
	if err != nil {
		return nil, err
	}
	entities := used.Entities(requests)
	if len(entities) == 0 {
		return nil, errNoReadings
	}
	return entities, nil
}
