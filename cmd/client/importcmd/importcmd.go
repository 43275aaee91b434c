// Package importcmd is the command "weir import": it writes weir's files from those of other programs.
//
//	importcmd.go  the command and what it prints
//	adapter.go    the configuration of prometheus-adapter, with its lines
//	convert.go    its rules become weir's
//	query.go      its templates of queries become PromQL
package importcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/internal/humanize"
)

// NewCommand returns "import". Each subcommand imports the files of one program.
func NewCommand() *cobra.Command {
	return cli.Group("import", "Write weir's rules from the file of another program", "", newPrometheusAdapter())
}

// defaultURL is the URL in the rules if none is given.
const defaultURL = "http://prometheus.monitoring:9090"

func newPrometheusAdapter() *cobra.Command {
	var url string
	var custom []string
	cmd := &cobra.Command{
		Use:   "prometheus-adapter CONFIG",
		Short: "Write rules of metrics from a prometheus-adapter's configuration",
		Long: `Write rules of custom and external metrics from the configuration of a prometheus-adapter.
docs/from-prometheus-adapter.md describes the way.

The rules are written to the output, each with a comment that has its line in CONFIG. What
cannot be carried over is named with its line and the reason, and the exit status is 1.

The adapter looks in Prometheus for the series that its rules choose. With --url this command
does so once, and writes a rule for each metric. From outside the cluster, forward a port:
  kubectl -n monitoring port-forward service/prometheus 9090 &
  weir import prometheus-adapter config.yaml --url=http://localhost:9090 > rules.yaml

Where labels name custom resources by resources.template, name those too:
  kubectl get customresourcedefinitions -o name | sed 's,.*/,--custom-resource=,' |
    xargs weir import prometheus-adapter config.yaml --url=http://localhost:9090 > rules.yaml`,
		Args: cli.OneFile("configuration of prometheus-adapter"),
		RunE: func(cmd *cobra.Command, args []string) error {
			content, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("read configuration: %w", err)
			}
			c := converter{file: args[0]}
			if url != "" {
				client, err := history.New(history.Options{URL: url, MaxAnswer: maxAnswer})
				if err != nil {
					return err
				}
				defer client.Close()
				c.series = func(selector string) ([]map[string]string, error) {
					return recentSeries(cmd.Context(), client, selector)
				}
			}
			for _, name := range custom {
				c.custom = append(c.custom, schema.ParseGroupResource(strings.ToLower(name)))
			}
			config, err := parseConfig(args[0], content)
			if err != nil {
				return err
			}
			c.convert(config)
			return c.print(cmd.OutOrStdout(), cmd.ErrOrStderr(), cmp.Or(url, defaultURL))
		},
	}
	cmd.Flags().StringVar(&url, "url", "", "`URL` of a Prometheus that has the series of the rules")
	cmd.Flags().StringSliceVar(&custom, "custom-resource", nil, "`NAME` of a custom resource of the cluster, such as replicators.example.com; repeatable")
	return cmd
}

// Limits on the answer that lists series. The series of a large cluster's containers are some 100 MB.
const (
	maxAnswer     = 512 << 20
	seriesTimeout = 2 * time.Minute
)

// maxText is the number of bytes of a comment.
const maxText = 300

// recentSeries returns the series of the last hour that a selector matches.
func recentSeries(ctx context.Context, client *history.Client, selector string) ([]map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, seriesTimeout)
	defer cancel()
	now := time.Now()
	return client.Series(ctx, selector, now.Add(-time.Hour), now)
}

// print writes the rules to out, and the notes to both.
func (c *converter) print(out, errOut io.Writer, url string) error {
	slices.SortStableFunc(c.notes, func(a, b note) int { return cmp.Compare(a.line, b.line) })
	text := fmt.Sprintf("# From %s, by weir import prometheus-adapter.\nprometheus:\n  url: %s\nmetrics:\n", c.file, url)
	if len(c.rules) == 0 {
		text += "  []\n"
	}
	line := 0
	for i := range c.rules {
		r := &c.rules[i]
		if r.line != line {
			text += fmt.Sprintf("  # %s:%d: %s\n", c.file, r.line, humanize.Excerpt(r.from, maxText))
			line = r.line
		}
		text += r.text()
	}
	lost := 0
	for i, n := range c.notes {
		if n.lost {
			lost++
		}
		if i == 0 {
			text += "\n"
		}
		text += "# " + n.in(c.file) + "\n"
		fmt.Fprintln(errOut, n.in(c.file))
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	switch lost {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("one metric or rule is not carried over: see the line above")
	}
	return fmt.Errorf("%d metrics or rules are not carried over: see the lines above", lost)
}
