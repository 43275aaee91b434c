package topcmd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// grouping describes how the tree groups pods. Its value is the text for the title.
type grouping string

const (
	noGroups   grouping = ""             // no tree: the list
	byWorkload grouping = "per workload" // namespaces, their workloads, and the pods of these
	byNode     grouping = "per node"     // nodes and their pods
)

// groupings returns the groupings of a resource, in the order of the key t. Cgroups have none: their
// names are paths.
func groupings(r usage.Resource) []grouping {
	switch r {
	case usage.Nodes:
		return []grouping{noGroups, byNode}
	case usage.Pods, usage.Containers, workloads:
		return []grouping{noGroups, byWorkload, byNode}
	default:
		return []grouping{noGroups}
	}
}

// groupsOf returns the names of the groups that have the pod, the outermost first, and the name of
// the pod within them.
func (g grouping) groupsOf(pod *usage.Item) (groups []string, name string) {
	switch w := pod.Workload; {
	case g == byNode:
		return []string{string(pod.Node)}, string(pod.Namespace) + "/" + string(pod.Pod)
	case w.Name == "":
		return []string{string(pod.Namespace)}, string(pod.Pod)
	default:
		return []string{string(pod.Namespace), w.Kind + "/" + w.Name}, string(pod.Pod)
	}
}

// treeRow is a row of the tree: a group of pods, a pod or a container.
type treeRow struct {
	key, name  string
	depth      int
	parent     *treeRow
	children   map[string]*treeRow // by name
	usage.Item                     // its numbers
	pods       []*usage.Item       // of a group
}

func (r *treeRow) isGroup() bool     { return r.Pod == "" }
func (r *treeRow) isContainer() bool { return r.Container != "" }

// child returns the row of this name below r. If there is none, it adds one.
func (r *treeRow) child(name string) *treeRow {
	c := r.children[name]
	if c == nil {
		c = &treeRow{key: r.key + "\x00" + name, name: name, depth: r.depth + 1, parent: r}
		if r.children == nil {
			r.children = map[string]*treeRow{}
		}
		r.children[name] = c
	}
	return c
}

// treeItems are the pods of a tree and the containers of these.
type treeItems struct {
	pods, containers []usage.Item
}

// askTree requests what the tree shows in addition to list, the list of the resource. Containers are
// requested only if they are wanted.
func (v *viewer) askTree(ctx context.Context, list *usage.List, containers bool, history int) (*treeItems, error) {
	ctx, cancel := context.WithTimeout(ctx, v.flags.timeout)
	defer cancel()
	pods := usage.Query{Namespace: v.query.Namespace, Node: v.query.Node, Name: v.query.Name, Selector: v.query.Selector, Metrics: []string{}}
	switch v.resource {
	case usage.Containers:
		pods.Name = v.query.Pod
	case usage.Nodes:
		pods = usage.Query{Node: cmp.Or(v.query.Name, v.query.Node), Metrics: []string{}}
	case workloads:
		pods.Name = ""
	}
	pods.History = history
	items := &treeItems{pods: list.Items}
	if v.resource != usage.Pods {
		answer, err := v.lister.List(ctx, usage.Pods, pods)
		if err != nil {
			return nil, err
		}
		items.pods = answer.Items
	}
	if v.resource == usage.Containers {
		listed := map[metric.PodRef]bool{}
		for i := range list.Items {
			listed[podRef(&list.Items[i])] = true
		}
		items.pods = slices.DeleteFunc(items.pods, func(pod usage.Item) bool { return !listed[podRef(&pod)] })
	}
	if v.resource == usage.Nodes {
		listed := map[metric.NodeName]bool{}
		for i := range list.Items {
			listed[list.Items[i].Node] = true
		}
		items.pods = slices.DeleteFunc(items.pods, func(pod usage.Item) bool { return !listed[pod.Node] })
	}
	if v.resource == workloads {
		items.pods = slices.DeleteFunc(items.pods, func(pod usage.Item) bool { return !isNamed(workloadOf(&pod), v.query.Name) })
	}
	if containers {
		q := pods
		q.Pod, q.Name = pods.Name, ""
		if v.resource == usage.Containers {
			q.Name = v.query.Name
		}
		answer, err := v.lister.List(ctx, usage.Containers, q)
		if err != nil {
			return nil, err
		}
		items.containers = answer.Items
	}
	return items, nil
}

