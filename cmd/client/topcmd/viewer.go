package topcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// viewer shows one resource, once or repeatedly.
type viewer struct {
	lister   cli.Lister
	resource usage.Resource
	query    usage.Query
	flags    *flags
	out      io.Writer
	errors   io.Writer
	explain  func(ctx context.Context, out io.Writer, args ...string)
	cli.Terminal
}

// ask returns the list in the order that the user chose.
func (v *viewer) ask(ctx context.Context) (*usage.List, error) {
	ctx, cancel := context.WithTimeout(ctx, v.flags.timeout)
	defer cancel()
	list, err := v.list(ctx)
	if err != nil {
		return nil, err
	}
	v.flags.order.sort(list.Items)
	return list, nil
}

// sort sorts items that are in the order of their names. Those without a number come last. Equal items
// keep their order.
func (o ordering) sort(items []usage.Item) {
	slices.SortStableFunc(items, func(a, b usage.Item) int { return o.compare(&a, &b) })
	if o.reverse && o.key == "name" {
		slices.Reverse(items)
	}
}

// compare orders two items by their numbers. By name they are equal.
func (o ordering) compare(a, b *usage.Item) int {
	x, y := o.size(a), o.size(b)
	if o.reverse && x >= 0 && y >= 0 {
		x, y = y, x
	}
	return cmp.Compare(y, x)
}

// size returns the number of an item by which it is sorted, or -1 if there is none.
func (o ordering) size(it *usage.Item) float64 {
	if number := sizes[o.key]; number != nil {
		if size, ok := number(it); ok {
			return size
		}
	}
	return -1
}

var sizes = map[string]func(*usage.Item) (float64, bool){
	"cpu": nanocores, "memory": workingSet, "cpu/limit": cpuShare.value, "memory/limit": memoryShare.value,
	"ephemeral-storage": valueOf(metric.EphemeralStorageUsage),
	"oom":               func(it *usage.Item) (float64, bool) { return float64(it.OOMKills), true },
}

// String describes the order.
func (o ordering) String() string {
	if o.reverse {
		return o.key + " reversed"
	}
	return o.key
}

// once shows the list once.
func (v *viewer) once(ctx context.Context) error {
	list, err := v.ask(ctx)
	switch {
	case err != nil:
		return err
	case len(list.Items) == 0 && v.query.Name != "" && !strings.ContainsAny(v.query.Name, "*?"):
		return errors.New("no " + v.asked())
	case !v.flags.table():
		return v.document(list)
	case len(list.Items) == 0:
		fmt.Fprintf(v.errors, "No %s.\n", v.asked())
		return nil
	}
	if err := v.print(v.lines(list, 0)); err != nil {
		return err
	}
	lacking := slices.DeleteFunc(slices.Clone(list.Items), func(it usage.Item) bool { return !isIncomplete(&it) })
	if len(lacking) > 0 && v.flags.output != "wide" {
		fmt.Fprintf(v.errors, "%d of %d lack a number: -o wide shows why.\n", len(lacking), len(list.Items))
	}
	if child := aboveParent(list.Items); child != "" {
		fmt.Fprintf(v.errors, "%s has more memory than the cgroup that contains it: the kernel counts each cgroup by itself, and weir adds none up.\n", humanize.Printable(child))
	}
	return nil
}

// aboveParent returns a cgroup that has clearly more memory than its parent, or "". The two are not read at
// the same moment, so that a small difference means nothing.
func aboveParent(items []usage.Item) (child metric.CgroupPath) {
	type key struct {
		node metric.NodeName
		path string
	}
	used := map[key]float64{}
	for i := range items {
		if v, ok := workingSet(&items[i]); ok {
			used[key{items[i].Node, string(items[i].Cgroup)}] = v
		}
	}
	for i := range items {
		it := &items[i]
		parent, known := used[key{it.Node, path.Dir(string(it.Cgroup))}]
		if v, ok := workingSet(it); ok && known && it.Cgroup != "/" && v > 1.05*parent+(1<<20) {
			return it.Cgroup
		}
	}
	return ""
}

// lines returns the table of a list, or a line that reports that it is empty.
func (v *viewer) lines(list *usage.List, width int) []string {
	if len(list.Items) == 0 {
		return []string{"No " + v.asked() + "."}
	}
	if v.flags.sum {
		list = withSum(list)
	}
	return layout(list.Items, shownColumns(list, v.query, v.flags), !v.flags.noHeaders).Lines(width, v.Colour)
}

