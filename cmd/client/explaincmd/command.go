// Package explaincmd is the "explain" command of weir and of kubectl-weir: why a number is there,
// is missing or is in doubt. The two commands differ only in how they find a weir to ask.
//
// The answer comes first, in a sentence. Then each group explains why it is so, since when, what
// happens next and what to do. Programs read the same as JSON or YAML. A missing number is an
// answer, not an error: without --exit-code the exit status shows only whether there was an answer.
package explaincmd

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/eventsapi"
	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/eventlog/event"
	"github.com/weir-metrics/weir/cmd/client/cli"
	eviction "github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/explain/slow"
	"github.com/weir-metrics/weir/metric"
)

// Asker asks weir for explanations. *cli.Weir implements it.
type Asker interface {
	Pod(ctx context.Context, ref metric.PodRef) (*explain.Explanation, error)
	Container(ctx context.Context, ref metric.PodRef, name string) (*explain.Explanation, error)
	Node(ctx context.Context, name metric.NodeName) (*explain.Explanation, error)
	// Cgroup explains a cgroup of a node that belongs to no pod.
	Cgroup(ctx context.Context, node metric.NodeName, name string) (*explain.Explanation, error)
	// Missing reports on a namespace, or on the cluster if namespace is empty.
	Missing(ctx context.Context, namespace metric.Namespace) (*explain.MissingReport, error)
	// Workload reports on the pods of a workload.
	Workload(ctx context.Context, namespace metric.Namespace, subject cluster.Owner) (*explain.MissingReport, error)
	// Deaths reports what ended, and why.
	Deaths(ctx context.Context, q death.Query) (*death.Report, error)
	// Slow reports what pods waited for, and why.
	Slow(ctx context.Context, q slow.Query) (*slow.Report, error)
	// Autoscaler returns the last decision about an autoscaler of a kind.
	Autoscaler(ctx context.Context, kind, namespace, name string) (*decisionreport.DecisionReport, error)
	// Eviction returns the report on evictions of a node.
	Eviction(ctx context.Context, node string) (*eviction.EvictionReport, error)
	// Devices returns the devices of a node.
	Devices(ctx context.Context, node string) (*cluster.NodeDevices, error)
	// Events returns the last Events on an object, the newest first.
	Events(ctx context.Context, o event.Object) (*eventsapi.List, error)
	cli.Lister // for suggestions if a name is unknown
}

// Options adapt the command to its program.
type Options = cli.Options[Asker]

// asking is one run of the command.
type asking struct {
	Options
	cli.AnswerFlags
	namespace string
}

// NewCommand returns "explain" with a subcommand for each noun.
func NewCommand(o Options) *cobra.Command {
	o.Program = cmp.Or(o.Program, "weir")
	a := &asking{Options: o}
	cmd := cli.Group("explain", "Say why a number is missing or in doubt, why something ended, what a pod waits for, why an autoscaler decides as it does, who is evicted next, and who has which device",
		`Say why a number is there, is missing or is in doubt: of a pod, a container, a node or
a cgroup, or of everything that has none, most harmful first; why containers and pods
ended; what pods wait for; why an autoscaler decides as it does; who is evicted next from
a node, and why; and which containers have the devices of a node.`,
		a.pod(), a.container(), a.node(), a.cgroup(), a.workload(), a.inNamespace(), a.missing(), a.autoscaler(), a.hpa(), a.death(), a.slow(), a.eviction(), a.devices())
	p := cmd.PersistentFlags()
	a.AnswerFlags.Add(cmd, p, 10*time.Second, "time the answer may take")
	p.BoolVar(&a.ExitCode, "exit-code", false, "exit with status 2 if a number is missing or in doubt, or if there is no decision; with 1 if there is no answer")
	return cmd
}

// examples returns example commands. Each argument is the text after "explain".
func (a *asking) examples(ends ...string) string {
	start := "  " + a.Program + " explain "
	return start + strings.Join(ends, "\n"+start)
}

func (a *asking) pod() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pod NAMESPACE/NAME",
		Aliases: []string{"pods", "po"},
		Short:   "Explain a pod and its containers",
		Example: a.examples("pod shop/web-1", "pod web-1 -n shop"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := a.objectRef("pod", args)
			if err != nil {
				return err
			}
			object := event.Object{Kind: "Pod", Namespace: string(ref.Namespace), Name: string(ref.Name)}
			return a.explain(cmd, object, func(ctx context.Context, w Asker) (*explain.Explanation, error) {
				e, err := w.Pod(ctx, ref)
				return e, suggestPods(ctx, w, ref, err)
			})
		},
		ValidArgsFunction: firstArgument(a.completePods),
	}
	a.addNamespace(cmd, "namespace, where the name does not begin with one")
	return cmd
}

func (a *asking) container() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "container NAMESPACE/POD/NAME",
		Aliases: []string{"containers"},
		Short:   "Explain one container of a pod",
		Example: a.examples("container shop/web-1/app", "container web-1 app -n shop"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, name, err := a.containerRef(args)
			if err != nil {
				return err
			}
			return a.explain(cmd, event.Object{}, func(ctx context.Context, w Asker) (*explain.Explanation, error) {
				return w.Container(ctx, ref, name)
			})
		},
		ValidArgsFunction: a.completeContainers,
	}
	a.addNamespace(cmd, "namespace, where the name does not begin with one")
	return cmd
}