func podRef(it *usage.Item) metric.PodRef {
	return metric.PodRef{Namespace: it.Namespace, Name: it.Pod}
}

// uniquePods returns each pod once. A pod that two nodes report has two items: the first that has CPU and
// memory counts.
func uniquePods(items []usage.Item) (pods []*usage.Item) {
	at := map[metric.PodRef]int{}
	for i := range items {
		pod := &items[i]
		switch n, known := at[podRef(pod)]; {
		case !known:
			at[podRef(pod)] = len(pods)
			pods = append(pods, pod)
		case isIncomplete(pods[n]) && !isIncomplete(pod):
			pods[n] = pod
		}
	}
	return pods
}

// buildTree returns the root of the tree, a row that is not shown. A group has the sum of its pods,
// but a node of "top nodes" has its own numbers. A pod that the filter leaves out adds nothing.
func (s *screen) buildTree() *treeRow {
	root := &treeRow{key: string(s.grouping), depth: -1}
	rows := map[metric.PodRef]*treeRow{}
	for _, pod := range uniquePods(s.tree.pods) {
		groups, name := s.grouping.groupsOf(pod)
		if !strings.Contains(strings.Join(append(groups, name, string(pod.Node)), "/"), s.filter) {
			continue
		}
		row := root
		for i, group := range groups {
			row = row.child(group)
			switch {
			case s.grouping == byNode:
				row.Node = pod.Node
			case i == 1:
				row.Workload = pod.Workload
				fallthrough
			default:
				row.Namespace = pod.Namespace
			}
			row.pods = append(row.pods, pod)
			addUsage(&row.Item, pod)
		}
		row = row.child(name)
		row.Item = *pod
		rows[podRef(pod)] = row
	}
	for i := range s.tree.containers {
		c := &s.tree.containers[i]
		if pod := rows[podRef(c)]; pod != nil {
			pod.child(c.Container).Item = *c
		}
	}
	if s.resource == usage.Nodes {
		for i := range s.list.Items {
			node := &s.list.Items[i]
			if name := string(node.Node); root.children[name] != nil || strings.Contains(name, s.filter) {
				root.child(name).Item = *node
			}
		}
	}
	return root
}

// visibleRows returns the rows of the list, or those of the tree that no folded row hides, in the order
// that the user chose.
func (s *screen) visibleRows() []*treeRow {
	var rows []*treeRow
	if s.grouping == noGroups {
		for _, it := range s.chosen().Items {
			rows = append(rows, &treeRow{key: itemKey(&it), Item: it})
		}
		return rows
	}
	sign := 1
	if s.order.reverse && s.order.key == "name" {
		sign = -1
	}
	var add func(*treeRow)
	add = func(parent *treeRow) {
		children := slices.SortedFunc(maps.Values(parent.children), func(a, b *treeRow) int {
			return cmp.Or(s.order.compare(&a.Item, &b.Item), sign*cmp.Compare(a.name, b.name))
		})
		for _, row := range children {
			if rows = append(rows, row); s.unfolded[row.key] {
				add(row)
			}
		}
	}
	add(s.buildTree())
	return rows
}

// containersWanted reports whether a pod is unfolded.
func (s *screen) containersWanted() bool {
	return slices.ContainsFunc(s.visibleRows(), func(r *treeRow) bool { return !r.isGroup() && s.unfolded[r.key] })
}

// unfoldGroups unfolds all groups or, if that changes nothing, folds everything.
func (s *screen) unfoldGroups() {
	before := len(s.visibleRows())
	var unfold func(*treeRow)
	unfold = func(parent *treeRow) {
		for _, row := range parent.children {
			if row.isGroup() {
				s.unfolded[row.key] = true
				unfold(row)
			}
		}
	}
	if unfold(s.buildTree()); len(s.visibleRows()) == before {
		clear(s.unfolded)
	}
}

