package topcmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/humanize"
)

// screen is --watch on a terminal: a table that follows the keys of the user. It implements tea.Model.
type screen struct {
	*viewer
	ctx context.Context

	list   *usage.List // the last one
	failed error       // of the last request
	asked  time.Time   // when the last request was answered
	// seen has the CPU of each item in the last answers, the newest last, for the trend.
	seen map[string][]float64

	sortBy        string
	filter        string
	filtering     bool // the keys are letters of the filter
	paused, sum   bool
	top           int // the first item shown
	width, height int
}

// trendLength is how many answers the trend shows.
const trendLength = 12

// answer is the result of a request.
type answer struct {
	list *usage.List
	err  error
	at   time.Time
}

// tick begins the next request.
type tick struct{}

// interactive shows the screen until the user leaves it, or ctx ends. The first request must succeed.
func (v *viewer) interactive(ctx context.Context, in io.Reader) error {
	list, err := v.ask(ctx)
	if err != nil {
		return err
	}
	s := &screen{viewer: v, ctx: ctx, seen: map[string][]float64{}, sortBy: v.flags.sortBy, sum: v.flags.sum}
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

// request asks weir for the list.
func (s *screen) request() tea.Msg {
	list, err := s.ask(s.ctx)
	return answer{list, err, time.Now()}
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
		return s, s.request
	case answer:
		s.addAnswer(msg)
		return s, s.wait()
	case tea.KeyPressMsg:
		return s, s.press(msg)
	}
	return s, nil
}

// addAnswer keeps an answer. After an error the last list stays.
func (s *screen) addAnswer(a answer) {
	if s.failed, s.asked = a.err, a.at; a.err != nil {
		return
	}
	s.list = a.list
	seen := make(map[string][]float64, len(a.list.Items))
	for i := range a.list.Items {
		it := &a.list.Items[i]
		past := s.seen[itemKey(it)]
		if it.CPU != nil {
			past = append(past, float64(it.CPU.Nanocores))
		}
		seen[itemKey(it)] = past[max(0, len(past)-trendLength):]
	}
	s.seen = seen
}

// itemKey identifies an item among those of one resource.
func itemKey(it *usage.Item) string {
	return strings.Join([]string{string(it.Node), string(it.Namespace), string(it.Pod), it.Container, string(it.Cgroup)}, "\x00")
}

// press does what a key says.
func (s *screen) press(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if s.filtering {
		switch {
		case name == "enter":
			s.filtering = false
		case name == "esc":
			s.filtering, s.filter = false, ""
		case name == "backspace":
			if r := []rune(s.filter); len(r) > 0 {
				s.filter = string(r[:len(r)-1])
			}
		default:
			s.filter += k.Key().Text
		}
		s.top = 0
		return nil
	}
	page := max(1, s.height-4)
	switch name {
	case "q", "esc":
		return tea.Quit
	case "c":
		s.sortBy = "cpu"
	case "m":
		s.sortBy = "memory"
	case "n":
		s.sortBy = "name"
	case "s":
		s.sum = !s.sum
	case "space", "p":
		s.paused = !s.paused
	case "/":
		s.filtering = true
	case "down", "j":
		s.top++
	case "up", "k":
		s.top--
	case "pgdown":
		s.top += page
	case "pgup":
		s.top -= page
	case "home", "g":
		s.top = 0
	case "end", "G":
		s.top = len(s.list.Items)
	}
	return nil
}

// keys is the last line of the screen.
const keys = "c cpu  m memory  n name  / filter  s sum  space pause  j k scroll  q quit"

// View draws the screen: a line of state, the table, and a line with the keys.
func (s *screen) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if s.height == 0 || s.width == 0 {
		return v // the size is not known yet
	}
	shown := s.chosen()
	table := s.table(shown)
	lines := table.lines(s.width, s.Colour)
	titles, body := lines[0], lines[1:]
	rows := max(1, s.height-3) // without the first line, the titles and the last line
	s.top = max(0, min(s.top, len(body)-rows))
	screen := append([]string{s.state(shown), titles}, body[s.top:min(len(body), s.top+rows)]...)
	for len(screen) < s.height-1 {
		screen = append(screen, "")
	}
	last := keys
	if s.filtering {
		last = "filter: " + humanize.Printable(s.filter) + "_  enter keep  esc clear"
	}
	v.SetContent(strings.Join(append(screen, truncate(last, s.width)), "\n"))
	return v
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

// trend draws values as bars of eight heights, the largest as the highest.
func trend(values []float64) string {
	const bars = "▁▂▃▄▅▆▇█"
	heights := []rune(bars)
	most := slices.Max(append([]float64{1}, values...))
	var b strings.Builder
	for _, v := range values {
		b.WriteRune(heights[min(len(heights)-1, int(v/most*float64(len(heights))))])
	}
	return b.String()
}

// state is the first line: what is shown, of when, and the sum of it. A cgroup contains others, so
// cgroups have no sum.
func (s *screen) state(shown *usage.List) string {
	n := len(shown.Items)
	text := fmt.Sprintf("weir top %s  %s  %s of %s", s.resource, s.asked.Format("15:04:05"), humanize.Number(n), humanize.Number(len(s.list.Items)))
	if s.resource != usage.Cgroups {
		sum := withSum(shown).Items[n]
		text += fmt.Sprintf("  cpu %s  memory %s", humanize.Cores(float64(sum.CPU.Nanocores)), humanize.Bytes(float64(sum.Memory.WorkingSetBytes)))
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
