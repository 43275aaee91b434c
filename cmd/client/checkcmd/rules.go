// Package checkcmd is the command "weir check": it finds the mistakes in a file before a server
// reads it.
package checkcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	metricsapi "sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/externalmetrics"
	"github.com/weir-metrics/weir/api/externalmetrics/rules"
	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/flags/stageflag"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/sinks/memory"
)

// NewCommand returns "check". Each subcommand checks one kind of file.
func NewCommand() *cobra.Command {
	return cli.Group("check", "Find the mistakes in a file before weir reads it", "", newCheckRules())
}

func newCheckRules() *cobra.Command {
	var (
		try            bool
		namespace, url string
		files          []string
		sink           = stageflag.StageList{What: "sink", Known: []string{"memory"}}
	)
	cmd := &cobra.Command{
		Use:   "rules FILE",
		Short: "Check the rules of custom and external metrics",
		Long: `Check the rules of custom and external metrics, and show the query that each becomes
for a namespace, or what it is over time. Every mistake is a line FILE:LINE:COLUMN: what is wrong and what to do;
the exit status is then 1. docs/external-metrics.md describes the file.

With --try each query is sent. Its values are shown, and then for each rule how many
series and objects there were, and how long Prometheus took. From outside the cluster,
forward a port first:
  kubectl -n monitoring port-forward service/prometheus 9090 &
  weir check rules rules.yaml --try --url=http://localhost:9090 --namespace=shop`,
		Args: cli.OneFile("file of rules"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if url != "" && !try {
				return cli.Usage(errors.New("--url needs --try"))
			}
			content, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("read rules: %w", err)
			}
			remembered, err := memoryOf(sink.Stages)
			if err != nil {
				return cli.Usage(fmt.Errorf("--sink: %w", err))
			}
			r, err := rules.ParseFor(remembered, args[0], content)
			var mistakes rules.Mistakes
			switch {
			case errors.As(err, &mistakes):
				return printMistakes(cmd.OutOrStdout(), args[0], mistakes)
			case err != nil:
				return err
			}
			if !try {
				return showRules(cmd.OutOrStdout(), r, namespace)
			}
			line := cli.StartProgress(cmd.ErrOrStderr())
			defer line.Stop()
			return tryRules(cmd.Context(), cmd.OutOrStdout(), line, externalmetrics.Options{File: args[0], MayName: files, URL: url, Memory: remembered}, namespace)
		},
	}
	cmd.Flags().BoolVar(&try, "try", false, "send each query and show its result")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "default", "`NAMESPACE` on whose behalf to ask")
	cmd.Flags().StringVar(&url, "url", "", "`URL` of the Prometheus that --try asks; the file's if empty")
	cmd.Flags().StringSliceVar(&files, "external-rules-file", nil, "`FILE` outside the folder of the rules that they may name with --try; repeatable")
	cmd.Flags().Var(&sink, "sink", "the server's --sink=memory, if it is given there, for rules over time")
	return cmd
}

// memoryOf returns what a server with these sinks remembers.
func memoryOf(sinks []stageflag.Stage) (m rules.Memory, err error) {
	var o memory.Options
	for _, s := range sinks {
		if o, err = memory.ParseOptions(s.Config, s.Options); err != nil {
			return m, err
		}
	}
	m.Length, m.Metrics = o.Remembered()
	return m, nil
}

// printMistakes prints the mistakes of a file, one on each line. A misspelt name gets the most
// similar known name.
func printMistakes(out io.Writer, file string, mistakes rules.Mistakes) error {
	for _, m := range mistakes {
		if near, ok := cli.Closest(m.Wrong, m.Known); ok {
			m.Text += fmt.Sprintf("; did you mean %s?", near)
		}
		fmt.Fprintln(out, m)
	}
	if len(mistakes) == 1 {
		return fmt.Errorf("%s has a mistake", file)
	}
	return fmt.Errorf("%s has %d mistakes", file, len(mistakes))
}

