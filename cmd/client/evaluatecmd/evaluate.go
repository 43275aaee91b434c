// Package evaluatecmd is the "evaluate" command of weir and of kubectl-weir: it shows what an
// autoscaler's manifest would do now, with the present metrics. The two commands differ only in how
// they find a weir to ask. Nothing is changed anywhere.
package evaluatecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/manifest"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/client/explaincmd"
)

// Evaluator evaluates manifests. *cli.Weir implements it.
type Evaluator interface {
	Evaluate(ctx context.Context, e autoscaling.Evaluation) (*decisionreport.DecisionReport, error)
}

// Options adapt the command to its program.
type Options = cli.Options[Evaluator]

// asking is one run of the command.
type asking struct {
	Options
	cli.AnswerFlags
	file, namespace, at string
	replicas            int32
}

// NewCommand returns "evaluate".
func NewCommand(o Options) *cobra.Command {
	a := &asking{Options: o}
	a.Program = cmp.Or(a.Program, "weir")
	cmd := &cobra.Command{
		Use:   "evaluate -f FILE",
		Short: "Say what an autoscaler's manifest would do now, and why",
		Long: `Say what the manifest of a HorizontalPodAutoscaler (autoscaling/v2) or an Autoscaler
would do now, on the target's pods and metrics of this moment, and why. Nothing is
written: no autoscaler need exist, and none is changed.

Where weir already decides for an autoscaler of this kind and name, what it remembers
of earlier decisions counts: stabilization windows and policies hold as they would.`,
		Example: fmt.Sprintf(`  %[1]s autoscaler evaluate -f hpa.yaml
  %[1]s autoscaler evaluate -f hpa.yaml --replicas 10 --at 5m
  kubectl get hpa web -n shop -o yaml | %[1]s autoscaler evaluate -f -`, a.Program),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVarP(&a.file, "filename", "f", "", `the manifest, in YAML or JSON; "-" reads standard input`)
	f.StringVarP(&a.namespace, "namespace", "n", "", "namespace, where the manifest names none")
	f.StringVar(&a.at, "at", "", "an earlier time that weir still remembers, or how long ago: 2026-01-02T12:00:00Z, 5m (default: now)")
	f.Int32Var(&a.replicas, "replicas", 0, "assume that the target has so many replicas (default: what it has)")
	a.AnswerFlags.Add(cmd, f, 10*time.Second, "time the answer may take")
	f.BoolVar(&a.ExitCode, "exit-code", false, "exit with status 2 if there is no decision; with 1 if there is no answer")
	cli.CompleteFlag(cmd, "filename", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
	})
	return cmd
}

func (a *asking) run(cmd *cobra.Command) error {
	e, err := a.evaluation(cmd)
	if err != nil {
		return err
	}
	ask := func(ctx context.Context, w Evaluator) (*decisionreport.DecisionReport, error) {
		return w.Evaluate(ctx, e)
	}
	text := func(out io.Writer, r *decisionreport.DecisionReport) error {
		return explaincmd.WriteReport(out, a.Program, r)
	}
	return cli.AskOnce(cmd, &a.AnswerFlags, a.Connect, ask, text, func(r *decisionreport.DecisionReport) any {
		return autoscaling.NewResponse(autoscaling.EvaluationKind, r)
	}, func(r *decisionreport.DecisionReport) bool { return r.Error != "" })
}

// evaluation returns the evaluation that the flags describe. It returns an error for a wrong
// manifest before weir is asked.
func (a *asking) evaluation(cmd *cobra.Command) (autoscaling.Evaluation, error) {
	var none autoscaling.Evaluation
	if err := a.Check(); err != nil {
		return none, err
	}
	e := autoscaling.Evaluation{At: a.at}
	if cmd.Flags().Changed("replicas") {
		if a.replicas < 0 {
			return none, cli.Usage(fmt.Errorf("--replicas cannot be %d", a.replicas))
		}
		e.Replicas = &a.replicas
	}
	if a.at != "" {
		if _, err := autoscaling.ParseTime(a.at, time.Time{}); err != nil {
			return none, cli.Usage(fmt.Errorf("--at: %w: write 2026-01-02T12:00:00Z or 5m", err))
		}
	}
	file, m, err := ReadManifest(cmd.InOrStdin(), a.file)
	if err != nil {
		return none, err
	}
	e.Manifest = file
	e.Namespace, err = a.complete(m)
	return e, err
}

// ReadManifest reads the manifest at a path; "-" is stdin. It also returns the content of the file.
func ReadManifest(stdin io.Reader, path string) ([]byte, *manifest.Manifest, error) {
	var file []byte
	var err error
	switch path {
	case "":
		return nil, nil, cli.Usage(errors.New("which manifest? Name a file with -f, or - for standard input"))
	case "-":
		path = "standard input"
		file, err = io.ReadAll(io.LimitReader(stdin, manifest.MaxBytes+1))
	default:
		file, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read manifest: %w", err)
	}
	m, err := manifest.Read(file)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, m, nil
}

// complete returns the namespace: from the flag, the manifest or Options.Namespace.
func (a *asking) complete(m *manifest.Manifest) (string, error) {
	switch {
	case a.namespace != "" && m.Namespace != "" && a.namespace != m.Namespace:
		return "", cli.Usage(fmt.Errorf("-n is namespace %s, and the manifest has %s", a.namespace, m.Namespace))
	case a.namespace != "" || m.Namespace != "":
		return cmp.Or(a.namespace, m.Namespace), nil
	case a.Namespace != nil:
		namespace, err := a.Namespace()
		if err != nil || namespace != "" {
			return namespace, err
		}
	}
	return "", cli.Usage(fmt.Errorf("in which namespace is %s? Add -n NAMESPACE, or metadata.namespace to the manifest", m.Name))
}
