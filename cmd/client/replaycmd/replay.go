// Package replaycmd is the command "weir autoscaler replay": it shows what an autoscaler's manifest
// would have done in the past. replay.go has the flags and writes the report. source.go reads the
// trace, from a recording or a Prometheus.
package replaycmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/autoscaler/manifest"
	"github.com/weir-metrics/weir/autoscaler/replay"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/client/evaluatecmd"
	"github.com/weir-metrics/weir/cmd/client/recordingcmd"
	"github.com/weir-metrics/weir/manager"
)

// command is one run of the command.
type command struct {
	file, against, namespace string
	from, to                 string
	source                   source
	startup, delay, every    time.Duration
	initial                  int32
	requests                 map[string]string
	csv, svg, output         string
}

// NewCommand returns "replay". pipeline returns the processors of a source, as in a running weir.
func NewCommand(pipeline func(manager.Spec) []manager.Processor) *cobra.Command {
	c := command{source: source{pipeline: pipeline}}
	cmd := &cobra.Command{
		Use:   "replay -f FILE --recording FILE | --prometheus URL",
		Short: "Say how many replicas a manifest would have asked for, over a past time",
		Long: `Say how many replicas the manifest of a HorizontalPodAutoscaler (autoscaling/v2) or an
Autoscaler would have asked for, over a time that was recorded or that a Prometheus
remembers: as a table of changes with totals, as CSV, and as a chart. With --against,
two manifests are compared. Nothing is written to the cluster.

Every 15 s the code that decides live looks at a model of the workload: what its pods
used together is spread evenly over those that are ready; new pods need time to become
ready and to be measured. docs/replay.md lists what that leaves out.`,
		Example: `  weir autoscaler replay -f new.yaml --against old.yaml --prometheus http://localhost:9090 --from 7d
  weir autoscaler replay -f new.yaml --recording run.weirrec --svg replay.svg
  weir autoscaler replay -f new.yaml --prometheus http://localhost:9090 --from 24h --query queue_length='sum(queue_length{queue="mail"})'
  weir autoscaler replay -f new.yaml --recording run.weirrec --csv - > replay.csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			line := cli.StartProgress(cmd.ErrOrStderr())
			defer line.Stop()
			return c.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), line, cmd.Flags())
		},
	}
	c.addFlags(cmd.Flags())
	cli.CompleteFlag(cmd, "output", cli.Fixed("table", "json", "yaml", "jsonpath="))
	return cmd
}

func (c *command) addFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&c.file, "filename", "f", "", `the manifest, in YAML or JSON; "-" reads standard input`)
	flags.StringVar(&c.against, "against", "", "another manifest for the same target, to compare with: the one in force")
	flags.StringVarP(&c.namespace, "namespace", "n", "", "namespace, where the manifest names none")
	flags.StringVar(&c.from, "from", "", "where to begin: 2026-01-02T12:00:00Z, or how long ago: 36h, 7d (default: a day ago); of a recording, how long after its beginning (default: there)")
	flags.StringVar(&c.to, "to", "", "where to end, likewise (default: now; of a recording, its end)")
	c.source.addFlags(flags)
	flags.DurationVar(&c.startup, "startup", 0, "how long a new pod takes to become ready (default: the median of what was measured, else 30s)")
	flags.DurationVar(&c.delay, "metric-delay", 30*time.Second, "how long after its start a pod is measured for the first time")
	flags.Int32Var(&c.initial, "initial-replicas", 0, "replicas to begin with (default: as recorded, else minReplicas)")
	flags.StringToStringVar(&c.requests, "request", nil, "what a container requests, where the source does not know or to try another: `CONTAINER/RESOURCE=QUANTITY`, or RESOURCE=QUANTITY for a pod of one container")
	flags.DurationVar(&c.every, "every", 0, "in the table, a line for each span of this length instead of one for each change")
	flags.StringVar(&c.csv, "csv", "", `also write each sync to a file; "-" writes it to standard output instead of the table`)
	flags.StringVar(&c.svg, "svg", "", "also draw a chart into a file")
	flags.StringVarP(&c.output, "output", "o", "table", "table, json, yaml or jsonpath=TEMPLATE")
}

func (c *command) run(ctx context.Context, in io.Reader, out io.Writer, line *cli.Progress, flags *pflag.FlagSet) error {
	if err := cli.Output(c.output, "table"); err != nil {
		return err
	}
	if err := c.source.check(); err != nil {
		return err
	}
	for _, name := range []string{"startup", "metric-delay", "every"} {
		if d, err := flags.GetDuration(name); err != nil || d < 0 {
			return cli.Usage(fmt.Errorf("--%s cannot be %v", name, d))
		}
	}
	if c.initial < 0 {
		return cli.Usage(fmt.Errorf("--initial-replicas cannot be %d", c.initial))
	}
	manifests, names, err := c.manifests(in)
	if err != nil {
		return err
	}
	ask, err := c.traceRequest(manifests)
	if err != nil {
		return err
	}
	trace, err := c.source.read(ctx, ask, line)
	if err != nil {
		return err
	}
	if err := setRequests(trace, c.requests); err != nil {
		return err
	}
	o := replay.DefaultOptions(trace)
	o.MetricDelay, o.Initial = c.delay, c.initial
	if flags.Changed("startup") {
		o.Startup = c.startup
		trace.Startup.Pods = max(trace.Startup.Pods, 1) // the flag gives the startup time, so it is known
	}
	report := replay.NewComparison(trace)
	for i, m := range manifests {
		o.Progress = func(done, total time.Duration) { line.Set("replaying "+names[i], int64(done), int64(total)) }
		result, err := replay.Run(trace, m.Spec, o)
		if err != nil {
			return cli.Hintf(fmt.Errorf("replay %s: %w", names[i], err), "%s", "See --query for a metric that is neither cpu nor memory, and --request for what pods request.")
		}
		report.Add(names[i], result)
	}
	line.Stop()
	return c.write(out, report)
}

// manifests reads the manifests to compare. The first is the baseline.
func (c *command) manifests(in io.Reader) (list []*manifest.Manifest, names []string, err error) {
	paths := []string{c.file}
	if c.against != "" {
		paths = []string{c.against, c.file}
	}
	if c.file == "-" && c.against == "-" {
		return nil, nil, cli.Usage(errors.New("both manifests cannot be read from standard input"))
	}
	for _, path := range paths {
		_, m, err := evaluatecmd.ReadManifest(in, path)
		if err != nil {
			return nil, nil, err
		}
		list, names = append(list, m), append(names, filepath.Base(path))
	}
	if len(list) == 2 {
		if a, b := list[0].Spec.ScaleTargetRef, list[1].Spec.ScaleTargetRef; a.Kind != b.Kind || a.Name != b.Name {
			return nil, nil, fmt.Errorf("%s scales %s/%s and %s scales %s/%s: they cannot be compared", paths[0], a.Kind, a.Name, paths[1], b.Kind, b.Name)
		}
		if names[0] == names[1] {
			names = paths
		}
	}
	return list, names, nil
}

// traceRequest returns the request for a source.
func (c *command) traceRequest(manifests []*manifest.Manifest) (traceRequest, error) {
	last := manifests[len(manifests)-1]
	q := traceRequest{kind: last.Spec.ScaleTargetRef.Kind, name: last.Spec.ScaleTargetRef.Name, namespace: c.namespace}
	for _, m := range manifests {
		q.needs.Add(m.Spec)
		q.namespace = cmp.Or(q.namespace, m.Namespace)
		if m.Kind == manifest.HorizontalPodAutoscaler {
			q.autoscaler = m.Name
		}
	}
	if q.namespace == "" {
		return q, cli.Usage(errors.New("the manifest has no namespace: set --namespace"))
	}
	if err := c.span(&q); err != nil {
		return q, err
	}
	if !q.from.IsZero() && !q.to.IsZero() && !q.to.After(q.from) {
		return q, cli.Usage(fmt.Errorf("--to %s is not after --from %s", c.to, c.from))
	}
	return q, nil
}

// span parses --from and --to. For a recording, durations count from its beginning, as in weir
// recording cut. Otherwise they count back from now.
func (c *command) span(q *traceRequest) (err error) {
	now := time.Now()
	read := func(flag, text string) (time.Time, error) { return parseTimeAgo(flag, text, now) }
	if c.source.recording != "" && c.from+c.to != "" {
		first, err := recordingcmd.FirstTime(c.source.recording)
		if err != nil {
			return err
		}
		read = func(flag, text string) (time.Time, error) {
			m, err := recordingcmd.ParseTime(flag, text)
			if err != nil || !m.Given {
				return time.Time{}, err
			}
			return m.Since(first), nil
		}
	}
	if q.from, err = read("--from", c.from); err != nil {
		return err
	}
	q.to, err = read("--to", c.to)
	return err
}

// parseTimeAgo parses a time, or how long ago. It returns zero if the flag is not given.
func parseTimeAgo(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := cli.ParseDays(text); ok {
		return now.Add(-days), nil
	}
	at, err := autoscaling.ParseTime(text, now)
	if err != nil {
		return time.Time{}, cli.Usage(fmt.Errorf("%s: %w: write 2026-01-02T12:00:00Z, 36h or 7d", flag, err))
	}
	return at, nil
}

// write writes all outputs that the flags ask for.
func (c *command) write(out io.Writer, r *replay.Comparison) error {
	if c.svg != "" {
		if err := writeFile(c.svg, r.WriteSVG); err != nil {
			return err
		}
	}
	if c.csv == "-" {
		return r.WriteCSV(out)
	}
	if c.csv != "" {
		if err := writeFile(c.csv, r.WriteCSV); err != nil {
			return err
		}
	}
	if c.output != "table" {
		return cli.WriteDocument(out, c.output, r)
	}
	return r.WriteTable(out, c.every)
}

// writeFile writes a complete file or returns an error.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	if err := write(file); err != nil {
		file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return nil
}
