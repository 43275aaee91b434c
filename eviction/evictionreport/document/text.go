package document

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Options are how a text is to be.
type Options struct {
	// All adds for each signal the whole ranking, and all acts that are remembered.
	All bool
	// Colour marks what matters, for a terminal.
	Colour bool
}

// The colours of a terminal.
const (
	bold  = "\x1b[1m"
	amber = "\x1b[33m"
	red   = "\x1b[31m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"
)

// writer lays a report out.
type writer struct {
	strings.Builder
	Options
}

// WriteText writes r in plain words: the answer first, then what it rests on. It is for
// people and may change; programs read the JSON.
func (r *Report) WriteText(w io.Writer, o Options) error {
	p := &writer{Options: o}
	p.line(0, bold, r.Summary)
	p.head(r)
	if r.NoPods() {
		p.line(0, dim, NoPods)
	}
	for i := range r.Signals {
		if s := &r.Signals[i]; o.All || !r.Implied(s) {
			p.signal(s, r.Reclaims)
		}
	}
	p.exceeded(r)
	p.conditions(r)
	p.acts(r)
	p.watches(r)
	p.list("Beware", amber, r.Warnings)
	if o.All {
		for i := range r.Signals {
			p.ranking(r.Signals, i)
		}
	}
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// head says what the report is about, and how old it is.
func (p *writer) head(r *Report) {
	parts := []string{"mode " + r.Mode}
	if r.DecidedAt.IsZero() {
		parts = append(parts, "as of "+Clock(r.At))
	} else {
		parts = append(parts, fmt.Sprintf("read %s ago, at %s", Lasting(r.At.Sub(r.ReadAt)), Clock(r.ReadAt)))
	}
	if r.Because != "" {
		parts = append(parts, fmt.Sprintf("woken by: %s, decided %s after it", r.Because, Lasting(seconds(r.TookSeconds))))
	}
	p.line(0, dim, strings.Join(parts, "; "))
	if r.Unread != "" {
		p.line(0, amber, "not all could be read: "+r.Unread)
	}
}

// signal writes a signal, its thresholds, and who is next.
func (p *writer) signal(s *Signal, reclaims bool) {
	p.gap()
	head := s.Name + ": " + s.Figure()
	if s.Doubt != "" && s.Value != nil {
		head += ", which counts for nothing: " + s.Doubt
	}
	p.line(0, s.tint(), head)
	for i := range s.Thresholds {
		t := &s.Thresholds[i]
		p.item(t.tint(), t.Kind(), strings.TrimPrefix(t.Text, s.Name)+": "+t.Message)
	}
	p.item("", "first", s.Before(reclaims))
	switch {
	case s.Ranking != nil && len(s.Ranking.Pods) > 0: // without pods it is said once: NoPods
		p.item("", "next", s.Ranking.Message)
		p.item("", "spared", s.Ranking.Spared())
	case s.Ranking == nil && s.Value != nil:
		p.item("", "next", "nobody is evicted for this: no figure tells who is to blame")
	}
}

// NoPods says in words what Report.NoPods says.
const NoPods = "weir knows of no pod here, so nobody would go"

// NoPods says that those who could go were looked for, and that there is nobody.
func (r *Report) NoPods() bool {
	looked := false
	for i := range r.Signals {
		if ranking := r.Signals[i].Ranking; ranking != nil {
			if len(ranking.Pods) > 0 {
				return false
			}
			looked = true
		}
	}
	return looked
}

// Implied says that s tells nothing that another signal does not: nobody wrote a threshold for
// it, none is acted on, and none is met, or else another has the very figure.
func (r *Report) Implied(s *Signal) bool {
	quiet := true
	for i := range s.Thresholds {
		t := &s.Thresholds[i]
		if !t.Derived || t.Acting {
			return false
		}
		quiet = quiet && (t.State == Clear || t.State == Unknown)
	}
	return quiet || slices.ContainsFunc(r.Signals, func(other Signal) bool {
		return other.Name != s.Name && other.Figure() == s.Figure()
	})
}

// Figure is the value of a signal, and its share of the capacity.
func (s *Signal) Figure() string {
	switch {
	case s.Value == nil:
		return "no figure"
	case s.Stall:
		return s.Unit.Words(*s.Value) + " of the time"
	}
	text := s.Unit.Noun(*s.Value)
	if s.Capacity != nil {
		text += " of " + s.Unit.Words(*s.Capacity)
		if *s.Capacity > 0 {
			text += " (" + Percent.Words(100**s.Value / *s.Capacity) + ")"
		}
	}
	return text
}

// FirstWords says what the node gives up before a pod.
func (s *Signal) FirstWords() string {
	words := make([]string, len(s.First))
	for i, c := range s.First {
		switch c {
		case "container":
			c = "containers that have ended"
		case "image":
			c = "images that nothing uses"
		}
		words[i] = c
	}
	return strings.Join(words, " and ")
}

// Before says what goes before any pod, if there is anything; reclaims is Report.Reclaims.
func (s *Signal) Before(reclaims bool) string {
	switch words := s.FirstWords(); {
	case words == "":
		return ""
	case reclaims:
		return words + ", before any pod"
	default:
		return words + ", but not by weir: it may not ask the container runtime (--eviction-reclaim)"
	}
}

// Spared names those that would have come before the next, but are passed over.
func (r *Ranking) Spared() string {
	const most = 3
	var names []string
	more := 0
	for i := range r.Pods {
		pod := &r.Pods[i]
		if pod.Passed == "" {
			break
		}
		if len(names) == most {
			more++
			continue
		}
		names = append(names, pod.String()+" ("+pod.Why+")")
	}
	text := strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// tint marks a signal by the worst of its thresholds.
func (s *Signal) tint() string {
	tint := bold
	for i := range s.Thresholds {
		switch t := s.Thresholds[i].tint(); {
		case t == red, t == amber && tint == bold:
			tint = t
		}
	}
	return tint
}

func (t *Threshold) tint() string {
	switch t.State {
	case InForce, Held:
		return red
	case Grace, Unknown:
		return amber
	}
	return ""
}

// Kind is how a threshold acts: hard or soft.
func (t *Threshold) Kind() string {
	if t.Hard {
		return "hard"
	}
	return "soft"
}

func (p *writer) exceeded(r *Report) {
	for i := range r.Exceeded {
		e := &r.Exceeded[i]
		if i == 0 {
			p.title("Over a limit of local storage")
		}
		p.line(2, red, e.Message)
	}
}

func (p *writer) conditions(r *Report) {
	if len(r.Conditions) == 0 && r.Admission == nil {
		return
	}
	p.title("Conditions that follow from these thresholds")
	for i := range r.Conditions {
		c := &r.Conditions[i]
		tint := ""
		if c.Reported {
			tint = amber
		}
		p.line(2, tint, c.Type+" is "+c.Message)
	}
	if len(r.Conditions) == 0 {
		p.line(2, "", "none was met since the start")
	}
	if r.Admission != nil {
		p.line(2, "", "new pods: "+r.Admission.Message)
	}
}

// mostActs is how many acts are shown where not all are asked for.
const mostActs = 5

func (p *writer) acts(r *Report) {
	if r.State == Off || r.State == Starting && len(r.Acts) == 0 {
		return
	}
	p.title("Lately")
	if len(r.Acts) == 0 {
		p.line(2, "", "nothing was done, and nothing was to be done")
		return
	}
	most := mostActs
	if p.All {
		most = len(r.Acts)
	}
	for i := range r.Acts[:min(len(r.Acts), most)] {
		a := &r.Acts[i]
		tint := ""
		switch a.Did {
		case "Blocked", "Failed", "Refused":
			tint = amber
		}
		p.line(2, tint, fmt.Sprintf("%s  %s: %s", a.At.UTC().Format("2006-01-02 15:04:05 UTC"), a.Did, a.Message))
		if more := a.More(); more != "" {
			p.line(27, dim, more)
		}
	}
	if more := len(r.Acts) - most; more > 0 {
		p.line(2, dim, fmt.Sprintf("and %d more: --all shows them", more))
	}
}

// More is what else there is to say of an act.
func (a *Act) More() string {
	var parts []string
	if !a.Since.IsZero() {
		parts = append(parts, "the same since "+Clock(a.Since))
	}
	if a.Because != "" {
		parts = append(parts, fmt.Sprintf("woken by: %s, decided %s after it", a.Because, Lasting(seconds(a.TookSeconds))))
	}
	if a.Cleaned {
		parts = append(parts, "gone after "+Lasting(seconds(a.WaitedSeconds)))
	}
	if !a.NotBefore.IsZero() {
		parts = append(parts, "tried again at "+Clock(a.NotBefore)+" at the earliest")
	}
	return strings.Join(parts, "; ")
}

// watches says what wakes the guard.
func (p *writer) watches(r *Report) {
	if r.State == Off || r.State == Starting || r.State == Idle {
		return
	}
	p.title("What wakes it")
	for i := range r.Watches {
		p.line(2, "", r.Watches[i].Message)
	}
	for _, w := range r.Unwatched {
		p.line(2, amber, "not: "+w)
	}
	if r.PeekSeconds > 0 {
		p.line(2, "", "a look at disks and process ids, every "+Lasting(seconds(r.PeekSeconds)))
	}
	timer := "a timer"
	if len(r.Watches) == 0 {
		timer += " alone"
	}
	if r.FloorSeconds > 0 {
		timer += ", every " + Lasting(seconds(r.FloorSeconds))
	}
	if len(r.Watches) == 0 {
		timer += ": the kernel is asked for no notice"
	}
	p.line(2, "", timer)
}

func (p *writer) list(title, tint string, lines []string) {
	for i, l := range lines {
		if i == 0 {
			p.title(title)
		}
		p.line(2, tint, l)
	}
}

func (p *writer) gap() { p.WriteByte('\n') }

func (p *writer) title(text string) {
	p.gap()
	p.line(0, bold, text)
}

// line writes one line, with nothing in it that a terminal might obey.
func (p *writer) line(column int, tint, text string) {
	p.WriteString(strings.Repeat(" ", column))
	p.tinted(tint, text)
	p.WriteByte('\n')
}

// item writes a labelled line; nothing if there is nothing to say.
func (p *writer) item(tint, label, text string) {
	if text == "" {
		return
	}
	p.WriteString("  ")
	p.tinted(dim, fmt.Sprintf("%-7s", label))
	p.tinted(tint, text)
	p.WriteByte('\n')
}

func (p *writer) tinted(tint, text string) {
	text = safe(text)
	if p.Colour && tint != "" {
		text = tint + text + reset
	}
	p.WriteString(text)
}

// safe returns s without what a terminal might obey, in one line: names and errors come
// from anyone.
func safe(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\r', r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
