// Package topcmd is the "top" command of weir and of kubectl-weir: what nodes, pods, containers and
// cgroups use, as a table for people or a document for programs. The two commands differ only in how
// they find a weir.
//
// A missing number is shown as "-". The wide table and the documents explain why it is missing.
package topcmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/cmd/client/cli"
)

// Options adapt the command to its program.
type Options struct {
	// Connect returns the weir to ask. It is called once, after flags are read.
	Connect func() (cli.Lister, error)
	// Namespace returns the namespace to use if none is named, or "" for all namespaces. Nil means
	// all.
	Namespace func() (string, error)
	// Explain writes what "explain" with args prints. Nil means that rows are not explained.
	Explain func(ctx context.Context, out io.Writer, args ...string)
}

// flags are the user's choices.
type flags struct {
	output     string
	order      ordering
	watch      bool
	interval   time.Duration
	timeout    time.Duration
	noHeaders  bool
	namespace  string
	all        bool
	node       string
	sum        bool
	containers bool
	selector   string
	// known shows all columns that have a text, narrow or wide.
	known bool
}

// ordering is the order of a list: by a key of sortKeys, the largest first or, reversed, the smallest.
type ordering struct {
	key     string
	reverse bool
}

// sortKeys are the values of --sort-by.
var sortKeys = []string{"cpu", "memory", "name", "cpu/limit", "memory/limit", "ephemeral-storage", "oom"}

// NewCommand returns "top" with a subcommand for each resource.
func NewCommand(o Options) *cobra.Command {
	var f flags
	top := cli.Group("top", "Show what nodes, pods, containers and cgroups use", `Show what nodes, pods, containers and cgroups use.

With --watch on a terminal, keys sort, filter and pause the table, explain a row, and
unfold the table as a tree: nodes, their pods and the containers of these; or namespaces,
their workloads and the pods of these. The key ? lists the keys. A row has the sum of its
pods, only a node of "top nodes" has its own numbers. "2 of 3" means that one of three
pods has no number, so that the sum lacks it. Colours mark titles, missing numbers and
shares of a limit from 75%; the environment variable NO_COLOR turns them off.`)
	p := top.PersistentFlags()
	p.StringVarP(&f.output, "output", "o", "", "wide, json, yaml, name, jsonpath=TEMPLATE or custom-columns=TITLE:PATH,...; a narrow table if empty")
	p.StringVar(&f.order.key, "sort-by", "name", "cpu, memory, name, ephemeral-storage, oom (kills by the kernel for memory in the last hour), cpu/limit or memory/limit (the share of the limit that is used; of a node, of what is allocatable); the largest comes first")
	p.BoolVar(&f.order.reverse, "reverse", false, "reverse the order: the smallest comes first")
	p.BoolVarP(&f.watch, "watch", "w", false, "show the table again every --interval; on a terminal, keys sort, filter, explain and unfold it")
	p.DurationVar(&f.interval, "interval", 5*time.Second, "time between two requests with --watch, at least 1s")
	p.DurationVar(&f.timeout, "timeout", 10*time.Second, "time one answer may take")
	p.BoolVar(&f.noHeaders, "no-headers", false, "leave out the line of titles")
	p.StringVar(&f.node, "node", "", "only what runs on this node; * and ? stand for others")
	p.BoolVar(&f.sum, "sum", false, "add a last line with the sums of CPU and memory")
	cli.CompleteFlag(top, "output", cli.Fixed("wide", "json", "yaml", "name", "jsonpath=", cli.CustomColumns))
	cli.CompleteFlag(top, "sort-by", cli.Fixed(sortKeys...))
	cli.CompleteFlag(top, "node", cli.CompleteNode(o.Connect))
	for _, r := range append(usage.Resources(), workloads) {
		top.AddCommand(newResource(r, &f, o))
	}
	return top
}

// about has the aliases and the description of each resource's subcommand, and the function that
// returns an item's name.
var about = map[usage.Resource]struct {
	aliases []string
	short   string
	more    string // the rest of the description
	name    func(*usage.Item) string
}{
	usage.Nodes: {[]string{"node", "no"}, "Show what nodes use", "", func(it *usage.Item) string { return string(it.Node) }},
	usage.Pods: {[]string{"pod", "po"}, "Show what pods use", `

A cluster's weir shows a pod's memory as kubectl top does: the sum of its containers.
A weir that reads its own machine (weir run, weir agent) shows that of the pod's
cgroup, which the kernel limits and the kubelet ranks pods by. It is more: it includes
the sandbox and memory-backed volumes.`, func(it *usage.Item) string { return string(it.Pod) }},
	workloads: {[]string{"workload"}, "Show what Deployments, StatefulSets and other workloads use", `

NAME can also be KIND/NAME, such as deployment/web. A row is the sum of the pods of a
workload; a pod without an owner has a row of its own. "2 of 3" means that one of three
pods has no number, so that the sum lacks it: -o wide shows why. Shares of requests and
limits are known only where each pod has a number and the request or limit.`, workloadName},
	usage.Containers: {[]string{"container"}, "Show what containers use", "", func(it *usage.Item) string { return it.Container }},
	usage.Cgroups: {[]string{"cgroup", "cg"}, "Show what every cgroup uses, whether a pod's or not", `

A cgroup includes those below it. Each number is the kernel's own for that cgroup, so that
one can have more than the cgroup that contains it, above all with cgroup version 1.`,
		func(it *usage.Item) string { return string(it.Cgroup) }},
}

