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
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/estimate"
)

// recommendCommand is one run of "recommend".
type recommendCommand struct {
	Options
	prometheus        prometheusFlags
	namespace, output string
	everywhere        bool
	withHPA           bool
	manifest          string // the file of --filename
	timeout           time.Duration
}

func newRecommend(o Options) *cobra.Command {
	r := &recommendCommand{Options: o}
	cmd := &cobra.Command{
		Use:   "recommend [NAMESPACE/POD | KIND/NAME]",
		Short: "Say which requests could be smaller, and what that frees",
		Long: `Say which requests of CPU and memory could be smaller by what their containers used,
and what that frees; of one pod, how each number comes about and why others stay.
Nothing is changed.

With --workloads, or of a workload such as deployment/web, the advice is for the pod
template: it comes from the readings of all pods, also of those that are gone, and with
-o patch it is a patch. With -f it is a diff of a file of manifests, for the workloads in
it. A request by whose utilisation an HPA scales stays as it is; of one workload the
command shows with which target of the HPA it could change.

weir remembers a quarter of an hour. With --prometheus the readings are of the time
since --since, and pods are read from the cluster; the Prometheus must scrape weir's
/metrics/cluster or the kubelets' /metrics/cadvisor.`,
		Example: fmt.Sprintf(`  %[1]s resize recommend
  %[1]s resize recommend -n shop --all
  %[1]s resize recommend shop/cart-0 --prometheus http://localhost:9090 --since 7d
  %[1]s resize recommend shop/cart-0 --percentile 99 --headroom 30%%
  %[1]s resize recommend --workloads -n shop
  %[1]s resize recommend deployment/web -n shop -o patch
  %[1]s resize recommend -n shop -f deploy.yaml | git apply`, o.Program),
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args) },
	}
	f := cmd.Flags()
	f.StringVarP(&r.namespace, "namespace", "n", "", "only this namespace")
	f.BoolVarP(&r.everywhere, "all-namespaces", "A", false, "all namespaces")
	f.Bool("all", false, "list requests that are to stay, too, with the reasons")
	f.Bool("workloads", false, "for Deployments and other workloads, by the readings of all their pods")
	addParameters(f)
	r.prometheus.addFlags(f)
	f.BoolVar(&r.withHPA, "with-hpa", false, "with -o patch also change requests by which an HPA scales, and its target with them")
	f.StringVarP(&r.manifest, "filename", "f", "", "print a diff of this `FILE` of manifests, for its workloads")
	f.StringVarP(&r.output, "output", "o", "", "wide, json, yaml, patch (of a workload), jsonpath=TEMPLATE or custom-columns=TITLE:PATH,...; a narrow table if empty")
	f.DurationVar(&r.timeout, "timeout", 30*time.Second, "time the answer may take")
	cli.CompleteFlag(cmd, "estimator", cli.Fixed(estimate.Names()...))
	cli.CompleteFlag(cmd, "output", cli.Fixed("wide", "json", "yaml", patchFormat, "jsonpath=", cli.CustomColumns))
	return cmd
}

func (r *recommendCommand) run(cmd *cobra.Command, args []string) error {
	if err := r.checkFlags(); err != nil {
		return err
	}
	request, err := r.request(cmd.Flags(), args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), r.timeout)
	defer cancel()
	line := cli.StartProgress(cmd.ErrOrStderr())
	defer line.Stop()
	list, err := r.recommend(ctx, request, line)
	line.Stop()
	switch {
	case err != nil:
		return err
	case r.manifest != "":
		return r.writeDiff(cmd.OutOrStdout(), cmd.ErrOrStderr(), list, request.Namespace)
	case r.output == patchFormat:
		return r.writePatches(cmd.OutOrStdout(), list)
	case r.output != "" && r.output != "wide":
		return cli.WriteDocument(cmd.OutOrStdout(), r.output, list)
	}
	p := &humanize.Page{}
	if request.Pod != "" || request.Workload.Name != "" {
		r.writePod(p, list, r.applyHint(cmd.Flags()))
	} else {
		r.writeList(p, list, request.All, r.applyHint(cmd.Flags()))
	}
	return p.Print(cmd.OutOrStdout())
}

// checkFlags returns an error for flags that make no sense.
func (r *recommendCommand) checkFlags() error {
	switch {
	case r.timeout <= 0:
		return cli.Usage(fmt.Errorf("--timeout cannot be %v", r.timeout))
	case r.withHPA && r.output != patchFormat:
		return cli.Usage(errors.New("--with-hpa is for -o patch"))
	}
	return cli.Output(r.output, "", "wide", patchFormat, cli.CustomColumns)
}

// applyHint returns a function for the command that applies a pod's recommendation, with the same
// flags.
func (r *recommendCommand) applyHint(f *pflag.FlagSet) func(*resize.PodRecommendation) string {
	return func(rec *resize.PodRecommendation) string {
		line := fmt.Sprintf("%s resize apply --pod %s/%s --recommended", r.Program, rec.Namespace, rec.Pod)
		if rec.Workload != nil {
			line = fmt.Sprintf("%s resize recommend %s/%s -o %s", r.Program, rec.Namespace, rec.Workload, patchFormat)
		}
		f.Visit(func(flag *pflag.Flag) {
			switch flag.Name {
			case "namespace", "all-namespaces", "all", "workloads", "output", "timeout":
			default:
				line += fmt.Sprintf(" --%s=%s", flag.Name, flagText(flag))
			}
		})
		return line
	}
}