func (a *asking) node() *cobra.Command {
	return &cobra.Command{
		Use:     "node NAME",
		Aliases: []string{"nodes", "no"},
		Short:   "Explain a node, and how it is read",
		Example: a.examples("node n1"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := one("node", args)
			if err != nil {
				return err
			}
			object := event.Object{Kind: "Node", Namespace: metav1.NamespaceDefault, Name: name}
			return a.explain(cmd, object, func(ctx context.Context, w Asker) (*explain.Explanation, error) {
				e, err := w.Node(ctx, metric.NodeName(name))
				return e, suggestNodes(ctx, w, name, err)
			})
		},
		ValidArgsFunction: firstArgument(cli.CompleteNode(a.Connect)),
	}
}

func (a *asking) cgroup() *cobra.Command {
	var node string
	cmd := &cobra.Command{
		Use:     "cgroup PATH [--node NODE]",
		Aliases: []string{"cgroups"},
		Short:   "Explain a cgroup that belongs to no pod",
		Example: a.examples("cgroup /system.slice/containerd.service", "cgroup runtime --node n1"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := one("cgroup", args)
			if err != nil {
				return err
			}
			return a.explain(cmd, event.Object{}, func(ctx context.Context, w Asker) (*explain.Explanation, error) {
				node, err := onlyNode(ctx, w, node)
				if err != nil {
					return nil, err
				}
				return w.Cgroup(ctx, metric.NodeName(node), name)
			})
		},
		ValidArgsFunction: firstArgument(a.completeCgroups),
	}
	a.addNode(cmd, &node)
	return cmd
}

// nodeReport completes a command that reports on one node, which --node names.
func nodeReport[T any](
	a *asking, cmd *cobra.Command, ask func(Asker, context.Context, string) (*T, error), text func(io.Writer, *T) error, document func(*T) any,
) *cobra.Command {
	var name string
	cmd.Args = cli.NoArgs("use --node to name a node")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return answer(a, cmd, func(ctx context.Context, w Asker) (*T, error) {
			name, err := onlyNode(ctx, w, name)
			if err != nil {
				return nil, err
			}
			report, err := ask(w, ctx, name)
			return report, suggestNodes(ctx, w, name, err)
		}, text, document, nil)
	}
	a.addNode(cmd, &name)
	return cmd
}

func (a *asking) addNode(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "node", "", "the node; needed where weir knows several")
	cli.CompleteFlag(cmd, "node", cli.CompleteNode(a.Connect))
}

func (a *asking) inNamespace() *cobra.Command {
	return &cobra.Command{
		Use:     "namespace NAME",
		Aliases: []string{"namespaces", "ns"},
		Short:   "Say what is missing in a namespace, and why",
		Example: a.examples("namespace shop"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := one("namespace", args)
			if err != nil {
				return err
			}
			return a.report(cmd, name)
		},
		ValidArgsFunction: firstArgument(cli.CompleteNamespace(a.Connect)),
	}
}

func (a *asking) missing() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "missing",
		Short:   "List everything that is missing by cause, the worst first",
		Example: a.examples("missing", "missing -n shop -o json"),
		Args:    cli.NoArgs("explain pod NAME explains one pod, and -n selects a namespace"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.report(cmd, a.namespace) },
	}
	a.addNamespace(cmd, "only this namespace; all of them if empty")
	return cmd
}

func (a *asking) addNamespace(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVarP(&a.namespace, "namespace", "n", "", usage)
	cli.CompleteFlag(cmd, "namespace", cli.CompleteNamespace(a.Connect))
}

// addListed adds the flags of a command that lists pods of a namespace, or of all.
func (a *asking) addListed(cmd *cobra.Command, all *bool) {
	a.addNamespace(cmd, "namespace (default: that of the kubeconfig, or all if there is none)")
	cmd.Flags().BoolVarP(all, "all-namespaces", "A", false, "all namespaces")
}

// explain requests an explanation and writes it, as text with the Events on the object if it has a name.
func (a *asking) explain(cmd *cobra.Command, object event.Object, ask func(context.Context, Asker) (*explain.Explanation, error)) error {
	var events objectEvents
	askBoth := func(ctx context.Context, w Asker) (*explain.Explanation, error) {
		e, err := ask(ctx, w)
		if err == nil && object.Name != "" && a.Output == "text" {
			events = eventsOn(ctx, w, object)
		}
		return e, err
	}
	text := onPage(a.Program, func(p *page, e *explain.Explanation) {
		writeExplanation(p, e)
		events.write(p, e.At)
	})
	missing := func(e *explain.Explanation) bool {
		return slices.ContainsFunc(e.Findings, func(f explain.Finding) bool {
			return f.Severity != "" && f.Severity != metric.None.String() || f.LastKnown
		})
	}
	return answer(a, cmd, askBoth, text, func(e *explain.Explanation) any { return explainapi.NewExplanation(*e) }, missing)
}

// report requests a report and writes it.
func (a *asking) report(cmd *cobra.Command, namespace string) error {
	ask := func(ctx context.Context, w Asker) (*explain.MissingReport, error) {
		return w.Missing(ctx, metric.Namespace(namespace))
	}
	return answer(a, cmd, ask, onPage(a.Program, writeReport), func(r *explain.MissingReport) any { return explainapi.NewReport(*r) }, incomplete)
}

// incomplete reports whether something is missing or in doubt.
func incomplete(r *explain.MissingReport) bool {
	return slices.ContainsFunc(r.Causes, func(c explain.MissingCause) bool { return c.Severity != metric.None.String() })
}

// answer sends one request to weir and writes the answer: see cli.AskOnce.
func answer[T any](
	a *asking, cmd *cobra.Command, ask func(context.Context, Asker) (*T, error), text func(io.Writer, *T) error, document func(*T) any, missing func(*T) bool,
) error {
	return cli.AskOnce(cmd, &a.AnswerFlags, a.Connect, ask, text, document, missing)
}
