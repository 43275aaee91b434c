package topcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
)

// screen is --watch on a terminal: a list or a tree that follows the keys of the user. It implements
// tea.Model.
type screen struct {
	*viewer
	ctx context.Context

	list   *usage.List // the last one
	failed error       // of the last request
	asked  time.Time   // when the last request was answered
	// seen has the CPU of each item in its last readings, for the trend.
	seen map[string]readings
	// grouping is that of the tree, which has these items and these unfolded rows.
	grouping grouping
	tree     treeItems
	unfolded map[string]bool
	selected string // the key of a row
	text     *text  // shown over the rows, or nil

	order         ordering
	filter        string
	filtering     bool // the keys are letters of the filter
	paused, sum   bool
	top           int  // the first line shown
	scrolled      int  // how many columns are hidden at the left
	cut           bool // the last column drawn does not fit
	width, height int
}

// trendLength is how many readings the trend shows.
const trendLength = 12

// readings are the CPU of one item in its last readings, the oldest first. It is NaN where the number
// was missing.
type readings struct {
	cpu  []float64
	last time.Time
}

// missedReading is the time after which a number that is still missing counts as one more reading.
const missedReading = 15 * time.Second

// with returns r with the reading of an item in an answer of this time. Nothing is added if r has it.
// The history of the item comes first, if it has one.
func (r readings) with(it *usage.Item, at time.Time) readings {
	now := math.NaN()
	if it.CPU != nil {
		at, now = it.CPU.Time, float64(it.CPU.Nanocores)
	}
	switch {
	case r.cpu == nil && len(it.CPUHistory) > 0 && it.CPU != nil:
		r.cpu = append(r.cpu, it.CPUHistory[:len(it.CPUHistory)-1]...) // its last value is this reading
	case r.cpu == nil:
		r.cpu = append(r.cpu, it.CPUHistory...)
	case !at.After(r.last), it.CPU == nil && at.Sub(r.last) < missedReading:
		return r
	}
	r.cpu = append(r.cpu, now)
	r.cpu = r.cpu[max(0, len(r.cpu)-trendLength):]
	r.last = at
	return r
}

// answer is the result of a request.
type answer struct {
	list *usage.List
	tree *treeItems // nil if no tree was shown
	err  error
	at   time.Time
}

// treeAnswer is the result of a request for the items of a tree only.
type treeAnswer struct {
	tree *treeItems
	err  error
}

// tick begins the next request.
type tick struct{}

// interactive shows the screen until the user leaves it, or ctx ends. The first request must succeed.
func (v *viewer) interactive(ctx context.Context, in io.Reader) error {
	v.flags.known = true
	v.query.Metrics = v.flags.metrics(v.resource)
	s, err := newScreen(ctx, v)
	if err != nil {
		return err
	}
	_, err = tea.NewProgram(s, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(v.out)).Run()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("show the table: %w", err)
	}
	return nil
}

// newScreen returns the screen after the first request, which alone asks for the history of the list.
func newScreen(ctx context.Context, v *viewer) (*screen, error) {
	s := &screen{viewer: v, ctx: ctx, unfolded: map[string]bool{}, order: v.flags.order, sum: v.flags.sum}
	v.query.History = trendLength
	list, err := v.ask(ctx)
	v.query.History = 0
	if err != nil {
		return nil, err
	}
	s.addAnswer(answer{list: list, at: time.Now()})
	return s, nil
}

// Init waits for the next request.
func (s *screen) Init() tea.Cmd { return s.wait() }

func (s *screen) wait() tea.Cmd {
	return tea.Tick(s.flags.interval, func(time.Time) tea.Msg { return tick{} })
}

// request asks weir for what is shown.
func (s *screen) request() tea.Cmd {
	tree := s.grouping != noGroups
	containers := tree && s.containersWanted()
	return func() tea.Msg {
		a := answer{}
		if a.list, a.err = s.ask(s.ctx); tree && a.err == nil {
			a.tree, a.err = s.askTree(s.ctx, a.list, containers, 0)
		}
		a.at = time.Now()
		return a
	}
}