// fold acts on a key that folds or unfolds. It reports whether the key is one.
func (s *screen) fold(key string, rows []*treeRow) (known bool) {
	if len(rows) == 0 {
		return false
	}
	at := s.selectedIn(rows)
	row := rows[at]
	switch key {
	case "right", "l":
		s.unfolded[row.key] = !row.isContainer()
	case "left", "h":
		if !s.unfolded[row.key] && row.depth > 0 {
			at = slices.Index(rows, row.parent)
		}
		delete(s.unfolded, row.key)
	case "e":
		s.unfoldGroups()
	default:
		return false
	}
	s.selected = rows[at].key
	return true
}

// selectedIn returns the index of the selected row. If it has gone, or a folded row hides it, the first
// row is selected.
func (s *screen) selectedIn(rows []*treeRow) int {
	return max(0, slices.IndexFunc(rows, func(r *treeRow) bool { return r.key == s.selected }))
}

// treeTable returns the table of the tree's rows. The first column has the names.
func (s *screen) treeTable(rows []*treeRow, selected int) (t humanize.Table, names int) {
	columns := []column{cpu(), memory(), {title: "PODS"}, {title: "CPU TREND"}}
	t = append(t, slices.Concat([]humanize.Cell{{Text: "  NAME", Tint: humanize.Bold}}, titlesOf(columns)))
	for i, r := range rows {
		mark := "  "
		switch {
		case s.unfolded[r.key]:
			mark = "▾ "
		case !r.isContainer():
			mark = "▸ "
		}
		cursor := "  "
		if i == selected {
			cursor = "> "
		}
		items, pods := []*usage.Item{&r.Item}, ""
		if r.isGroup() {
			pods = podCount(r.pods)
		}
		if r.isGroup() && s.resource != usage.Nodes {
			items = r.pods
		}
		t = append(t, slices.Concat(
			plain(cursor+strings.Repeat("  ", r.depth)+mark+humanize.Printable(r.name)), cellsOf(&r.Item, columns[:2]), plain(pods, trend(s.cpuHistory(items)))))
	}
	return t, 1
}

// subject returns the arguments for "explain" about the row.
func (r *treeRow) subject() []string {
	switch namespace := string(r.Namespace); {
	case r.isContainer():
		return []string{"container", namespace + "/" + string(r.Pod) + "/" + r.Container}
	case r.Pod != "":
		return []string{"pod", namespace + "/" + string(r.Pod)}
	case r.Workload.Kind == "Pod":
		return []string{"pod", namespace + "/" + r.Workload.Name}
	case r.Workload.Name != "":
		return []string{"workload", namespace + "/" + r.Workload.Kind + "/" + r.Workload.Name}
	case r.Namespace != "":
		return []string{"namespace", namespace}
	case r.Cgroup != "":
		return []string{"cgroup", string(r.Cgroup), "--node", string(r.Node)}
	default:
		return []string{"node", string(r.Node)}
	}
}

// podCount describes how many pods there are and, if some lack CPU or memory, how many have both.
func podCount(pods []*usage.Item) string {
	return countOf(len(pods)-len(incompleteOf(pods)), len(pods))
}

func countOf(n, all int) string {
	if n == all {
		return humanize.Number(all)
	}
	return humanize.Number(n) + " of " + humanize.Number(all)
}

// incompleteOf returns the items that are incomplete.
func incompleteOf(items []*usage.Item) (incomplete []*usage.Item) {
	for _, it := range items {
		if isIncomplete(it) {
			incomplete = append(incomplete, it)
		}
	}
	return incomplete
}

// detail returns the lines that explain why numbers of a row are missing. A group has the reason of the
// first of its pods that lacks a number. They take at most half of the screen.
func (s *screen) detail(r *treeRow) []string {
	it := r.Item
	it.Reasons = mainReasons(it.Reasons)
	text := reasonText(&it)
	if text == "" && it.AtRisk != "" {
		text = "at risk: " + it.AtRisk
	}
	if pods := incompleteOf(r.pods); text == "" && len(pods) > 0 {
		text = humanize.Count(len(pods), "pod") + fmt.Sprintf(" without a number. %s/%s: %s", pods[0].Namespace, pods[0].Pod, reasonText(pods[0]))
	}
	if text == "" || s.height < 8 {
		return nil
	}
	page := humanize.Page{Width: s.width}
	page.Line(0, humanize.Plain, text)
	lines := strings.Split(strings.TrimSuffix(page.String(), "\n"), "\n")
	return lines[:min(len(lines), s.height/2)]
}
