package resizecmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/resize"
)

// recommendCommand is one run of "recommend".
type recommendCommand struct {
	commonFlags
	aims            aimFlags
	prometheus      prometheusFlags
	everywhere, all bool
}

func newRecommend(o Options) *cobra.Command {
	r := &recommendCommand{commonFlags: commonFlags{Options: o}}
	cmd := &cobra.Command{
		Use:   "recommend [NAMESPACE/POD]",
		Short: "Say which requests could be smaller, and what that frees",
		Long: `Say which requests of CPU and memory could be smaller by what their containers used,
and what that frees; of one pod, how each number comes about and why others stay.
Nothing is changed.

weir remembers a quarter of an hour. With --prometheus the readings are of as long as
--since says, and pods are read from the cluster; the Prometheus must scrape weir's
/metrics/cluster or the kubelets' /metrics/cadvisor.`,
		Example: fmt.Sprintf(`  %[1]s resize recommend
  %[1]s resize recommend -n shop --all
  %[1]s resize recommend shop/cart-0 --prometheus http://localhost:9090 --since 7d
  %[1]s resize recommend shop/cart-0 --percentile 99 --headroom 30%%`, o.Program),
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args) },
	}
	f := cmd.Flags()
	f.StringVarP(&r.namespace, "namespace", "n", "", "only this namespace")
	f.BoolVarP(&r.everywhere, "all-namespaces", "A", false, "all namespaces")
	f.BoolVar(&r.all, "all", false, "list requests that are to stay, too, with the reasons")
	r.aims.addFlags(f)
	r.prometheus.addFlags(f)
	f.StringVarP(&r.output, "output", "o", "", "wide, json or yaml; a narrow table if empty")
	f.DurationVar(&r.timeout, "timeout", 30*time.Second, "time the answer may take")
	cli.CompleteFlag(cmd, "output", cli.Fixed("wide", "json", "yaml"))
	return cmd
}

func (r *recommendCommand) run(cmd *cobra.Command, args []string) error {
	if err := cli.OneOf("--output", r.output, "", "wide", "json", "yaml"); err != nil {
		return err
	}
	request, err := r.request(cmd.Flags(), args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), r.timeout)
	defer cancel()
	list, err := r.recommend(ctx, request)
	switch {
	case err != nil:
		return err
	case r.output == "json" || r.output == "yaml":
		return cli.WriteDocument(cmd.OutOrStdout(), r.output, list)
	case request.Pod != "":
		return write(cmd.OutOrStdout(), r.podText(list, r.applyHint(cmd.Flags())))
	}
	return write(cmd.OutOrStdout(), r.listText(list, request, r.applyHint(cmd.Flags())))
}

// applyHint returns a function for the command that applies a pod's recommendation, with the same
// flags.
func (r *recommendCommand) applyHint(f *pflag.FlagSet) func(*resize.Recommendation) string {
	return func(rec *resize.Recommendation) string {
		line := fmt.Sprintf("%s resize apply --pod %s/%s --recommended", r.Program, rec.Namespace, rec.Pod)
		f.Visit(func(flag *pflag.Flag) {
			switch flag.Name {
			case "namespace", "all-namespaces", "all", "output", "timeout":
			default:
				line += fmt.Sprintf(" --%s=%s", flag.Name, strings.Trim(flag.Value.String(), "[]"))
			}
		})
		return line
	}
}

// request returns the Request of the flags.
func (r *recommendCommand) request(f *pflag.FlagSet, args []string) (resizeapi.Request, error) {
	none := resizeapi.Request{}
	if err := r.checkTimeout(); err != nil {
		return none, err
	}
	if r.everywhere && (r.namespace != "" || len(args) > 0) {
		return none, cli.Usage(errors.New("--all-namespaces excludes a namespace and a pod"))
	}
	options, err := r.aims.options()
	if err != nil {
		return none, cli.Usage(err)
	}
	if err := r.prometheus.check(f, &options); err != nil {
		return none, err
	}
	request := resizeapi.Request{Namespace: r.namespace, Options: options, All: r.all}
	switch {
	case len(args) == 1:
		request.Namespace, request.Pod, err = r.parsePod(args[0])
	case r.namespace == "" && !r.everywhere && r.Namespace != nil:
		request.Namespace, err = r.Namespace()
	}
	return request, err
}