// requestTree asks weir for the items of the tree only.
func (s *screen) requestTree() tea.Cmd {
	list, containers := s.list, s.containersWanted()
	return func() tea.Msg {
		tree, err := s.askTree(s.ctx, list, containers, trendLength)
		return treeAnswer{tree, err}
	}
}

// Update takes an answer or a key.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case tick:
		if s.paused {
			return s, s.wait()
		}
		return s, s.request()
	case answer:
		s.addAnswer(msg)
		return s, s.wait()
	case treeAnswer:
		if s.failed = msg.err; msg.err == nil {
			s.tree = *msg.tree
			s.remember()
		}
	case *text:
		if s.text != nil && s.text.title == msg.title { // the user waits for it
			s.text = msg
		}
	case tea.KeyPressMsg:
		return s, s.press(msg)
	}
	return s, nil
}

// addAnswer keeps an answer. After an error the last one stays.
func (s *screen) addAnswer(a answer) {
	if s.failed, s.asked = a.err, a.at; a.err != nil {
		return
	}
	s.list = a.list
	if a.tree != nil {
		if a.tree.containers == nil && s.containersWanted() { // a pod was unfolded after the request
			a.tree.containers = s.tree.containers
		}
		s.tree = *a.tree
	}
	s.remember()
}

// remember keeps the CPU of the items for the trend.
func (s *screen) remember() {
	seen := make(map[string]readings, len(s.list.Items))
	for _, items := range [][]usage.Item{s.list.Items, s.tree.pods, s.tree.containers} {
		for i := range items {
			key := itemKey(&items[i])
			if _, known := seen[key]; known {
				continue // the list has the pods, too
			}
			seen[key] = s.seen[key].with(&items[i], s.asked)
		}
	}
	s.seen = seen
}

// cpuHistory returns the sums of the CPU of items in their last readings.
func (s *screen) cpuHistory(items []*usage.Item) []float64 {
	all := make([][]float64, len(items))
	for i, it := range items {
		all[i] = s.seen[itemKey(it)].cpu
	}
	return sumHistories(all)
}

// sumHistories adds up the last values, those before them, and so on. A sum is NaN where all values are.
func sumHistories(all [][]float64) []float64 {
	var sums []float64
	for _, past := range all {
		for len(sums) < len(past) {
			sums = append([]float64{math.NaN()}, sums...)
		}
		for i, v := range past {
			switch at := len(sums) - len(past) + i; {
			case math.IsNaN(sums[at]):
				sums[at] = v
			case !math.IsNaN(v):
				sums[at] += v
			}
		}
	}
	return sums
}

// itemKey identifies an item among those of one resource.
func itemKey(it *usage.Item) string {
	key := []string{string(it.Node), string(it.Namespace), string(it.Pod), it.Container, string(it.Cgroup)}
	if it.Pods != nil {
		key = append(key, it.Workload.Kind, it.Workload.Name)
	}
	return strings.Join(key, "\x00")
}

// press acts on a key.
func (s *screen) press(k tea.KeyPressMsg) tea.Cmd {
	key := k.String()
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case s.text != nil:
		if s.text.press(key, s.textRows()) {
			s.text = nil
		}
		return nil
	case s.filtering:
		s.editFilter(key, k.Key().Text)
		return nil
	}
	rows := s.visibleRows()
	if to, ok := moveBy(key, s.selectedIn(rows), s.page(), len(rows)-1); ok && len(rows) > 0 {
		s.selected = rows[max(0, min(to, len(rows)-1))].key
		return nil
	}
	if s.grouping != noGroups && s.fold(key, rows) {
		if !s.containersWanted() || s.tree.containers != nil {
			return nil
		}
		return s.requestTree()
	}
	switch key {
	case "enter":
		return s.explainRow(rows)
	case "t":
		return s.showNextGrouping()
	case "esc":
		s.goBack()
	case "q":
		return tea.Quit
	default:
		s.change(key)
	}
	return nil
}

