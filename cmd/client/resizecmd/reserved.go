package resizecmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/promusage"
)

// kubeletFormat is the format of --output for kubelet configurations.
const kubeletFormat = "kubelet"

// reservedCommand is one run of "reserved".
type reservedCommand struct {
	Options
	prometheus           prometheusFlags
	evictionHard, output string
	timeout              time.Duration
}

func newReserved(o Options) *cobra.Command {
	r := &reservedCommand{Options: o}
	cmd := &cobra.Command{
		Use:   "reserved [NODE...]",
		Short: "Propose what kubelets should reserve for the system and for themselves",
		Long: `Propose kube-reserved and system-reserved of the kubelets' configuration, by what was used
outside pods: kube-reserved for the kubelet and the container runtime, system-reserved for
everything else. Nothing is changed.

Nodes of the same capacity share a proposal, which is for the node that used most; nodes
that are named have one each. weir must read the nodes' cgroups: from the kubelets'
/stats/summary or /metrics/cadvisor, or from its agents. It remembers a quarter of an hour;
with --prometheus, which must scrape weir's /metrics/cluster, readings go back to --since.`,
		Example: fmt.Sprintf(`  %[1]s resize reserved
  %[1]s resize reserved n1 n2 --prometheus http://localhost:9090 --since 7d
  %[1]s resize reserved n1 -o kubelet`, o.Program),
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args) },
	}
	f := cmd.Flags()
	r.prometheus.addFlags(f)
	f.StringVar(&r.evictionHard, "eviction-hard", "100Mi", "the kubelets' evictionHard of memory.available, as `MEMORY`")
	f.StringVarP(&r.output, "output", "o", "", "json, yaml, jsonpath=TEMPLATE, or kubelet for fragments of KubeletConfiguration; tables if empty")
	f.DurationVar(&r.timeout, "timeout", 30*time.Second, "time the answers may take")
	cli.CompleteFlag(cmd, "output", cli.Fixed("json", "yaml", kubeletFormat, "jsonpath="))
	return cmd
}

// reservedReport is what "reserved" prints.
type reservedReport struct {
	Source       string                  `json:"source"` // "weir's memory" or "Prometheus"
	EvictionHard resource.Quantity       `json:"evictionHardMemory"`
	Groups       []*resize.ReservedGroup `json:"groups"`
	Notes        []string                `json:"notes"`
}

func (r *reservedCommand) run(cmd *cobra.Command, args []string) error {
	if err := cli.Output(r.output, "", kubeletFormat); err != nil {
		return err
	}
	eviction, err := resource.ParseQuantity(r.evictionHard)
	if err != nil || eviction.Sign() < 0 {
		return cli.Usage(fmt.Errorf("--eviction-hard: %q is not an amount of memory: write 100Mi; a percentage of the node's memory must be computed", r.evictionHard))
	}
	if r.timeout <= 0 {
		return cli.Usage(fmt.Errorf("--timeout cannot be %v", r.timeout))
	}
	o := resize.Defaults()
	if err := r.prometheus.check(cmd.Flags(), &o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), r.timeout)
	defer cancel()
	line := cli.StartProgress(cmd.ErrOrStderr())
	defer line.Stop()
	nodes, err := r.readNodes(ctx, args, line)
	if err != nil {
		return err
	}
	line.Stop()
	report := &reservedReport{Source: "weir's memory", EvictionHard: eviction}
	if r.prometheus.url != "" {
		report.Source = "Prometheus"
	}
	groups := resize.GroupNodes(nodes)
	if len(args) > 0 {
		groups = slices.Collect(slices.Chunk(nodes, 1))
	}
	for _, g := range groups {
		report.Groups = append(report.Groups, resize.Reserve(g, o, eviction.Value()))
	}
	if err := report.addNotes(); err != nil {
		return err
	}
	switch r.output {
	case "":
		p := &humanize.Page{}
		report.write(p, r.Program)
		return p.Print(cmd.OutOrStdout())
	case kubeletFormat:
		return report.writeKubelet(cmd, r.Program)
	}
	return cli.WriteDocument(cmd.OutOrStdout(), r.output, report)
}

// readNodes reads the named nodes, or all, with their pods' requests from the API server, and what they used.
func (r *reservedCommand) readNodes(ctx context.Context, names []string, line *cli.Progress) ([]resize.NodeUsage, error) {
	client, err := r.Cluster()
	if err != nil {
		return nil, err
	}
	line.Set("listing nodes and pods", 0, 0)
	all, err := listNodes(ctx, client, names)
	if err != nil {
		return nil, err
	}
	var groups resize.Groups
	pods, err := readPods(ctx, client, resizeapi.Request{}, &groups)
	if err != nil {
		return nil, err
	}
	readings, err := r.readParts(ctx, names, line)
	if err != nil {
		return nil, err
	}
	var nodes []resize.NodeUsage
	for i := range all {
		nodes = append(nodes, resize.NewNodeUsage(&all[i], pods, readings))
	}
	return nodes, nil
}

