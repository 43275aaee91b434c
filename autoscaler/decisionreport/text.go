package decisionreport

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

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
	colour bool
}

// WriteText writes r in plain words with the table of pods; colour only if asked.
// It is for people and may change; programs read the JSON.
func (r *Report) WriteText(w io.Writer, colour bool) error {
	p := &writer{colour: colour}
	p.line(0, bold, r.Summary)
	p.head(r)
	for i := range r.Metrics {
		p.metric(&r.Metrics[i])
	}
	if len(r.Steps) > 0 {
		p.title("Then, in this order")
		for i := range r.Steps {
			p.line(2, "", fmt.Sprintf("%d. %s", i+1, r.Steps[i].Message))
		}
	}
	p.missing(r)
	if len(r.Next) > 0 {
		p.title("Next")
		for i := range r.Next {
			p.line(2, "", r.Next[i].Message)
		}
	}
	for i, n := range r.Notes {
		if i == 0 {
			p.gap()
		}
		p.line(0, "", n)
	}
	for i := range r.Metrics {
		p.table(r, &r.Metrics[i])
	}
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (p *writer) gap() { p.WriteByte('\n') }

// line writes one line, with whatever a terminal might obey written out.
func (p *writer) line(column int, tint, text string) {
	p.WriteString(strings.Repeat(" ", column))
	text = safe(text)
	if p.colour && tint != "" {
		text = tint + text + reset
	}
	p.WriteString(text + "\n")
}

// item writes a labelled line.
func (p *writer) item(column int, label, text string) {
	if text == "" {
		return
	}
	p.WriteString(strings.Repeat(" ", column))
	label = fmt.Sprintf("%-7s", label)
	if p.colour {
		label = dim + label + reset
	}
	p.WriteString(label + safe(text) + "\n")
}

func (p *writer) title(text string) {
	p.gap()
	p.line(0, bold, text)
}

// head says what the report is about.
func (p *writer) head(r *Report) {
	about := fmt.Sprintf("%s %s/%s", r.Autoscaler.Kind, r.Autoscaler.Namespace, r.Autoscaler.Name)
	var parts []string
	if r.Target != "" {
		parts = append(parts, "scales "+r.Target)
	}
	if r.Max > 0 {
		parts = append(parts, fmt.Sprintf("%d to %d replicas", r.Min, r.Max))
	}
	switch r.Mode {
	case DryRun:
		parts = append(parts, "dry run: nothing is written")
	case Shadow:
		parts = append(parts, "shadowed: weir only watches, another controller acts")
	case "":
		parts = append(parts, "evaluated: nothing is written")
	}
	parts = append(parts, "decided at "+r.At.UTC().Format("2006-01-02 15:04:05 UTC"))
	p.line(0, dim, strings.TrimSpace(about)+": "+strings.Join(parts, ", "))
	if r.Error != "" && !r.failed() {
		p.gap()
		p.item(0, "error", r.Error)
	}
	if o := r.Other; o != nil {
		p.gap()
		switch {
		case o.Agrees && o.Desired == r.Desired && !r.failed():
			p.line(0, "", fmt.Sprintf("The controller that acts wants %d too.", o.Desired))
		case o.Agrees && o.Desired == 0: // as long as it has had no metric
			p.line(0, "", "The controller that acts has decided nothing yet.")
		case o.Agrees: // one of the two has looked since
			p.line(0, "", fmt.Sprintf("The controller that acts wanted %d when it last decided.", o.Desired))
		case o.Why != "":
			p.line(0, amber, fmt.Sprintf("The controller that acts wants %d: %s", o.Desired, o.Why))
		default:
			p.line(0, amber, fmt.Sprintf("The controller that acts wants %d.", o.Desired))
		}
	}
}

// failed reports whether a metric says for itself what is wrong.
func (r *Report) failed() bool {
	return slices.ContainsFunc(r.Metrics, func(m Metric) bool { return m.Error != "" })
}

// metric writes what one metric asks for.
func (p *writer) metric(m *Metric) {
	p.gap()
	if m.Error != "" {
		p.line(0, red, fmt.Sprintf("%s: <unknown>%s (%s)", m.Name, against(m), m.Reason))
		p.item(2, "error", m.Error)
		return
	}
	asks := fmt.Sprintf("%s: %s%s", m.Name, or(human(m, m.Usage)), against(m))
	if m.Proposal != nil {
		asks += fmt.Sprintf(", asks for %d", *m.Proposal)
	}
	if m.Decides {
		asks += ", which decides"
	}
	p.line(0, bold, asks)
	p.line(2, "", m.Arithmetic)
	if m.Recount != nil {
		p.line(2, "", m.Recount.Arithmetic)
	}
}

func against(m *Metric) string {
	if m.Target == "" {
		return ""
	}
	return " / " + human(m, m.Target)
}

// human writes a quantity of a metric as the arithmetic does.
func human(m *Metric, text string) string {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return text // a percentage
	}
	u := plain
	if m.Type == string(autoscalingv2.ResourceMetricSourceType) || m.Type == string(autoscalingv2.ContainerResourceMetricSourceType) {
		name, _, _ := strings.Cut(m.Name, " ")
		u = unitOf(corev1.ResourceName(name))
	}
	return u.words(q.MilliValue())
}