// change acts on a key that changes how the rows are shown.
func (s *screen) change(key string) {
	switch key {
	case "c", "m", "n", "C", "M":
		s.order.key = orderKeys[key]
	case "?":
		s.text = &text{title: "weir top: keys", lines: strings.Split(strings.TrimSuffix(help, "\n"), "\n")}
	case "r":
		s.order.reverse = !s.order.reverse
	case "s":
		s.sum = !s.sum
	case "space", "p":
		s.paused = !s.paused
	case "/":
		s.filtering = true
	case "right", "l", ">":
		if s.cut {
			s.scrolled++
		}
	case "left", "h", "<":
		s.scrolled = max(0, s.scrolled-1)
	}
}

// goBack leaves the filter or, without one, the tree.
func (s *screen) goBack() {
	switch {
	case s.filter != "":
		s.filter = ""
	case s.grouping != noGroups:
		s.show(noGroups)
	}
}

// orderKeys are the keys that sort, with the values of --sort-by.
var orderKeys = map[string]string{"c": "cpu", "m": "memory", "n": "name", "C": "cpu/limit", "M": "memory/limit"}

// moveBy returns the line after a key that moves from a line. ok is false for other keys. The line may be
// outside of the list.
func moveBy(key string, from, page, last int) (to int, ok bool) {
	switch key {
	case "down", "j":
		return from + 1, true
	case "up", "k":
		return from - 1, true
	case "pgdown":
		return from + page, true
	case "pgup":
		return from - page, true
	case "home", "g":
		return 0, true
	case "end", "G":
		return last, true
	}
	return 0, false
}

// editFilter changes the filter by a key, which may be a letter of it.
func (s *screen) editFilter(key, text string) {
	switch key {
	case "enter":
		s.filtering = false
	case "esc":
		s.filtering, s.filter = false, ""
	case "backspace":
		if r := []rune(s.filter); len(r) > 0 {
			s.filter = string(r[:len(r)-1])
		}
	default:
		s.filter += text
	}
	s.top = 0
}

// showNextGrouping shows the next grouping of the resource, the list after the last one.
func (s *screen) showNextGrouping() tea.Cmd {
	all := groupings(s.resource)
	s.show(all[(slices.Index(all, s.grouping)+1)%len(all)])
	if s.grouping == noGroups {
		return nil
	}
	return s.requestTree()
}

// show shows a grouping from its first row.
func (s *screen) show(g grouping) {
	s.grouping, s.top, s.scrolled, s.selected, s.tree = g, 0, 0, "", treeItems{}
}

// page is how many lines a page key goes.
func (s *screen) page() int { return max(1, s.height-4) }

// textRows is how many lines of a text there is room for.
func (s *screen) textRows() int { return max(1, s.height-2) }

// The last line of the screen.
const (
	keys     = "? help  enter explain  / filter  c m n sort  t tree  space pause  q quit"
	treeKeys = "? help  enter explain  ← → fold  / filter  c m n sort  t next view  q quit"
	textKeys = "esc back  j k move"
)

// help lists the keys.
const help = `j k ↓ ↑         select the next or the previous row
g G home end    select the first or the last row
pgdn pgup       select a row one screen on or back
enter           explain the row: its numbers, and why one is missing
/               filter by a part of a name; enter keeps the filter
esc             go back: from a text, a filter or the tree
c m n           sort by CPU, memory or name
C M             sort by the share of the CPU or memory limit that is used
r               reverse the order
← → < >         scroll the columns that do not fit; ← → fold and unfold in a tree
t               show a tree of nodes or workloads, then the list again
e               unfold all groups of the tree, or fold them
s               add the sum as the last row
space           pause, and go on
q               quit

PODS "2 of 3": one of three pods has no number, so that the sum lacks it.
CPU TREND: the CPU of the last readings, the newest at the right.
Shares of a limit are amber from 75% and red from 90%.
`

