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
	"github.com/weir-metrics/weir/cluster/eventlog/event"
	"github.com/weir-metrics/weir/cmd/client/cli"
)

func (a *asking) autoscaler() *cobra.Command {
	cmd := a.scaler(manifest.Autoscaler, "autoscaler")
	cmd.Aliases = []string{"autoscalers"}
	cmd.Short = "Explain the last decision of an Autoscaler"
	return cmd
}

func (a *asking) hpa() *cobra.Command {
	cmd := a.scaler(manifest.HorizontalPodAutoscaler, "hpa")
	cmd.Aliases = []string{"hpas", "horizontalpodautoscaler", "horizontalpodautoscalers"}
	cmd.Short = "Explain what weir decides for a HorizontalPodAutoscaler"
	cmd.Long = `Explain what weir decides for a HorizontalPodAutoscaler: the decision of
kube-controller-manager on the same metrics, in full. Where weir shadows it
(--shadow-hpa) that is the last decision, and the report shows where the two differ;
otherwise one is made for the answer, and nothing of earlier ones is remembered.`
	return cmd
}

// scaler returns the command for one kind of autoscaler. noun is its name in help.
func (a *asking) scaler(kind, noun string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     noun + " NAMESPACE/NAME",
		Example: a.examples(noun+" shop/web", noun+" web -n shop -o json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := a.objectRef(noun, args)
			if err != nil {
				return err
			}
			var events objectEvents
			ask := func(ctx context.Context, w Asker) (*decisionreport.DecisionReport, error) {
				r, err := w.Autoscaler(ctx, kind, string(ref.Namespace), string(ref.Name))
				if err == nil && a.Output == "text" {
					events = eventsOn(ctx, w, event.Object{Kind: kind, Namespace: string(ref.Namespace), Name: string(ref.Name)})
				}
				return r, err
			}
			writeEvents := onPage(a.Program, func(p *page, r *decisionreport.DecisionReport) { events.write(p, r.At) })
			text := func(w io.Writer, r *decisionreport.DecisionReport) error {
				if err := WriteReport(w, a.Program, r); err != nil {
					return err
				}
				return writeEvents(w, r)
			}
			return answer(a, cmd, ask, text, func(r *decisionreport.DecisionReport) any {
				return autoscaling.NewResponse(autoscaling.ExplanationKind, r)
			}, func(r *decisionreport.DecisionReport) bool { return r.Error != "" })
		},
		ValidArgsFunction: firstArgument(a.completeScalers),
	}
	a.addNamespace(cmd, "namespace, where the name does not begin with one")
	return cmd
}

// WriteReport writes a decision for people, with commands in the form of program.
func WriteReport(w io.Writer, program string, r *decisionreport.DecisionReport) error {
	var text strings.Builder
	if err := r.WriteText(&text, cli.TerminalOf(w).Colour); err != nil {
		return err
	}
	if _, err := io.WriteString(w, cli.ForProgram(text.String(), program)); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}
