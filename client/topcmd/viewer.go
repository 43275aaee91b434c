package topcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/client/connect"
	"github.com/weir-metrics/weir/humanize"
)

// viewer shows one resource, once or again and again.
type viewer struct {
	lister   connect.Lister
	resource usage.Resource
	query    usage.Query
	flags    *flags
	out      *screen
	errors   io.Writer
}

// ask returns the list, in the order that was asked for.
func (v *viewer) ask(ctx context.Context) (*usage.List, error) {
	ctx, cancel := context.WithTimeout(ctx, v.flags.timeout)
	defer cancel()
	list, err := v.lister.List(ctx, v.resource, v.query)
	if err != nil {
		return nil, err
	}
	order(list.Items, v.flags.sortBy)
	return list, nil
}

// order sorts items, the largest first and those without a number last; equals
// keep the order of their names, in which items came.
func order(items []usage.Item, by string) {
	size := func(it *usage.Item) int64 { return -1 }
	switch by {
	case "cpu":
		size = func(it *usage.Item) int64 {
			if it.CPU == nil {
				return -1
			}
			return it.CPU.Nanocores
		}
	case "memory":
		size = func(it *usage.Item) int64 {
			if it.Memory == nil {
				return -1
			}
			return it.Memory.WorkingSetBytes
		}
	}
	slices.SortStableFunc(items, func(a, b usage.Item) int { return cmp.Compare(size(&b), size(&a)) })
}

// once shows it once.
func (v *viewer) once(ctx context.Context) error {
	list, err := v.ask(ctx)
	if err != nil {
		return err
	}
	if !v.flags.table() {
		return v.document(list)
	}
	if len(list.Items) == 0 {
		fmt.Fprintln(v.errors, v.nothing())
		return nil
	}
	t := layout(list, v.query, v.flags.output == "wide", !v.flags.noHeaders)
	if err := v.out.print(t.lines(0, v.out.Colour)); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	if n := without(list.Items); n > 0 && v.flags.output != "wide" {
		fmt.Fprintf(v.errors, "%d of %d lack a number: -o wide says why.\n", n, len(list.Items))
	}
	return nil
}

// nothing says that a list is empty, and of what.
func (v *viewer) nothing() string {
	s := "No " + string(v.resource) + " found"
	if v.query.Name != "" {
		s += " that match " + v.query.Name
	}
	if v.query.Namespace != "" {
		s += " in namespace " + v.query.Namespace
	}
	if v.query.Node != "" {
		s += " on node " + v.query.Node
	}
	return s + "."
}

// without counts the items that lack CPU or memory.
func without(items []usage.Item) int {
	n := 0
	for i := range items {
		if items[i].CPU == nil || items[i].Memory == nil {
			n++
		}
	}
	return n
}

// document writes the list as JSON or YAML.
func (v *viewer) document(list *usage.List) error {
	if v.flags.output == "yaml" && v.flags.watch {
		if _, err := io.WriteString(v.out.w, "---\n"); err != nil {
			return fmt.Errorf("write yaml: %w", err)
		}
	}
	return cli.WriteDocument(v.out.w, v.flags.output, list)
}

// watch shows it every interval until ctx ends. The first look must succeed;
// afterwards a weir that is away is waited for.
func (v *viewer) watch(ctx context.Context) error {
	drawn := v.out.Size != nil && v.flags.table()
	tick := time.NewTicker(v.flags.interval)
	defer tick.Stop()
	for first := true; ; first = false {
		list, err := v.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil && !drawn:
			fmt.Fprintf(v.errors, "error: %s\n", humanize.Printable(err.Error()))
		case !v.flags.table():
			err = v.document(list)
			if err != nil {
				return err
			}
		default:
			if err := v.look(list, err, first, drawn); err != nil {
				return fmt.Errorf("write table: %w", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look shows a table, or on a terminal why there is none, once more.
func (v *viewer) look(list *usage.List, failed error, first, drawn bool) error {
	width, height := 0, 0
	if drawn {
		var err error
		if width, height, err = v.out.Size(); err != nil {
			return err
		}
	}
	var lines []string
	switch {
	case failed != nil:
		lines = []string{"error: " + humanize.Printable(failed.Error())}
	case len(list.Items) == 0:
		lines = []string{v.nothing()}
	default:
		t := layout(list, v.query, v.flags.output == "wide", !v.flags.noHeaders)
		lines = t.lines(width, v.out.Colour)
	}
	if drawn {
		if first {
			fmt.Fprint(v.out.w, "\x1b[2J")
		}
		return v.out.redraw(lines, height)
	}
	if !first {
		lines = append([]string{""}, lines...)
	}
	return v.out.print(lines)
}