// text is shown over the rows: the keys, or an explanation.
type text struct {
	title string
	lines []string
	top   int // the first line shown
}

// press acts on a key while rows lines are shown. It reports whether the user leaves the text.
func (t *text) press(key string, rows int) (leave bool) {
	if to, ok := moveBy(key, t.top, rows, len(t.lines)); ok {
		t.top = max(0, min(to, len(t.lines)-rows))
	}
	return slices.Contains([]string{"esc", "q", "enter", "?"}, key)
}

// draw returns the title and the lines that fit.
func (t *text) draw(rows int) []string {
	return append([]string{t.title}, t.lines[t.top:min(len(t.lines), t.top+rows)]...)
}

// explainRow shows what "explain" prints of the selected row.
func (s *screen) explainRow(rows []*treeRow) tea.Cmd {
	if len(rows) == 0 || s.explain == nil {
		return nil
	}
	args := rows[s.selectedIn(rows)].subject()
	title := humanize.Printable("weir top: explain " + strings.Join(args, " "))
	s.text = &text{title: title, lines: []string{"asking weir"}}
	out := &cli.TerminalBuffer{Terminal: s.Terminal}
	return func() tea.Msg {
		s.explain(s.ctx, out, args...)
		return &text{title: title, lines: strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")}
	}
}

// View draws the screen: a line of state, the rows or a text, and a line with the keys.
func (s *screen) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if s.height == 0 || s.width == 0 {
		return v // the size is not known yet
	}
	if s.text != nil {
		v.SetContent(s.fill(s.text.draw(s.textRows()), textKeys))
		return v
	}
	screen, last := s.draw(), keys
	if len(groupings(s.resource)) == 1 {
		last = strings.Replace(keys, "t tree  ", "", 1)
	}
	switch {
	case s.filtering:
		last = "filter: " + humanize.Printable(s.filter) + "_  enter keep  esc clear"
	case s.grouping != noGroups:
		last = treeKeys
	case s.cut || s.scrolled > 0:
		last = "← → columns  " + last
	}
	v.SetContent(s.fill(screen, last))
	return v
}

// fill returns the screen with these first lines and this last one.
func (s *screen) fill(lines []string, last string) string {
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, humanize.Truncate(last, s.width)), "\n")
}

// draw returns the lines of the rows. The last ones explain why the selected row lacks a number.
func (s *screen) draw() []string {
	visible := s.visibleRows()
	selected := s.selectedIn(visible)
	newTable := s.listTable
	if s.grouping != noGroups {
		newTable = s.treeTable
	}
	table, names := newTable(visible, selected)
	for i, row := range table {
		table[i] = slices.Delete(row, min(names, len(row)), min(names+s.scrolled, len(row)))
	}
	s.cut = slices.ContainsFunc(table.Lines(0, false), func(line string) bool { return utf8.RuneCountInString(line) > s.width })
	lines := table.Lines(s.width, s.Colour)
	titles, body := lines[0], lines[1:]
	var detail []string
	if len(visible) > 0 {
		detail = s.detail(visible[selected])
		if s.Colour {
			body[selected] = humanize.Reverse.Apply(table.Lines(s.width, false)[1+selected])
		}
	}
	rows := max(1, s.height-3-len(detail)) // without the first line, the titles and the last line
	s.top = max(0, min(s.top, selected, len(body)-rows))
	s.top = max(s.top, selected-rows+1)
	if selected == len(visible)-1 {
		s.top = max(s.top, len(body)-rows) // the sum follows the last row
	}
	screen := append([]string{s.state(visible), titles}, body[s.top:min(len(body), s.top+rows)]...)
	for len(screen) < s.height-1-len(detail) {
		screen = append(screen, "")
	}
	return append(screen, detail...)
}