func newResource(r usage.Resource, f *flags, o Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     string(r) + " [NAME]",
		Aliases: about[r].aliases,
		Short:   about[r].short,
		Long:    about[r].short + ".\n\nNAME is a name or a pattern, in which * stands for any characters and ? for one; of a pod also\nNAMESPACE/NAME. A name that is not found is an error." + about[r].more,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usage(fmt.Errorf("one NAME at most: got %s", strings.Join(args, " ")))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			q, err := f.query(r, args, o)
			if err != nil {
				return err
			}
			r := r
			if f.containers {
				r, q.Pod, q.Name = usage.Containers, q.Name, ""
			}
			lister, err := o.Connect()
			if err != nil {
				return err
			}
			v := &viewer{
				lister: lister, resource: r, query: q, flags: f, explain: o.Explain,
				out: cmd.OutOrStdout(), errors: cmd.ErrOrStderr(), Terminal: cli.TerminalOf(cmd.OutOrStdout()),
			}
			if f.watch {
				return v.watch(cmd.Context(), cmd.InOrStdin())
			}
			return v.once(cmd.Context())
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			q, err := f.query(r, []string{word + "*"}, o)
			if len(args) > 0 || err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			namespace := strings.TrimSuffix(word+"*", q.Name) // that the name of a pod begins with, and a slash
			asked := r
			if r == workloads {
				asked, q.Name = usage.Pods, ""
			}
			names := cli.Complete(cmd, o.Connect, asked, q, func(it *usage.Item) string { return namespace + about[r].name(it) })
			return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, word) }), cobra.ShellCompDirectiveNoFileComp
		},
	}
	if r == usage.Pods {
		cmd.Flags().BoolVar(&f.containers, "containers", false, "the containers of the pods, as top containers shows them")
	}
	if r != usage.Cgroups {
		cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "label selector of pods, or of nodes in top nodes: app=web,tier!=cache")
	}
	if isNamespaced(r) {
		cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "only this namespace; * and ? stand for others")
		cmd.Flags().BoolVarP(&f.all, "all-namespaces", "A", false, "all namespaces")
		cli.CompleteFlag(cmd, "namespace", cli.CompleteNamespace(o.Connect))
	}
	return cmd
}

func (f *flags) check() error {
	if err := cli.Output(f.output, "", "wide", "name", cli.CustomColumns); err != nil {
		return err
	}
	if err := cli.OneOf("--sort-by", f.order.key, sortKeys...); err != nil {
		return err
	}
	if _, err := labels.Parse(f.selector); err != nil {
		return cli.Usage(fmt.Errorf("--selector %q: %w; write it as app=web,tier!=cache", f.selector, err))
	}
	if f.watch && f.interval < time.Second {
		return cli.Usage(fmt.Errorf("--interval cannot be %v: at least 1s", f.interval))
	}
	if f.timeout <= 0 {
		return cli.Usage(fmt.Errorf("--timeout cannot be %v", f.timeout))
	}
	if f.all && f.namespace != "" {
		return cli.Usage(fmt.Errorf("--namespace and --all-namespaces exclude each other"))
	}
	return nil
}

// query returns the query.
func (f *flags) query(r usage.Resource, args []string, o Options) (usage.Query, error) {
	q := usage.Query{Node: f.node, Namespace: f.namespace, Selector: f.selector, Metrics: f.metrics(r)}
	if len(args) == 1 {
		q.Name = args[0]
		if namespace, name, ok := strings.Cut(q.Name, "/"); ok && r == usage.Pods {
			if f.namespace != "" && f.namespace != namespace {
				return q, cli.Usage(fmt.Errorf("%s is not in namespace %s: leave --namespace out", q.Name, f.namespace))
			}
			q.Namespace, q.Name = namespace, name
		}
	}
	if q.Namespace != "" || f.all || o.Namespace == nil || !isNamespaced(r) {
		return q, nil
	}
	var err error
	q.Namespace, err = o.Namespace()
	return q, err
}

// metrics returns the metrics that the output shows besides CPU and memory; nil means all.
func (f *flags) metrics(r usage.Resource) []string {
	names := []string{}
	if r != workloads && !f.table() && f.output != "name" {
		return nil
	}
	if f.containers {
		r = usage.Containers
	}
	if f.output == "name" && f.order.key == "name" {
		return names
	}
	needs := workloadMetrics
	if r != workloads {
		needs = nil
		for _, c := range f.columns(r) {
			needs = append(needs, c.needs...)
		}
	}
	for _, id := range needs {
		names = append(names, id.String())
	}
	return names
}

// columns returns the columns of a resource that the user chose.
func (f *flags) columns(r usage.Resource) []column {
	return slices.DeleteFunc(columns(r), func(c column) bool {
		return c.wide && f.output != "wide" && !f.known && !strings.EqualFold(c.title, f.order.key)
	})
}

// table reports whether the output is a table and not a document.
func (f *flags) table() bool { return f.output == "" || f.output == "wide" }
