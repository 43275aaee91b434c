package explaincmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/client/connect"
	eviction "github.com/weir-metrics/weir/eviction/evictionreport/document"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// Asker answers why. *reach.Weir is one.
type Asker interface {
	Pod(ctx context.Context, ref metric.PodRef) (*explain.Explanation, error)
	Container(ctx context.Context, ref metric.PodRef, name string) (*explain.Explanation, error)
	Node(ctx context.Context, name metric.NodeName) (*explain.Explanation, error)
	// Missing reports on a namespace, or on the cluster if it is empty.
	Missing(ctx context.Context, namespace metric.Namespace) (*explain.Report, error)
	// Autoscaler tells the last decision about an autoscaler of a kind.
	Autoscaler(ctx context.Context, kind, namespace, name string) (*decisionreport.DecisionReport, error)
	// Eviction tells how a node stands with evictions.
	Eviction(ctx context.Context, node string) (*eviction.EvictionReport, error)
	connect.Lister // tells what else there is, to those who missed a name
}

// Options make the command fit its program.
type Options struct {
	// Connect says whom to ask. It is called once, after flags are read.
	Connect func() (Asker, error)
	// Namespace returns the namespace that is meant where none is named; empty
	// if one must be named. Nil means that one must.
	Namespace func() (string, error)
	// Program is what people type before "explain". Default "weir".
	Program string
}

// asking is one use of the command.
type asking struct {
	Options
	output    string
	timeout   time.Duration
	namespace string
}

// NewCommand returns "explain" with a subcommand for each noun.
func NewCommand(o Options) *cobra.Command {
	a := &asking{Options: o}
	if a.Program == "" {
		a.Program = "weir"
	}
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Say why a number is missing or in doubt, why an autoscaler decides as it does, and who is evicted next",
		Long: `Say why a number is there, is missing or is in doubt: of a pod, a container or a
node, or of everything that has none, most harmful first; why an autoscaler decides as
it does; and who is evicted next from a node, and why.`,
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	p := cmd.PersistentFlags()
	p.StringVarP(&a.output, "output", "o", "text", "text, json or yaml")
	p.DurationVar(&a.timeout, "timeout", 10*time.Second, "time the answer may take")
	cli.CompleteFlag(cmd, "output", cli.Fixed("text", "json", "yaml"))
	cmd.AddCommand(a.pod(), a.container(), a.node(), a.inNamespace(), a.missing(), a.autoscaler(), a.hpa(), a.eviction())
	return cmd
}

// examples returns lines to type, of which these are the ends.
func (a *asking) examples(ends ...string) string {
	for i := range ends {
		ends[i] = "  " + a.Program + " explain " + ends[i]
	}
	return strings.Join(ends, "\n")
}

func (a *asking) pod() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pod NAMESPACE/NAME",
		Aliases: []string{"pods", "po"},
		Short:   "Explain a pod and its containers",
		Example: a.examples("pod shop/web-1", "pod web-1 -n shop"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := a.podRef(args)
			if err != nil {
				return err
			}
			return a.explain(cmd, func(ctx context.Context, w Asker) (*explain.Explanation, error) {
				e, err := w.Pod(ctx, ref)
				return e, a.orMeant(ctx, w, ref, err)
			})
		},
		ValidArgsFunction: a.completePods,
	}
	a.addNamespace(cmd)
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
			return a.explain(cmd, func(ctx context.Context, w Asker) (*explain.Explanation, error) {
				return w.Container(ctx, ref, name)
			})
		},
		ValidArgsFunction: a.completeContainers,
	}
	a.addNamespace(cmd)
	return cmd
}

func (a *asking) node() *cobra.Command {
	return &cobra.Command{
		Use:     "node NAME",
		Aliases: []string{"nodes", "no"},
		Short:   "Explain a node, and how reading it fares",
		Example: a.examples("node n1"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := one("node", args)
			if err != nil {
				return err
			}
			return a.explain(cmd, func(ctx context.Context, w Asker) (*explain.Explanation, error) {
				e, err := w.Node(ctx, metric.NodeName(name))
				return e, orMeantNode(ctx, w, name, err)
			})
		},
		ValidArgsFunction: a.completeNodes,
	}
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
		ValidArgsFunction: a.completeNamespaces,
	}
}

func (a *asking) missing() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "missing",
		Short:   "Say everything that is missing, by cause, most harmful first",
		Example: a.examples("missing", "missing -n shop -o json"),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usage(fmt.Errorf("%q is too much: one pod is explained by explain pod, one namespace is chosen with -n", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.report(cmd, a.namespace) },
	}
	cmd.Flags().StringVarP(&a.namespace, "namespace", "n", "", "only this namespace; all of them if empty")
	cli.CompleteFlag(cmd, "namespace", a.namespaces)
	return cmd
}

func (a *asking) addNamespace(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&a.namespace, "namespace", "n", "", "namespace, where the name does not begin with one")
	cli.CompleteFlag(cmd, "namespace", a.namespaces)
}

// explain asks and shows an explanation.
func (a *asking) explain(cmd *cobra.Command, ask func(context.Context, Asker) (*explain.Explanation, error)) error {
	return answer(a, cmd, ask, paged(writeExplanation), document)
}

// report asks and shows a report.
func (a *asking) report(cmd *cobra.Command, namespace string) error {
	ask := func(ctx context.Context, w Asker) (*explain.Report, error) {
		return w.Missing(ctx, metric.Namespace(namespace))
	}
	return answer(a, cmd, ask, paged(writeReport), reportDocument)
}

// answer asks once and shows what is answered as the flags want it.
func answer[T any](a *asking, cmd *cobra.Command, ask func(context.Context, Asker) (*T, error), text func(*cobra.Command, *T) error, document func(*T) any) error {
	if err := a.check(); err != nil {
		return err
	}
	w, err := a.Connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), a.timeout)
	defer cancel()
	found, err := ask(ctx, w)
	if err != nil {
		return err
	}
	if a.output != "text" {
		return cli.WriteDocument(cmd.OutOrStdout(), a.output, document(found))
	}
	return text(cmd, found)
}

// paged returns what shows an answer that is written on a page.
func paged[T any](write func(*page, *T)) func(*cobra.Command, *T) error {
	return func(cmd *cobra.Command, found *T) error {
		p := newPage(cmd.OutOrStdout(), cmd.Parent().CommandPath())
		write(p, found)
		return p.flush()
	}
}

func (a *asking) check() error {
	if err := cli.OneOf("--output", a.output, "text", "json", "yaml"); err != nil {
		return err
	}
	if a.timeout <= 0 {
		return cli.Usage(fmt.Errorf("--timeout cannot be %v", a.timeout))
	}
	return nil
}

// one returns the only argument.
func one(noun string, args []string) (string, error) {
	switch {
	case len(args) == 0:
		return "", cli.Usage(fmt.Errorf("which %s? Name one", noun))
	case len(args) > 1:
		return "", cli.Usage(fmt.Errorf("one %s at a time: got %d names", noun, len(args)))
	case args[0] == "":
		return "", cli.Usage(errors.New("a name cannot be empty"))
	}
	return args[0], nil
}