// chosen returns the items that the filter leaves, in the order that the user chose.
func (s *screen) chosen() *usage.List {
	list := *s.list
	list.Items = slices.DeleteFunc(slices.Clone(s.list.Items), func(it usage.Item) bool {
		return !strings.Contains(strings.ReplaceAll(itemKey(&it), "\x00", "/"), s.filter)
	})
	s.order.sort(list.Items)
	return &list
}

// listTable returns the table of the list, and how many columns have names. The trend of the CPU is
// the last column of a narrow table.
func (s *screen) listTable(rows []*treeRow, selected int) (t humanize.Table, names int) {
	list := *s.list
	list.Items = nil
	for _, r := range rows {
		list.Items = append(list.Items, r.Item)
	}
	columns := slices.DeleteFunc(shownColumns(&list, s.query, s.flags), func(c column) bool { return c.title == reasonTitle })
	for names < len(columns) && columns[names].names {
		names++
	}
	narrow := slices.IndexFunc(columns, func(c column) bool { return c.wide })
	if narrow < 0 {
		narrow = len(columns)
	}
	columns = slices.Insert(columns, narrow, column{title: "CPU TREND", blank: true, text: func(it *usage.Item) string {
		return trend(s.cpuHistory([]*usage.Item{it}))
	}})
	if s.sum {
		list = *withSum(&list)
	}
	t = layout(list.Items, columns, true)
	for i := range t {
		cursor := "  "
		if i == selected+1 && len(rows) > 0 {
			cursor = "> "
		}
		t[i][0].Text = cursor + t[i][0].Text
	}
	return t, names
}

// trend draws values as bars of eight heights, the largest as the highest. NaN has no bar.
func trend(values []float64) string {
	const bars = "▁▂▃▄▅▆▇█"
	heights := []rune(bars)
	values = slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	most := slices.Max(append([]float64{1}, values...))
	var b strings.Builder
	for _, v := range values {
		b.WriteRune(heights[min(len(heights)-1, int(v/most*float64(len(heights))))])
	}
	return b.String()
}

// markText counts items with a mark: "  (2 missing)". It is empty for none.
func markText(n int, mark string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("  (%s %s)", humanize.Number(n), mark)
}

// state is the first line: how many of all items are shown, of when, and their sum. A cgroup contains
// others, so cgroups have no sum.
func (s *screen) state(rows []*treeRow) string {
	var shown []*usage.Item
	title, noun, all := "weir top "+string(s.resource), "", len(s.list.Items)
	ofPods := s.grouping != noGroups && s.resource != usage.Nodes
	if ofPods {
		all = len(s.tree.pods)
		title, noun = title+" "+string(s.grouping), " "+humanize.Plural(all, "pod")
	}
	for _, r := range rows {
		switch {
		case r.depth > 0:
		case ofPods:
			shown = append(shown, r.pods...)
		default:
			shown = append(shown, &r.Item)
		}
	}
	text := fmt.Sprintf("%s  %s  %s of %s%s", title, s.asked.Format("15:04:05"), humanize.Number(len(shown)), humanize.Number(all), noun)
	if s.resource != usage.Cgroups {
		var sum usage.Item
		for _, it := range shown {
			addUsage(&sum, it)
		}
		text += "  cpu " + cmp.Or(cpu().text(&sum), missing) + "  memory " + cmp.Or(memory().text(&sum), missing)
	}
	text += markText(len(incompleteOf(shown)), "missing")
	text += markText(len(slices.DeleteFunc(shown, func(it *usage.Item) bool { return it.AtRisk == "" })), "at risk")
	text += "  by " + s.order.String()
	if s.filter != "" {
		text += "  with " + humanize.Printable(s.filter)
	}
	if s.paused {
		text += "  paused"
	}
	if s.failed != nil {
		text = "error: " + humanize.Printable(s.failed.Error()) + "  (" + text + ")"
	}
	text = humanize.Truncate(text, s.width)
	switch {
	case s.Colour && s.failed != nil:
		return humanize.Red.Apply(text)
	case s.Colour:
		return humanize.Bold.Apply(text)
	}
	return text
}