// listNodes returns the named nodes in that order, or all.
func listNodes(ctx context.Context, client Pods, names []string) (nodes []corev1.Node, err error) {
	for _, name := range names {
		var n corev1.Node
		if err := client.Get(ctx, "/api/v1/nodes/"+name, &n); err != nil {
			return nil, cli.Hintf(fmt.Errorf("read node %s: %w", name, err), "`kubectl get nodes` lists them; the command needs get and list on nodes.")
		}
		nodes = append(nodes, n)
	}
	if len(names) == 0 {
		if err := eachItem(ctx, client, listPath("v1", "", "nodes"), func(n *corev1.Node) { nodes = append(nodes, *n) }); err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
	}
	return nodes, nil
}

// readParts reads what the parts of nodes used, from weir or from Prometheus.
func (r *reservedCommand) readParts(ctx context.Context, names []string, line *cli.Progress) (*resize.NodeReadings, error) {
	if r.prometheus.url != "" {
		p := &r.prometheus
		client, err := p.open(line)
		if err != nil {
			return nil, err
		}
		defer client.Close()
		now := time.Now()
		return promusage.ReadNodes(ctx, client, names, now.Add(-p.span), now)
	}
	w, err := r.Connect()
	if err != nil {
		return nil, err
	}
	line.Set("asking weir", 0, 0)
	readings := &resize.NodeReadings{}
	q := usage.Query{Metrics: []string{}, History: usage.MaxHistory}
	if len(names) == 1 {
		q.Node = names[0]
	}
	list, err := w.List(ctx, usage.Nodes, q)
	if err != nil {
		return nil, err
	}
	addReadings(readings, list)
	for _, c := range resize.PartCgroups() { // each answer has one cgroup a node
		q.Name = c.Pattern
		if list, err = w.List(ctx, usage.Cgroups, q); err != nil {
			return nil, err
		}
		addReadings(readings, list)
	}
	return readings, nil
}

func addReadings(readings *resize.NodeReadings, list *usage.List) {
	points := func(all []usage.Reading, unit float64) (points []resize.UsagePoint) {
		for _, p := range all {
			points = append(points, resize.UsagePoint{At: p.Time, Value: p.Value / unit})
		}
		return points
	}
	for i := range list.Items {
		it := &list.Items[i]
		if it.Readings != nil {
			readings.Add(string(it.Node), string(it.Cgroup), resize.CPU, points(it.Readings.CPU, 1e9))
			readings.Add(string(it.Node), string(it.Cgroup), resize.Memory, points(it.Readings.Memory, 1))
		}
	}
}

// howToMeasure is what makes weir read cgroups.
const howToMeasure = "Of the kubelets' endpoints, /metrics/resource has no system cgroups: use --source=kubelet:?endpoint=summary or endpoint=cadvisor, or weir's agents (docs/agent.md). A cgroup whose CPU or memory is not accounted has no readings, as with cgroup version 1 and the controller off. `weir top cgroups --node NODE` shows what is read."

// addNotes adds notes about what the readings do not cover. It returns an error if no node was measured.
func (report *reservedReport) addNotes() error {
	var shortest time.Duration = -1
	var blind, merged []string
	for _, g := range report.Groups {
		for _, v := range g.Values {
			if v.Used != nil && (shortest < 0 || v.Used.To.Sub(v.Used.From) < shortest) {
				shortest = v.Used.To.Sub(v.Used.From)
			}
		}
		for _, n := range g.Nodes {
			switch {
			case slices.Contains(n.NotMeasured, resize.WholeNode) || slices.Contains(n.NotMeasured, resize.PodsPart):
				blind = append(blind, n.Name)
			case len(n.NotMeasured) > 0:
				merged = append(merged, fmt.Sprintf("%s %v", n.Name, n.NotMeasured))
			}
		}
	}
	if shortest < 0 {
		return cli.Hintf(errors.New(report.Source+" has no readings of cgroups outside pods"), "%s", howToMeasure)
	}
	if len(blind) > 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("Not measured, or not in full, so that others of the group decide: %s. %s", humanize.List(blind, 5), howToMeasure))
	}
	if len(merged) > 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("Without a cgroup of their own in the readings, and so part of system-reserved: %s. The kubelet's kubeletCgroups and its runtime's service name them.", humanize.List(merged, 5)))
	}
	if shortest < 24*time.Hour {
		report.Notes = append(report.Notes, resizeapi.CoverNote(shortest))
	}
	report.Notes = append(report.Notes,
		"Memory is the working set, as the kubelet counts it for evictions: page cache in active use is part of it.",
		"With enforceNodeAllocatable [pods], the default, these values lower what is allocatable and the limit of all pods together: they limit no system process.")
	return nil
}

// maxListed is how many nodes are listed one by one. Of more, only those are whose pods would not fit.
const maxListed = 20