// showRules prints the query of each rule for a namespace.
func showRules(out io.Writer, r *rules.Rules, namespace string) error {
	rows := [][]string{{"METRIC", "NAMESPACE BY", "OVER", "QUERY IN NAMESPACE " + namespace}}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		if m.OverTime != nil {
			rows = append(rows, []string{m.ID(), "-", model.Duration(m.Window).String(), "(" + m.OverTime.String() + ", of weir's memory)"})
			continue
		}
		query, err := m.QueryFor(namespace, labels.Everything())
		if err != nil {
			return fmt.Errorf("narrow the query of %s: %w", m.Name, err)
		}
		over := "-"
		if m.Window > 0 {
			over = model.Duration(m.Window).String() // the format of queries
		}
		rows = append(rows, []string{m.ID(), cmp.Or(m.NamespaceLabel, "-"), over, query})
	}
	var answer humanize.Page
	answer.Table(rows)
	return answer.Print(out)
}

// maxObjects is the number of values of a rule that tryRules prints.
const maxObjects = 10

// tryRules queries each metric. It prints one line for each value, and then one for each metric. line
// shows which one it queries.
func tryRules(ctx context.Context, out io.Writer, line *cli.Progress, o externalmetrics.Options, namespace string) error {
	p, err := externalmetrics.New(o)
	if err != nil {
		return err
	}
	defer p.Close()
	values := [][]string{{"METRIC", "VALUE", "LABELS OR OBJECT"}}
	summary := [][]string{{"METRIC", "SERIES", "OBJECTS", "TIME"}}
	failed := 0
	all := p.Rules().Metrics
	for i := range all {
		m := &all[i]
		if m.OverTime != nil {
			values = append(values, []string{m.ID(), "-", "a running weir answers it from its memory"})
			continue
		}
		line.Set(fmt.Sprintf("asking Prometheus, %d of %d: %s", i+1, len(all), m.ID()), 0, 0)
		began := time.Now()
		r, err := tryRule(ctx, p, m, namespace)
		duration := time.Since(began).Round(time.Millisecond).String()
		if err != nil {
			failed++
			r = ruleResult{rows: [][]string{{m.ID(), "-", err.Error()}}, series: "-", objects: "-"}
		}
		slices.SortFunc(r.rows, slices.Compare)
		if more := len(r.rows) - maxObjects; more > 0 {
			r.rows = append(r.rows[:maxObjects], []string{m.ID(), "…", fmt.Sprintf("and %d more", more)})
		}
		values = append(values, r.rows...)
		summary = append(summary, []string{m.ID(), r.series, r.objects, duration})
	}
	line.Stop()
	var answer humanize.Page
	answer.Table(values)
	if len(summary) > 1 { // a rule was asked
		answer.Gap()
		answer.Table(summary)
	}
	if err := answer.Print(out); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d rules return no value to scale by", failed, len(all))
	}
	return nil
}

// ruleResult is what a rule returned: a row for each value, and counts as text.
type ruleResult struct {
	rows            [][]string
	series, objects string
}

func tryRule(ctx context.Context, p *externalmetrics.Provider, m *rules.Rule, namespace string) (r ruleResult, err error) {
	if m.Object != nil {
		return tryObjects(ctx, p, m, namespace)
	}
	list, err := p.GetExternalMetric(ctx, namespace, labels.Everything(), metricsapi.ExternalMetricInfo{Metric: m.Name})
	if err != nil {
		return r, err
	}
	for _, v := range list.Items {
		r.rows = append(r.rows, []string{v.MetricName, v.Value.String(), metricsgroup.WithoutName(v.MetricLabels).String()})
	}
	r.series, r.objects = strconv.Itoa(len(list.Items)), "-"
	return r, nil
}

// tryObjects queries the metric of the objects in a namespace.
func tryObjects(ctx context.Context, p *externalmetrics.Provider, m *rules.Rule, namespace string) (r ruleResult, err error) {
	if m.NamespaceLabel == "" {
		namespace = ""
	}
	values, err := p.GetObjectMetric(ctx, namespace, labels.Everything(), metricsapi.CustomMetricInfo{GroupResource: m.Object.Resource, Metric: m.Name})
	if err != nil {
		return r, err
	}
	names := values.Names()
	if len(names) == 0 {
		return r, errors.New(values.WhyMissing(ctx, "").Message)
	}
	for _, name := range names {
		v, err := values.Value(name)
		if err != nil {
			return r, err
		}
		r.rows = append(r.rows, []string{m.ID(), v.Value.String(), m.Object.Label + "=" + name})
	}
	r.series, r.objects = strconv.Itoa(values.Series()), strconv.Itoa(len(names))
	return r, nil
}