// recommend asks weir, or computes the recommendations itself from the readings of Prometheus.
func (r *recommendCommand) recommend(ctx context.Context, request resizeapi.Request) (*resizeapi.RecommendationList, error) {
	if r.prometheus.url != "" {
		client, err := r.clusterClient()
		if err != nil {
			return nil, err
		}
		return r.prometheus.recommend(ctx, client, request)
	}
	w, err := r.Connect()
	if err != nil {
		return nil, err
	}
	return w.Recommend(ctx, request)
}

// aimFlags are the flags that set the aim of a recommendation.
type aimFlags struct {
	percentile, memoryPercentile float64
	headroom, memoryHeadroom     string
	floor, memoryFloor           string
	resources                    []string
	minHistory                   time.Duration
	up, limits                   bool
}

func (a *aimFlags) addFlags(f *pflag.FlagSet) {
	d := resize.Defaults()
	percent := func(share float64) string { return fmt.Sprintf("%.4g%%", share*100) }
	f.Float64Var(&a.percentile, "percentile", d.CPU.Percentile, "share of CPU readings, in percent, that a request covers")
	f.StringVar(&a.headroom, "headroom", percent(d.CPU.Headroom), "`SHARE` that is added to the CPU used")
	f.StringVar(&a.floor, "floor", resize.FormatAmount(resize.CPU, d.CPU.Floor), "`CPU` that no request is to go below")
	f.Float64Var(&a.memoryPercentile, "memory-percentile", d.Memory.Percentile, "share of memory readings, in percent, that a request covers")
	f.StringVar(&a.memoryHeadroom, "memory-headroom", percent(d.Memory.Headroom), "`SHARE` that is added to the memory used")
	f.StringVar(&a.memoryFloor, "memory-floor", resize.FormatAmount(resize.Memory, d.Memory.Floor), "`MEMORY` that no request is to go below")
	f.StringSliceVar(&a.resources, "resources", []string{"cpu", "memory"}, "what may change: cpu, memory")
	f.DurationVar(&a.minHistory, "min-history", d.MinHistory, "how long a container must have been measured; with --prometheus by default a day, or half of --since if that is less")
	f.BoolVar(&a.up, "up", false, "let requests grow, too, up to the limit")
	f.BoolVar(&a.limits, "limits", false, "let limits of Guaranteed pods shrink with their requests")
}

// options returns the Options of the flags.
func (a *aimFlags) options() (resize.Options, error) {
	o := resize.Options{MinHistory: a.minHistory, Up: a.up, Limits: a.limits}
	o.CPU.Percentile, o.Memory.Percentile = a.percentile, a.memoryPercentile
	for _, f := range []struct {
		flag, text string
		read       func(string) error
	}{
		{"headroom", a.headroom, func(s string) (err error) { o.CPU.Headroom, err = resizeapi.ParseShare(s); return err }},
		{"memory-headroom", a.memoryHeadroom, func(s string) (err error) { o.Memory.Headroom, err = resizeapi.ParseShare(s); return err }},
		{"floor", a.floor, func(s string) (err error) { o.CPU.Floor, err = resizeapi.ParseAmount(resize.CPU, s); return err }},
		{"memory-floor", a.memoryFloor, func(s string) (err error) { o.Memory.Floor, err = resizeapi.ParseAmount(resize.Memory, s); return err }},
	} {
		if err := f.read(f.text); err != nil {
			return o, fmt.Errorf("--%s: %w", f.flag, err)
		}
	}
	for _, name := range a.resources {
		o.Resources = append(o.Resources, resize.Resource(name))
	}
	return o, o.Validate()
}
