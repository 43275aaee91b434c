// Package doctorcmd is the "doctor" command of weir and of kubectl-weir: it looks through a cluster
// for what commonly keeps numbers from kubectl top, from HPAs and from agents, and describes what to do.
// It needs no more than the rights of the user's kubeconfig, and describes what it could not look at.
//
// Files: command.go has the command and its text, checks.go the checks.
package doctorcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// Asker asks weir. *cli.Weir implements it.
type Asker interface {
	Missing(ctx context.Context, namespace metric.Namespace) (*explain.MissingReport, error)
}

// Options adapt the command to its program.
type Options struct {
	// Connect returns the weir to ask.
	Connect func() (Asker, error)
	// Cluster returns a client of the cluster's API server.
	Cluster func() (*cli.Kube, error)
	// Program is the command before "doctor". Default "weir".
	Program string
}

// Result describes how a check ended.
type Result string

// The results.
const (
	OK      Result = "ok"
	Warning Result = "warning" // may become a failure, or is worse than it could be
	Failure Result = "failure" // numbers are missing because of it
	Skipped Result = "skipped" // could not be looked at
)

// Finding is what one check found. A check may have several.
type Finding struct {
	Check   string `json:"check"` // what was looked at: "API server", "metrics.k8s.io"
	Result  Result `json:"result"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
}

// Report is the answer as a document.
type Report struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"` // "DoctorReport"
	Findings   []Finding `json:"findings"`
}

// NewCommand returns "doctor".
func NewCommand(o Options) *cobra.Command {
	o.Program = cmp.Or(o.Program, "weir")
	var flags cli.AnswerFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look through a cluster for what keeps numbers from kubectl top and autoscalers",
		Long: `Look through a cluster for what keeps numbers from kubectl top and autoscalers, and
show what to do: the API server and its aggregation layer, who serves the metrics
APIs, weir's pods and rights, kubelets, their certificates and settings, HPAs,
everything that weir itself knows to be missing, receivers that accept nothing of
what weir sends, and other adapters that do not answer. Nothing is changed.

It has the rights of your kubeconfig. What you may not read is skipped, and named.`,
		Example: "  " + o.Program + " doctor\n  " + o.Program + " doctor --exit-code -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ask := func(ctx context.Context, cluster *cli.Kube) ([]Finding, error) {
				e := &examination{cluster: cluster, connect: o.Connect, program: o.Program, line: cli.StartProgress(cmd.ErrOrStderr())}
				defer e.line.Stop()
				return e.run(ctx), nil
			}
			text := func(out io.Writer, findings []Finding) error {
				p := &humanize.Page{Colour: cli.TerminalOf(out).Colour}
				write(p, findings)
				return p.Print(out)
			}
			return cli.AskOnce(cmd, &flags, o.Cluster, ask, text, func(findings []Finding) any {
				return Report{weirdev.APIVersion, "DoctorReport", findings}
			}, func(findings []Finding) bool { return count(findings, Failure) > 0 })
		},
	}
	flags.Add(cmd, cmd.Flags(), 30*time.Second, "time that all checks together may take")
	cmd.Flags().BoolVar(&flags.ExitCode, "exit-code", false, "exit with status 2 if there is a failure")
	return cmd
}

func count(findings []Finding, r Result) (n int) {
	for _, f := range findings {
		if f.Result == r {
			n++
		}
	}
	return n
}

// tints are the colours of results on a terminal.
var tints = map[Result]humanize.Tint{OK: humanize.Plain, Warning: humanize.Amber, Failure: humanize.Red, Skipped: humanize.Dim}

// write writes the findings for people, in the order of the checks, and the sum last.
func write(p *humanize.Page, findings []Finding) {
	width := 0
	for _, f := range findings {
		width = max(width, len(f.Check))
	}
	for _, f := range findings {
		p.Labelled(0, fmt.Sprintf("%-7s  %-*s  ", f.Result, width, f.Check), tints[f.Result], f.Message)
		if f.Advice != "" {
			p.Labelled(len("warning")+2+width+2, "do  ", humanize.Plain, f.Advice)
		}
	}
	p.Gap()
	var sum []string
	for _, r := range []Result{Failure, Warning, Skipped, OK} {
		if n := count(findings, r); n > 0 {
			noun := string(r)
			if r == Failure || r == Warning {
				noun = humanize.Plural(n, noun)
			}
			sum = append(sum, fmt.Sprintf("%d %s", n, noun))
		}
	}
	p.Line(0, humanize.Bold, strings.Join(sum, ", ")+".")
}
