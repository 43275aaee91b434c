package explaincmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/manifest"
	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/client/terminal"
)

func (a *asking) autoscaler() *cobra.Command {
	cmd := a.scaler(manifest.Autoscaler, "autoscaler")
	cmd.Aliases = []string{"autoscalers"}
	cmd.Short = "Explain the last decision of an Autoscaler"
	cmd.Example = a.examples("autoscaler shop/web", "autoscaler web -n shop -o json")
	return cmd
}

func (a *asking) hpa() *cobra.Command {
	cmd := a.scaler(manifest.HorizontalPodAutoscaler, "hpa")
	cmd.Aliases = []string{"hpas", "horizontalpodautoscaler", "horizontalpodautoscalers"}
	cmd.Short = "Explain what weir decides for a HorizontalPodAutoscaler"
	cmd.Long = `Explain what weir decides for a HorizontalPodAutoscaler: the decision of
kube-controller-manager on the same metrics, told in full. Where weir shadows it
(--shadow-hpa) that is the last decision, and the report says where the two differ;
otherwise one is made for the answer, and nothing of earlier ones is remembered.`
	cmd.Example = a.examples("hpa shop/web", "hpa web -n shop -o json")
	return cmd
}

// scaler returns the command about one kind of autoscaler, which noun names.
func (a *asking) scaler(kind, noun string) *cobra.Command {
	cmd := &cobra.Command{
		Use: noun + " NAMESPACE/NAME",
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, name, err := a.scalerRef(noun, args)
			if err != nil {
				return err
			}
			ask := func(ctx context.Context, w Asker) (*decisionreport.DecisionReport, error) {
				return w.Autoscaler(ctx, kind, namespace, name)
			}
			return answer(a, cmd, ask, a.writeReport, decisionDocument)
		},
		ValidArgsFunction: a.completeInNamespace,
	}
	a.addNamespace(cmd)
	return cmd
}

// scalerRef reads NAMESPACE/NAME, or NAME with the namespace said elsewhere.
func (a *asking) scalerRef(noun string, args []string) (namespace, name string, err error) {
	text, err := one(noun, args)
	if err != nil {
		return "", "", err
	}
	parts := strings.Split(text, "/")
	if len(parts) > 2 {
		return "", "", cli.Usage(fmt.Errorf("%q is no NAMESPACE/NAME", text))
	}
	ref, err := a.ref(parts)
	return string(ref.Namespace), string(ref.Name), err
}

func (a *asking) writeReport(cmd *cobra.Command, r *decisionreport.DecisionReport) error {
	return WriteReport(cmd.OutOrStdout(), a.Program, r)
}

func decisionDocument(r *decisionreport.DecisionReport) any {
	return autoscaling.NewResponse(autoscaling.ExplanationKind, r)
}

// WriteReport writes a decision for people. What weir says to type becomes what
// program is called: who has kubectl need not have weir.
func WriteReport(w io.Writer, program string, r *decisionreport.DecisionReport) error {
	var text strings.Builder
	if err := r.WriteText(&text, terminal.Of(w).Colour); err != nil {
		return err
	}
	if _, err := io.WriteString(w, strings.ReplaceAll(text.String(), "`weir ", "`"+program+" ")); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}