// flagText returns the value of a flag as it is typed.
func flagText(flag *pflag.Flag) string { return strings.Trim(flag.Value.String(), "[]") }

// request returns the Request of the flags.
func (r *recommendCommand) request(f *pflag.FlagSet, args []string) (resizeapi.Request, error) {
	none := resizeapi.Request{}
	if r.everywhere && (r.namespace != "" || len(args) > 0) {
		return none, cli.Usage(errors.New("--all-namespaces excludes a namespace and a pod"))
	}
	request := resizeapi.NewRequest(r.namespace, "")
	for _, name := range resizeapi.Parameters {
		if !f.Changed(name) {
			continue
		}
		if err := request.Set(name, flagText(f.Lookup(name))); err != nil {
			return none, cli.Usage(fmt.Errorf("--%w", err))
		}
	}
	ref, err := setWorkload(&request, args)
	if err == nil && r.manifest != "" {
		err = r.askForManifest(&request, args)
	}
	if err != nil {
		return none, cli.Usage(err)
	}
	if r.writesManifests() && ref == "" && !request.Workloads {
		return none, cli.Usage(errors.New("-o patch is for workloads: name one, such as deployment/web, or add --workloads"))
	}
	if err := request.Validate(); err != nil {
		return none, cli.Usage(err)
	}
	if err := r.prometheus.check(f, &request.Options); err != nil {
		return none, err
	}
	return request, r.setScope(&request, ref, args)
}

// askForManifest makes the request one for all workloads, of which --filename has some.
func (r *recommendCommand) askForManifest(request *resizeapi.Request, args []string) error {
	if len(args) > 0 || r.output != "" {
		return errors.New("--filename names the workloads, and prints a diff: it excludes a pod, a workload and --output")
	}
	if err := request.Set("workloads", "true"); err != nil {
		return err
	}
	return request.Set("all", "true")
}

// setScope sets the namespace of the request, and its pod. ref is the workload that is named; empty for
// none.
func (r *recommendCommand) setScope(request *resizeapi.Request, ref string, args []string) (err error) {
	switch {
	case ref != "":
		request.Namespace, _, err = cli.ParseRef(ref, r.namespace, r.Namespace)
	case len(args) == 1:
		request.Namespace, request.Pod, err = cli.ParseRef(args[0], r.namespace, r.Namespace)
	case r.namespace == "" && !r.everywhere && r.Namespace != nil:
		request.Namespace, err = r.Namespace()
	}
	return err
}

// recommend returns the recommendations for pods or workloads.
func (r *recommendCommand) recommend(ctx context.Context, request resizeapi.Request, line *cli.Progress) (*resizeapi.RecommendationList, error) {
	if request.Workloads || request.Workload.Name != "" {
		return r.recommendWorkloads(ctx, request, line)
	}
	return r.readUsage(ctx, request, line)
}

// readUsage asks weir, or computes the recommendations itself from the readings of Prometheus.
func (r *recommendCommand) readUsage(ctx context.Context, request resizeapi.Request, line *cli.Progress) (*resizeapi.RecommendationList, error) {
	if r.prometheus.url != "" {
		client, err := r.Cluster()
		if err != nil {
			return nil, err
		}
		return r.prometheus.recommend(ctx, client, request, line)
	}
	w, err := r.Connect()
	if err != nil {
		return nil, err
	}
	line.Set("asking weir", 0, 0)
	return w.Recommend(ctx, request)
}

// addParameters adds a flag for each parameter of a request except --all.
func addParameters(f *pflag.FlagSet) {
	d := resize.Defaults()
	percent := func(share float64) string { return fmt.Sprintf("%.4g%%", share*100) }
	f.String("estimator", estimate.OwnRule, "how a request follows from the readings: "+strings.Join(estimate.Names(), ", ")+"; percentiles and headroom are of "+estimate.OwnRule)
	f.Float64("percentile", d.CPU.Percentile, "share of CPU readings, in percent, that a request covers")
	f.String("headroom", percent(d.CPU.Headroom), "`SHARE` that is added to the CPU used")
	f.String("floor", resize.FormatAmount(resize.CPU, d.CPU.Floor), "`CPU` that no request is to go below")
	f.Float64("memory-percentile", d.Memory.Percentile, "share of memory readings, in percent, that a request covers")
	f.String("memory-headroom", percent(d.Memory.Headroom), "`SHARE` that is added to the memory used")
	f.String("memory-floor", resize.FormatAmount(resize.Memory, d.Memory.Floor), "`MEMORY` that no request is to go below")
	f.StringSlice("resources", []string{"cpu", "memory"}, "what may change: cpu, memory")
	f.Duration("min-history", d.MinHistory, "how long a container must have been measured; with --prometheus by default a day, or half of --since if that is less")
	f.Bool("up", false, "let requests grow, too, up to the limit")
	f.Bool("limits", false, "let limits of Guaranteed pods shrink with their requests")
}
