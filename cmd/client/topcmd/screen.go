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

	tea "charm.land/bubbletea/v2"

	"github.com/weir-metrics/weir/api/usage"
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
	// seen has the CPU of each item in the last answers, the newest last, for the trend. It is NaN
	// where the number was missing.
	seen map[string][]float64
	// grouping is that of the tree, which has these items, these unfolded rows and one selected row.
	grouping grouping
	tree     treeItems
	unfolded map[string]bool
	selected string

	sortBy        string
	filter        string
	filtering     bool // the keys are letters of the filter
	paused, sum   bool
	top           int // the first line shown
	width, height int
}

// trendLength is how many answers the trend shows.
const trendLength = 12

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
	list, err := v.ask(ctx)
	if err != nil {
		return err
	}
	s := &screen{viewer: v, ctx: ctx, unfolded: map[string]bool{}, sortBy: v.flags.sortBy, sum: v.flags.sum}
	s.addAnswer(answer{list: list, at: time.Now()})
	_, err = tea.NewProgram(s, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(v.out)).Run()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("show the table: %w", err)
	}
	return nil
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
			a.tree, a.err = s.askTree(s.ctx, a.list, containers)
		}
		a.at = time.Now()
		return a
	}
}

// requestTree asks weir for the items of the tree only.
func (s *screen) requestTree() tea.Cmd {
	list, containers := s.list, s.containersWanted()
	return func() tea.Msg {
		tree, err := s.askTree(s.ctx, list, containers)
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
	seen := make(map[string][]float64, len(a.list.Items))
	for _, items := range [][]usage.Item{s.list.Items, s.tree.pods, s.tree.containers} {
		for i := range items {
			key := itemKey(&items[i])
			if seen[key] != nil {
				continue // the list has the pods, too
			}
			now := math.NaN()
			if items[i].CPU != nil {
				now = float64(items[i].CPU.Nanocores)
			}
			past := s.seen[key]
			past = append(past, now)
			seen[key] = past[max(0, len(past)-trendLength):]
		}
	}
	s.seen = seen
}

// cpuHistory returns the sums of the CPU of items in the last answers. It is NaN where all were missing.
func (s *screen) cpuHistory(items []*usage.Item) []float64 {
	var sums []float64
	for _, it := range items {
		past := s.seen[itemKey(it)]
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
	return strings.Join([]string{string(it.Node), string(it.Namespace), string(it.Pod), it.Container, string(it.Cgroup)}, "\x00")
}

// press acts on a key.
func (s *screen) press(k tea.KeyPressMsg) tea.Cmd {
	key := k.String()
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case s.filtering:
		s.editFilter(key, k.Key().Text)
		return nil
	case s.grouping != noGroups && s.pressInTree(key):
		if !s.containersWanted() || s.tree.containers != nil {
			return nil
		}
		return s.requestTree()
	}
	if order, ok := sortKeys[key]; ok {
		s.sortBy = order
		return nil
	}
	if to, ok := moveBy(key, s.top, s.page(), len(s.list.Items)); ok {
		s.top = to
		return nil
	}
	switch key {
	case "q", "esc":
		return tea.Quit
	case "s":
		s.sum = !s.sum
	case "t":
		return s.showNextGrouping()
	case "space", "p":
		s.paused = !s.paused
	case "/":
		s.filtering = true
	}
	return nil
}

// sortKeys are the keys that sort, with the values of --sort-by.
var sortKeys = map[string]string{"c": "cpu", "m": "memory", "n": "name"}

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
	s.grouping = all[(slices.Index(all, s.grouping)+1)%len(all)]
	s.top, s.selected, s.tree = 0, "", treeItems{}
	if s.grouping == noGroups {
		return nil
	}
	return s.requestTree()
}

// page is how many lines a page key goes.
func (s *screen) page() int { return max(1, s.height-4) }

// The last line of the screen.
const (
	keys     = "c cpu  m memory  n name  / filter  s sum  t tree  space pause  j k move  q quit"
	treeKeys = "← → fold, unfold  e all  t next view  c cpu  m memory  n name  / filter  q quit"
)