// withSum returns list with one more item, the sum of the others.
func withSum(list *usage.List) *usage.List {
	var sum usage.Item
	for i := range list.Items {
		addUsage(&sum, &list.Items[i])
	}
	const name = "(sum)"
	switch list.Resource {
	case usage.Nodes:
		sum.Node = name
	case usage.Pods:
		sum.Pod = name
	case usage.Containers:
		sum.Container = name
	case usage.Cgroups:
		sum.Cgroup = name
	case workloads:
		sum.Workload.Name = name
	}
	if sum.Node == "" && len(list.Items) > 0 && oneNode(list.Items) {
		sum.Node = list.Items[0].Node
	}
	all := *list
	all.Items = append(slices.Clone(list.Items), sum)
	return &all
}

// addUsage adds the numbers of an item to a sum. A missing number adds nothing, and a sum of missing
// numbers is missing. The time of a sum is that of its oldest number.
func addUsage(sum, it *usage.Item) {
	if it.CPU != nil {
		sum.CPU = cmp.Or(sum.CPU, &usage.CPUUsage{})
		sum.CPU.Nanocores += it.CPU.Nanocores
		sum.CPU.Time = earlier(sum.CPU.Time, it.CPU.Time)
		sum.CPU.WindowSeconds = max(sum.CPU.WindowSeconds, it.CPU.WindowSeconds)
		sum.CPU.LastKnown = sum.CPU.LastKnown || it.CPU.LastKnown
	}
	if it.Memory != nil {
		sum.Memory = cmp.Or(sum.Memory, &usage.MemoryUsage{})
		sum.Memory.WorkingSetBytes += it.Memory.WorkingSetBytes
		sum.Memory.Time = earlier(sum.Memory.Time, it.Memory.Time)
		sum.Memory.LastKnown = sum.Memory.LastKnown || it.Memory.LastKnown
	}
}

// asked describes what was asked for, to report that there is none of it: "pods found on node n1".
func (v *viewer) asked() string {
	s := string(v.resource) + " found"
	if v.query.Name != "" {
		s += " that match " + v.query.Name
	}
	if v.query.Namespace != "" {
		s += " in namespace " + v.query.Namespace
	}
	if v.query.Selector != "" {
		s += " with labels " + v.query.Selector
	}
	if v.query.Node != "" {
		s += " on node " + v.query.Node
	}
	return s
}

// isIncomplete reports whether an item, or a pod that it adds up, lacks CPU or memory.
func isIncomplete(it *usage.Item) bool {
	return it.CPU == nil || it.Memory == nil || it.Pods != nil && it.Pods.Measured < it.Pods.Total
}

// document writes the list for programs.
func (v *viewer) document(list *usage.List) error {
	if v.flags.output == "name" {
		return v.names(list)
	}
	if v.flags.output == "yaml" && v.flags.watch {
		if _, err := io.WriteString(v.out, "---\n"); err != nil {
			return fmt.Errorf("write yaml: %w", err)
		}
	}
	return cli.WriteDocument(v.out, v.flags.output, list)
}

// names writes a line RESOURCE/NAME for each item, as kubectl does, so that kubectl accepts it.
func (v *viewer) names(list *usage.List) error {
	var out strings.Builder
	for i := range list.Items {
		it := &list.Items[i]
		if list.Resource != workloads { // its names have a kind
			out.WriteString(about[list.Resource].aliases[0] + "/")
		}
		out.WriteString(humanize.Printable(about[list.Resource].name(it)) + "\n")
	}
	if _, err := io.WriteString(v.out, out.String()); err != nil {
		return fmt.Errorf("write names: %w", err)
	}
	return nil
}

// watch shows the list every interval until ctx ends. The first request must succeed. After that,
// watch waits for a weir that does not answer. On a terminal a table is interactive.
func (v *viewer) watch(ctx context.Context, in io.Reader) error {
	if v.Size != nil && v.flags.table() {
		return v.interactive(ctx, in)
	}
	tick := time.NewTicker(v.flags.interval)
	defer tick.Stop()
	for first := true; ; first = false {
		list, err := v.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil:
			_, err = fmt.Fprintf(v.errors, "error: %s\n", humanize.Printable(err.Error()))
		case !v.flags.table():
			err = v.document(list)
		case first:
			err = v.print(v.lines(list, 0))
		default:
			err = v.print(append([]string{""}, v.lines(list, 0)...))
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// print adds lines to the output.
func (v *viewer) print(lines []string) error {
	if _, err := io.WriteString(v.out, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