// mostNames is how many pods a cause names.
const mostNames = 10

// missing writes what is missing.
func (p *writer) missing(r *Report) {
	advised := map[string]bool{}
	for i := range r.Missing {
		c := &r.Missing[i]
		if i == 0 {
			p.title("Missing")
		}
		head, tint := c.Reason+", "+c.Metric, map[string]string{"broken": red, "temporary": amber}[c.Severity]
		if n := len(c.Pods); n > 0 {
			head += ": " + plural(n, "pod")
		}
		if c.Severity != "none" {
			head += ", " + c.Severity
		}
		p.line(2, tint, head)
		p.item(4, "why", c.Message)
		names := c.Pods[:min(len(c.Pods), mostNames)]
		who := strings.Join(names, ", ")
		if more := len(c.Pods) - len(names); more > 0 {
			who += fmt.Sprintf(" and %d more", more)
		}
		p.item(4, "who", who)
		if !advised[c.Advice] {
			p.item(4, "do", c.Advice)
		}
		advised[c.Advice] = true
	}
}

// mostRows is how many pods a table has.
const mostRows = 50

// table writes how each pod was counted; where there are too many, first those
// that were not.
func (p *writer) table(r *Report, m *Metric) {
	if len(m.Pods) == 0 {
		return
	}
	p.title("Pods, by " + m.Name)
	rows := chosen(m.Pods)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "POD\tCLASS\tUSAGE\tREQUEST\tAGE/WINDOW\tWHY")
	for i := range rows {
		pod := &rows[i]
		why := pod.Why
		if pod.Assumed != "" {
			why = strings.TrimPrefix(why+"; taken to use "+human(m, pod.Assumed), "; ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", safe(pod.Name), pod.Class, or(human(m, pod.Usage)), or(human(m, pod.Request)), age(r.At, pod), or(safe(why)))
	}
	_ = w.Flush() // to memory
	for l := range strings.Lines(b.String()) {
		p.WriteString(strings.TrimRight(l, " \n") + "\n")
	}
	if more := len(m.Pods) - len(rows); more > 0 {
		p.line(0, dim, fmt.Sprintf("and %d more: -o json has them", more))
	}
}

// chosen returns the pods that a table shows, in their order.
func chosen(pods []Pod) []Pod {
	if len(pods) <= mostRows {
		return pods
	}
	counted := classes[0]
	room := mostRows
	for i := range pods {
		if pods[i].Class != counted {
			room--
		}
	}
	var rows []Pod
	for i := range pods {
		switch {
		case len(rows) == mostRows:
			return rows
		case pods[i].Class != counted:
			rows = append(rows, pods[i])
		case room > 0:
			rows = append(rows, pods[i])
			room--
		}
	}
	return rows
}

// age says how old a pod's number is, and over how long it was measured.
func age(now time.Time, pod *Pod) string {
	if pod.At.IsZero() {
		return "–"
	}
	s := lasting(max(now.Sub(pod.At), 0))
	if window, err := time.ParseDuration(pod.Window); err == nil {
		s += "/" + lasting(window)
	}
	return s
}

func or(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