// View draws the screen: a line of state, the list or the tree, and a line with the keys.
func (s *screen) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if s.height == 0 || s.width == 0 {
		return v // the size is not known yet
	}
	var screen []string
	last := keys
	switch {
	case s.grouping != noGroups:
		screen, last = s.drawTree(), treeKeys
	case s.resource == usage.Cgroups:
		last = strings.Replace(keys, "t tree  ", "", 1)
		fallthrough
	default:
		screen = s.drawList()
	}
	if s.filtering {
		last = "filter: " + humanize.Printable(s.filter) + "_  enter keep  esc clear"
	}
	for len(screen) < s.height-1 {
		screen = append(screen, "")
	}
	v.SetContent(strings.Join(append(screen, truncate(last, s.width)), "\n"))
	return v
}

// drawList returns the lines of the list.
func (s *screen) drawList() []string {
	shown := s.chosen()
	table := s.table(shown)
	lines := table.lines(s.width, s.Colour)
	titles, body := lines[0], lines[1:]
	rows := max(1, s.height-3) // without the first line, the titles and the last line
	s.top = max(0, min(s.top, len(body)-rows))
	items := make([]*usage.Item, len(shown.Items))
	for i := range shown.Items {
		items[i] = &shown.Items[i]
	}
	return append([]string{s.state(items, len(s.list.Items)), titles}, body[s.top:min(len(body), s.top+rows)]...)
}

// drawTree returns the lines of the tree. The last ones explain why the selected row lacks a number.
func (s *screen) drawTree() []string {
	visible := s.visibleRows()
	var nodes, pods []*usage.Item
	for _, r := range visible {
		if r.depth == 0 {
			nodes, pods = append(nodes, &r.Item), append(pods, r.pods...)
		}
	}
	state := s.state(pods, len(s.tree.pods))
	if s.resource == usage.Nodes {
		state = s.state(nodes, len(s.list.Items))
	}

	selected := s.selectedIn(visible)
	table := s.treeTable(visible, selected)
	lines := table.lines(s.width, s.Colour)
	titles, body := lines[0], lines[1:]
	var detail []string
	if len(visible) > 0 {
		detail = s.detail(visible[selected])
		if s.Colour {
			body[selected] = humanize.Bold.Apply(table.lines(s.width, false)[1+selected])
		}
	}
	rows := max(1, s.height-3-len(detail)) // without the first line, the titles and the last line
	s.top = max(0, min(s.top, selected, len(body)-rows))
	s.top = max(s.top, selected-rows+1)
	screen := append([]string{state, titles}, body[s.top:min(len(body), s.top+rows)]...)
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
	order(list.Items, s.sortBy)
	return &list
}

// table returns the table of a list, with the trend of the CPU as its last column.
func (s *screen) table(list *usage.List) table {
	items := list.Items
	if s.sum {
		list = withSum(list)
	}
	t := layout(list, s.query, s.flags.output == "wide", true)
	t.rows[0] = append(t.rows[0], "CPU TREND")
	for i := range items {
		t.rows[i+1] = append(t.rows[i+1], trend(s.seen[itemKey(&items[i])]))
	}
	return t
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

// state is the first line: how many of all items are shown, of when, and their sum. A cgroup contains
// others, so cgroups have no sum.
func (s *screen) state(shown []*usage.Item, all int) string {
	title, noun := "weir top "+string(s.resource), ""
	if s.grouping != noGroups && s.resource != usage.Nodes {
		title, noun = title+" "+string(s.grouping), " "+humanize.Plural(all, "pod")
	}
	text := fmt.Sprintf("%s  %s  %s of %s%s", title, s.asked.Format("15:04:05"), humanize.Number(len(shown)), humanize.Number(all), noun)
	if s.resource != usage.Cgroups {
		var sum usage.Item
		for _, it := range shown {
			addUsage(&sum, it)
		}
		text += "  cpu " + cmp.Or(cpu().text(&sum), missing) + "  memory " + cmp.Or(memory().text(&sum), missing)
	}
	if n := len(incompleteOf(shown)); n > 0 {
		text += fmt.Sprintf("  (%s missing)", humanize.Number(n))
	}
	text += "  by " + s.sortBy
	if s.filter != "" {
		text += "  with " + humanize.Printable(s.filter)
	}
	if s.paused {
		text += "  paused"
	}
	if s.failed != nil {
		text = "error: " + humanize.Printable(s.failed.Error()) + "  (" + text + ")"
	}
	text = truncate(text, s.width)
	switch {
	case s.Colour && s.failed != nil:
		return humanize.Red.Apply(text)
	case s.Colour:
		return humanize.Bold.Apply(text)
	}
	return text
}

// truncate cuts a line at width.
func truncate(line string, width int) string {
	if r := []rune(line); len(r) > width {
		return string(r[:width])
	}
	return line
}