// write describes the report as tables.
func (report *reservedReport) write(p *humanize.Page, program string) {
	rows := [][]string{{"NODES", "WHAT", "RESOURCE", "RESERVED NOW", "USED", "PROPOSED"}}
	changes := [][]string{{"NODE", "RESOURCE", "ALLOCATABLE", "AFTER", "CHANGE", "REQUESTED"}}
	var over []string
	nodes := 0
	for _, g := range report.Groups {
		nodes += len(g.Nodes)
	}
	for _, g := range report.Groups {
		rows = append(rows, groupRows(g)...)
		for i := range g.Nodes {
			n := &g.Nodes[i]
			if nodes <= maxListed || len(n.Over) > 0 {
				changes = append(changes, changeRows(n)...)
			}
			for _, r := range n.Over {
				over = append(over, fmt.Sprintf("%s (%s: %s requested, %s allocatable)", n.Name, r, amount(r, n.Requested.Of(r)), amount(r, n.After.Of(r))))
			}
		}
	}
	p.Table(rows)
	p.Gap()
	if len(changes) > 1 {
		p.Table(changes)
		p.Gap()
	}
	if nodes > maxListed {
		p.Line(0, humanize.Plain, fmt.Sprintf("Of %d nodes, only those are listed one by one that would have too little for their pods' requests: -o json has all.", nodes))
	}
	if len(over) > 0 {
		p.Line(0, humanize.Plain, "The pods' requests would no longer fit: "+humanize.List(over, 10)+". A kubelet that restarts with less may reject pods there: drain such nodes first.")
	}
	p.Line(0, humanize.Plain, fmt.Sprintf("RESERVED NOW is capacity less allocatable: a node's status has only the sum of kube-reserved, system-reserved and evictionHard. The proposed sum has %s of evictionHard (--eviction-hard).", amount(resize.Memory, &report.EvictionHard)))
	report.writeNotes(p, program)
	p.Line(0, humanize.Plain, fmt.Sprintf("As kubelet configuration:  %s resize reserved -o %s", program, kubeletFormat))
}

func (report *reservedReport) writeNotes(p *humanize.Page, program string) {
	for _, note := range report.Notes {
		p.Line(0, humanize.Plain, cli.ForProgram(note, program))
	}
}

// groupRows has the rows of a group: each value, and the sums.
func groupRows(g *resize.ReservedGroup) (rows [][]string) {
	var names []string
	for i := range g.Nodes {
		names = append(names, g.Nodes[i].Name)
	}
	label := humanize.List(names, 3)
	for _, v := range g.Values {
		used := missing
		if v.Used != nil {
			used = fmt.Sprintf("%s (%.4g%%)", amount(v.Resource, &v.Used.Value), v.Used.Percentile)
			if len(names) > 1 {
				used += " on " + v.Node
			}
		}
		rows = append(rows, []string{label, v.Field, string(v.Resource), missing, used, amount(v.Resource, v.Proposed)})
	}
	for _, r := range resize.Resources() {
		byNow := func(a, b resize.ReservedNode) int { return a.Now.Of(r).Cmp(*b.Now.Of(r)) }
		least, most := slices.MinFunc(g.Nodes, byNow), slices.MaxFunc(g.Nodes, byNow)
		now := amount(r, least.Now.Of(r))
		if byNow(least, most) != 0 {
			now += " to " + amount(r, most.Now.Of(r))
		}
		sum := missing
		if g.Sum != nil {
			sum = amount(r, g.Sum.Of(r))
		}
		subject := "both"
		if r == resize.Memory {
			subject = "both and evictionHard"
		}
		rows = append(rows, []string{label, subject, string(r), now, missing, sum})
	}
	return rows
}

// changeRows has the rows of what becomes of a node.
func changeRows(n *resize.ReservedNode) (rows [][]string) {
	for _, r := range resize.Resources() {
		if n.After == nil {
			continue
		}
		change := n.After.Of(r).DeepCopy()
		change.Sub(*n.Allocatable.Of(r))
		sign := "+"
		if change.Sign() < 0 {
			change.Neg()
			sign = "-"
		}
		rows = append(rows, []string{n.Name, string(r), amount(r, n.Allocatable.Of(r)), amount(r, n.After.Of(r)), sign + amount(r, &change), amount(r, n.Requested.Of(r))})
	}
	return rows
}

// writeKubelet writes a fragment of kubelet configuration for each group that has a proposal, and the notes on
// standard error.
func (report *reservedReport) writeKubelet(cmd *cobra.Command, program string) error {
	var documents []string
	for _, g := range report.Groups {
		if g.Sum == nil {
			continue
		}
		text := ""
		for i := range g.Nodes {
			text += "# " + g.Nodes[i].Name + "\n"
		}
		documents = append(documents, text+g.KubeletConfiguration())
	}
	if len(documents) == 0 {
		return cli.Hintf(errors.New("system-reserved is unknown for all nodes"), "%s", howToMeasure)
	}
	p := &humanize.Page{}
	report.writeNotes(p, program)
	if err := p.Print(cmd.ErrOrStderr()); err != nil {
		return err
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), strings.Join(documents, "---\n"))
	return err
}
