package explaincmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/autoscaler/manifest"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// workloadAnswer is a report on a workload, with the decisions about it.
type workloadAnswer struct {
	*explainapi.ReportDocument
	// Decisions are one sentence for each of the workload's autoscalers.
	Decisions []workloadDecision `json:"decisions,omitempty"`
}

type workloadDecision struct {
	Kind       string `json:"kind"`
	Autoscaler string `json:"autoscaler"` // as namespace/name
	Summary    string `json:"summary"`
}

func (a *asking) workload() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "workload NAMESPACE/KIND/NAME",
		Aliases: append([]string{"workloads"}, slices.Sorted(maps.Keys(cli.WorkloadKinds))...),
		Short:   "Explain the pods of a Deployment, StatefulSet or other workload, and its autoscalers",
		Long: `Say what the pods of a workload use together, which of them have no numbers and why, and
what its autoscalers decide: HorizontalPodAutoscalers, and weir's own Autoscalers. A
ReplicaSet of a Deployment counts as the Deployment.`,
		Example: a.examples("workload shop/deployment/web", "deployment shop/web", "workload deployment/web -n shop -o json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, ref, err := a.workloadRef(cmd.CalledAs(), args)
			if err != nil {
				return err
			}
			ask := func(ctx context.Context, w Asker) (*workloadAnswer, error) {
				report, err := w.Workload(ctx, namespace, ref)
				if err != nil {
					return nil, err
				}
				return &workloadAnswer{explainapi.NewReport(*report), decisions(ctx, w, report.Workload)}, nil
			}
			text := onPage(a.Program, func(p *page, found *workloadAnswer) {
				writeReport(p, &found.MissingReport)
				for _, d := range found.Decisions {
					p.Gap()
					noun := "hpa "
					if d.Kind == manifest.Autoscaler {
						noun = "autoscaler "
					}
					p.paragraph(noun+d.Autoscaler+": ", d.Summary)
				}
			})
			return answer(a, cmd, ask, text, func(found *workloadAnswer) any { return found }, func(found *workloadAnswer) bool {
				return incomplete(&found.MissingReport)
			})
		},
		ValidArgsFunction: firstArgument(a.completeWorkloads),
	}
	a.addNamespace(cmd, "namespace, where the name does not begin with one")
	return cmd
}

// workloadRef parses NAMESPACE/KIND/NAME, or KIND/NAME with the namespace of the flag or the kubeconfig.
// If the command was called as a kind, it parses NAMESPACE/NAME or NAME.
func (a *asking) workloadRef(calledAs string, args []string) (metric.Namespace, cluster.Owner, error) {
	text, err := one("workload", args)
	if err != nil {
		return "", cluster.Owner{}, err
	}
	parts := strings.Split(text, "/")
	if cli.WorkloadKinds[calledAs] != "" {
		parts = slices.Insert(parts, len(parts)-1, calledAs)
	}
	if len(parts) < 2 || len(parts) > 3 {
		return "", cluster.Owner{}, cli.Usage(fmt.Errorf("%q is not a workload: write NAMESPACE/KIND/NAME, or KIND/NAME with -n", text))
	}
	kind, name := strings.ToLower(parts[len(parts)-2]), parts[len(parts)-1]
	full, known := cli.WorkloadKinds[kind]
	kind = cmp.Or(full, kind)
	switch {
	case kind == "":
		return "", cluster.Owner{}, cli.Usage(errors.New("a kind cannot be empty"))
	case len(parts) == 2 && a.namespace == "" && a.Namespace == nil:
		if !known { // it can be NAMESPACE/NAME, too
			return "", cluster.Owner{}, cli.Usage(fmt.Errorf("%q has no kind or no namespace: write NAMESPACE/KIND/NAME, such as %s/deployment/%s", text, parts[0], name))
		}
		return "", cluster.Owner{}, cli.Usage(fmt.Errorf("in which namespace is %s? Write NAMESPACE/%[1]s, or add -n NAMESPACE", strings.Join(parts, "/")))
	}
	namespace, name, err := cli.ParseRef(strings.Join(append(parts[:len(parts)-2:len(parts)-2], name), "/"), a.namespace, a.Namespace)
	return metric.Namespace(namespace), cluster.Owner{Kind: kind, Name: name}, err
}

// decisions asks what is decided about each of a workload's autoscalers. An error takes
// the place of a decision: the report is an answer without it.
func decisions(ctx context.Context, w Asker, workload *explain.Workload) (all []workloadDecision) {
	for _, autoscaler := range workload.Autoscalers {
		own, namespace, name := explain.ParseAutoscalerName(autoscaler)
		d := workloadDecision{Kind: manifest.HorizontalPodAutoscaler, Autoscaler: namespace + "/" + name}
		if own {
			d.Kind = manifest.Autoscaler
		}
		if report, err := w.Autoscaler(ctx, d.Kind, namespace, name); err != nil {
			d.Summary = err.Error()
		} else {
			d.Summary = strings.TrimPrefix(report.Summary, name+": ")
		}
		all = append(all, d)
	}
	return all
}
