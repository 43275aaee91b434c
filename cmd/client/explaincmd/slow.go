package explaincmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/explain/slow"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

func (a *asking) slow() *cobra.Command {
	all, window := false, slow.DefaultWindow
	cmd := &cobra.Command{
		Use:   "slow [NAMESPACE/POD]",
		Short: "Say what pods wait for, and whether their own limits or their neighbours are the cause",
		Long: `Say for which share of the last minutes a pod waited for CPU, memory and disk I/O, and
why: its own limits, its own use, neighbours on its node that use more than they request,
or nobody; what shows it, and what to do.

Without a name it lists the pods of a namespace that waited, the one that lost the most
time first. With -n the name is POD.`,
		Example: a.examples("slow shop/web-1", "slow -A", "slow -n shop --window 10m", "slow -n shop web-1 -o json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := a.slowQuery(args, all, window)
			if err != nil {
				return err
			}
			ask := func(ctx context.Context, w Asker) (*slow.Report, error) {
				r, err := w.Slow(ctx, q)
				if q.Pod != "" {
					err = suggestPods(ctx, w, metric.PodRef{Namespace: q.Namespace, Name: q.Pod}, err)
				}
				return r, err
			}
			return answer(a, cmd, ask, onPage(a.Program, writeSlow), func(r *slow.Report) any { return explainapi.NewSlow(*r) }, nil)
		},
		ValidArgsFunction: firstArgument(a.completePods),
	}
	a.addListed(cmd, &all)
	cmd.Flags().DurationVar(&window, "window", window, "how far back to look, 15m at most")
	return cmd
}

// slowQuery parses NAMESPACE/POD, or POD with -n or, for a name without a slash, with the namespace of the
// kubeconfig.
func (a *asking) slowQuery(args []string, all bool, window time.Duration) (q slow.Query, err error) {
	q.Window = window
	switch {
	case window < slow.LeastWindow || window > slow.MaxWindow:
		return q, cli.Usage(fmt.Errorf("--window cannot be %v: weir answers for %v to %v", window, slow.LeastWindow, slow.MaxWindow))
	case all:
		return q, a.checkAll(args)
	case len(args) > 0:
		ref, err := a.objectRef("pod", args)
		q.Namespace, q.Pod = ref.Namespace, ref.Name
		return q, err
	}
	q.Namespace, err = a.listedNamespace()
	return q, err
}

// writeSlow writes the answer about one pod in full, or those of a namespace in one line each.
func writeSlow(p *page, r *slow.Report) {
	p.line(0, "", humanize.Bold, r.Summary)
	switch {
	case r.Pod != "":
		for i := range r.Pods {
			writeSlowPod(p, &r.Pods[i])
		}
		return
	case len(r.Pods) > 0:
		rows := [][]string{{"LOST", "NAMESPACE", "POD", "RESOURCE", "CAUSE", "WHY"}}
		for i := range r.Pods {
			s := &r.Pods[i]
			rows = append(rows, []string{humanize.Percent(s.Lost), s.Namespace, s.Pod, string(s.Resource), string(s.Cause), s.Message})
		}
		p.list("slow", r.Namespace == "", rows)
	}
	p.leftOut(r.LeftOut)
	if r.NotKnown != "" {
		p.Gap()
		p.paragraph("Not known: ", r.NotKnown)
	}
}

// writeSlowPod writes what follows the summary of one pod.
func writeSlowPod(p *page, s *slow.Slow) {
	on := "on " + s.Node
	if s.Workload != nil {
		on += ", of " + s.Workload.Kind + " " + s.Workload.Name
	}
	p.item(2, "pod", on)
	p.item(2, "time", fmt.Sprintf("%s until %s, of which %s were measured", humanize.Duration(s.To.Sub(s.From).Round(time.Second)), humanize.Clock(s.To, s.To), humanize.Seconds(s.MeasuredSeconds)))
	var waited []string
	for i := range s.Stalls {
		if s.Stalls[i].Some != nil {
			waited = append(waited, stallText(&s.Stalls[i]))
		}
	}
	p.items(2, "waited", waited)
	p.items(2, "facts", s.Evidence)
	p.items(2, "unsure", s.NotKnown)
	p.advise(2, s.Advice)
}

// stallText is a line about one resource that was measured: "cpu 62% (OwnLimit 60%, Neighbours 2%)".
func stallText(s *slow.Stall) string {
	text := string(s.Resource) + " " + humanize.Percent(*s.Some)
	if len(s.Parts) == 0 {
		return text
	}
	parts := make([]string, len(s.Parts))
	for i, part := range s.Parts {
		parts[i] = string(part.Cause) + " " + humanize.Percent(part.Share)
	}
	return text + " (" + strings.Join(parts, ", ") + ")"
}
