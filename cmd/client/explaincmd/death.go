package explaincmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

func (a *asking) death() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "death [NAMESPACE/POD[/CONTAINER]]",
		Aliases: []string{"deaths"},
		Short:   "Say why containers and pods ended: which limit, who stopped them, or their own exit",
		Long: `Say why the containers and pods of the last hour ended, also those that are gone: killed by
the kernel at which memory limit, evicted by whom, stopped for a failed probe, deleted, or
ended by themselves; how sure that is, what shows it, and what grew before.

Without a name it lists those of a namespace, the newest first. With -n the name is
POD or POD/CONTAINER.`,
		Example: a.examples("death", "death -A", "death shop/web-1", "death -n shop web-1/app -o json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := a.deathQuery(args, all)
			if err != nil {
				return err
			}
			ask := func(ctx context.Context, w Asker) (*death.Report, error) { return w.Deaths(ctx, q) }
			text := onPage(a.Program, func(p *page, r *death.Report) {
				writeDeaths(p, r)
				if len(r.Deaths) == 0 && q.Pod != "" && q.Container == "" && a.namespace == "" && strings.Contains(args[0], "/") {
					p.line(0, "", humanize.Plain, fmt.Sprintf("If %s is a pod and %s its container: add -n NAMESPACE.", q.Namespace, q.Pod))
				}
			})
			return answer(a, cmd, ask, text, func(r *death.Report) any { return explainapi.NewDeaths(*r) }, nil)
		},
		ValidArgsFunction: firstArgument(a.completeDeaths),
	}
	a.addListed(cmd, &all)
	return cmd
}

// deathQuery parses NAMESPACE/POD[/CONTAINER], or POD[/CONTAINER] with -n or, for a name without a slash,
// with the namespace of the kubeconfig.
func (a *asking) deathQuery(args []string, all bool) (q death.Query, err error) {
	switch {
	case len(args) > 1:
		return q, cli.Usage(fmt.Errorf("one pod at a time: got %d names", len(args)))
	case all:
		return q, a.checkAll(args)
	}
	if len(args) == 1 {
		if q, err = parseDeath(args[0], a.namespace); err != nil {
			return q, err
		}
	}
	if q.Namespace == "" {
		q.Namespace, err = a.listedNamespace()
	}
	if q.Namespace == "" && err == nil && q.Pod != "" {
		err = cli.Usage(fmt.Errorf("in which namespace is %s? Write NAMESPACE/%[1]s, or add -n NAMESPACE", args[0]))
	}
	return q, err
}

// parseDeath parses a name. namespace is that of -n, or empty.
func parseDeath(text, namespace string) (q death.Query, err error) {
	parts := strings.Split(text, "/")
	if namespace == "" && len(parts) > 1 {
		namespace, parts = parts[0], parts[1:]
	}
	if len(parts) > 2 || slices.Contains(parts, "") {
		return q, cli.Hintf(cli.Usage(fmt.Errorf("%q is not NAMESPACE/POD[/CONTAINER]", text)), "With -n, leave out the namespace: -n shop web-1/app.")
	}
	parts = append(parts, "") // perhaps no container
	return death.Query{Namespace: metric.Namespace(namespace), Pod: metric.PodName(parts[0]), Container: parts[1]}, nil
}

// completeDeaths completes the names of pods, also of those that are gone.
func (a *asking) completeDeaths(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	names, directive := a.podNames(cmd, word, "")
	namespace, begins := a.namespace, ""
	if namespace == "" {
		var ok bool
		if namespace, _, ok = strings.Cut(word, "/"); !ok {
			return names, directive
		}
		begins = namespace + "/"
	}
	w, err := a.Connect()
	if err != nil {
		return names, directive
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), cli.CompletionTimeout)
	defer cancel()
	if r, err := w.Deaths(ctx, death.Query{Namespace: metric.Namespace(namespace)}); err == nil {
		for i := range r.Deaths {
			if name := begins + r.Deaths[i].Pod; strings.HasPrefix(name, word) && humanize.IsShellWord(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), directive
}

// writeDeaths writes the ends of one pod in full, or those of a namespace in one line each.
func writeDeaths(p *page, r *death.Report) {
	p.line(0, "", humanize.Bold, r.Summary)
	if r.Pod == "" && len(r.Deaths) > 0 {
		rows := [][]string{{"AGO", "NAMESPACE", "POD", "CONTAINER", "CAUSE", "CONFIDENCE", "WHY"}}
		for i := range r.Deaths {
			d := &r.Deaths[i]
			ago := humanize.Duration(max(0, r.At.Sub(d.At)).Round(time.Second))
			rows = append(rows, []string{ago, d.Namespace, d.Pod, cmp.Or(d.Container, "(all)"), string(d.Cause), string(d.Confidence), d.Message})
		}
		p.list("death", r.Namespace == "", rows)
	} else {
		for i := range r.Deaths {
			p.Gap()
			writeDeath(p, &r.Deaths[i], r.At)
		}
	}
	p.leftOut(r.LeftOut)
	if r.EventsUnread != "" && len(r.Deaths) > 0 {
		p.Gap()
		p.paragraph("Events: ", r.EventsUnread)
	}
}

// writeDeath writes one end in full.
func writeDeath(p *page, d *death.Death, now time.Time) {
	subject, tint := "pod "+d.Namespace+"/"+d.Pod, humanize.Red
	if d.Container != "" {
		subject = "container " + d.Container
	}
	if d.Confidence != death.Certain {
		tint = humanize.Amber
	}
	if d.Cause == death.Completed {
		tint = humanize.Plain
	}
	p.line(0, "", tint, subject+": "+d.Message)
	p.item(2, "cause", string(d.Cause)+", "+string(d.Confidence))
	at := humanize.Ago(d.At, now) + ", " + humanize.Clock(d.At, now)
	if d.Node != "" {
		at += " on " + d.Node
	}
	p.item(2, "at", at)
	facts := make([]string, len(d.Evidence))
	for i, e := range d.Evidence {
		facts[i] = e.From + ": " + e.Fact
	}
	p.items(2, "facts", facts)
	if b := d.Before; b != nil {
		p.item(2, "before", b.Message)
		for i := range b.Memory {
			p.item(2, "", usageText(&b.Memory[i], "memory", humanize.Bytes, d.At))
		}
		for i := range b.CPU {
			p.item(2, "", usageText(&b.CPU[i], "CPU", func(cores float64) string { return humanize.Cores(cores * 1e9) }, d.At))
		}
	}
	p.advise(2, d.Advice)
}

// usageText holds the first, the highest and the last value before an end.
func usageText(t *endlog.Trend, resource string, format func(float64) string, end time.Time) string {
	return fmt.Sprintf("%s of %s %s: first %s, highest %s, last %s %s before the end", resource, t.Kind, t.Name,
		format(t.First.Value), format(t.Highest.Value), format(t.Last.Value), humanize.Duration(max(0, end.Sub(t.Last.At)).Round(time.Second)))
}
