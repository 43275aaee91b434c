package decisionreport

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/humanize"
)

// The colours of a terminal.
const (
	bold  = "\x1b[1m"
	amber = "\x1b[33m"
	red   = "\x1b[31m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"
)

// textWriter writes a report as text.
type textWriter struct {
	strings.Builder
	colour bool
}

// WriteText writes the report for people, with the table of pods; colour only if asked. The text
// may change; programs read the JSON.
func (r *DecisionReport) WriteText(w io.Writer, colour bool) error {
	p := &textWriter{colour: colour}
	p.line(0, bold, r.Summary)
	p.header(r)
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
			p.blankLine()
		}
		p.line(0, "", n)
	}
	for i := range r.Metrics {
		p.podTable(r, &r.Metrics[i])
	}
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (p *textWriter) blankLine() { p.WriteByte('\n') }

// line writes one line without control characters.
func (p *textWriter) line(column int, tint, text string) {
	p.WriteString(strings.Repeat(" ", column))
	text = escapeControls(text)
	if p.colour && tint != "" {
		text = tint + text + reset
	}
	p.WriteString(text + "\n")
}

// labelledLine writes a line with a label; nothing if the text is empty.
func (p *textWriter) labelledLine(column int, label, text string) {
	if text == "" {
		return
	}
	p.WriteString(strings.Repeat(" ", column))
	label = fmt.Sprintf("%-7s", label)
	if p.colour {
		label = dim + label + reset
	}
	p.WriteString(label + escapeControls(text) + "\n")
}

func (p *textWriter) title(text string) {
	p.blankLine()
	p.line(0, bold, text)
}

// header writes what the report is about.
func (p *textWriter) header(r *DecisionReport) {
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
	parts = append(parts, "decided at "+humanize.DateTime(r.At))
	p.line(0, dim, strings.TrimSpace(about)+": "+strings.Join(parts, ", "))
	if r.Error != "" && !r.hasFailedMetric() {
		p.blankLine()
		p.labelledLine(0, "error", r.Error)
	}
	if o := r.OtherController; o != nil {
		p.blankLine()
		switch {
		case o.Agrees && o.Desired == r.Desired && !r.hasFailedMetric():
			p.line(0, "", fmt.Sprintf("The controller that acts wants %d too.", o.Desired))
		case o.Agrees && o.Desired == 0: // as long as it has had no metric
			p.line(0, "", "The controller that acts has decided nothing yet.")
		case o.Agrees: // one of the two has looked since
			p.line(0, "", fmt.Sprintf("The controller that acts wanted %d when it last decided.", o.Desired))
		case o.Difference != "":
			p.line(0, amber, fmt.Sprintf("The controller that acts wants %d: %s", o.Desired, o.Difference))
		default:
			p.line(0, amber, fmt.Sprintf("The controller that acts wants %d.", o.Desired))
		}
	}
}

// hasFailedMetric reports whether the report of a metric has an error.
func (r *DecisionReport) hasFailedMetric() bool {
	return slices.ContainsFunc(r.Metrics, func(m Metric) bool { return m.Error != "" })
}

// metric writes one metric.
func (p *textWriter) metric(m *Metric) {
	p.blankLine()
	if m.Error != "" {
		p.line(0, red, fmt.Sprintf("%s: <unknown>%s (%s)", m.Name, targetSuffix(m), m.Reason))
		p.labelledLine(2, "error", m.Error)
		return
	}
	asks := fmt.Sprintf("%s: %s%s", m.Name, orDash(displayQuantity(m, m.Usage)), targetSuffix(m))
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

func targetSuffix(m *Metric) string {
	if m.Target == "" {
		return ""
	}
	return " / " + displayQuantity(m, m.Target)
}

// displayQuantity writes a quantity of a metric as the arithmetic does.
func displayQuantity(m *Metric, text string) string {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return text // a percentage
	}
	u := plainNumber
	if m.Type == string(autoscalingv2.ResourceMetricSourceType) || m.Type == string(autoscalingv2.ContainerResourceMetricSourceType) {
		name, _, _ := strings.Cut(m.Name, " ")
		u = unitOf(corev1.ResourceName(name))
	}
	return u.display(q.MilliValue())
}

// maxNames is how many pods of a cause are named.
const maxNames = 10

// missing writes what is missing.
func (p *textWriter) missing(r *DecisionReport) {
	advised := map[string]bool{}
	for i := range r.Missing {
		c := &r.Missing[i]
		if i == 0 {
			p.title("Missing")
		}
		head, tint := c.Reason+", "+c.Metric, map[string]string{"broken": red, "temporary": amber}[c.Severity]
		if n := len(c.Pods); n > 0 {
			head += ": " + humanize.Count(n, "pod")
		}
		if c.Severity != "none" {
			head += ", " + c.Severity
		}
		p.line(2, tint, head)
		p.labelledLine(4, "why", c.Message)
		names := c.Pods[:min(len(c.Pods), maxNames)]
		who := strings.Join(names, ", ")
		if more := len(c.Pods) - len(names); more > 0 {
			who += " and " + humanize.Number(more) + " more"
		}
		p.labelledLine(4, "who", who)
		if !advised[c.Advice] {
			p.labelledLine(4, "do", c.Advice)
		}
		advised[c.Advice] = true
	}
}

// maxRows is how many pods a table has.
const maxRows = 50

// podTable writes how each pod was counted. If there are too many, pods that were not counted
// come first.
func (p *textWriter) podTable(r *DecisionReport, m *Metric) {
	if len(m.Pods) == 0 {
		return
	}
	p.title("Pods, by " + m.Name)
	rows := shownPods(m.Pods)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "POD\tCLASS\tUSAGE\tREQUEST\tAGE/WINDOW\tWHY")
	for i := range rows {
		pod := &rows[i]
		why := pod.Reason
		if pod.Assumed != "" {
			why = strings.TrimPrefix(why+"; assumed to use "+displayQuantity(m, pod.Assumed), "; ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", escapeControls(pod.Name), pod.Class, orDash(displayQuantity(m, pod.Usage)), orDash(displayQuantity(m, pod.Request)), sampleAge(r.At, pod), orDash(escapeControls(why)))
	}
	_ = w.Flush() // to memory
	for l := range strings.Lines(b.String()) {
		p.WriteString(strings.TrimRight(l, " \n") + "\n")
	}
	if more := len(m.Pods) - len(rows); more > 0 {
		p.line(0, dim, fmt.Sprintf("and %d more: -o json has them", more))
	}
}

// shownPods returns the pods of a table, in their order.
func shownPods(pods []Pod) []Pod {
	if len(pods) <= maxRows {
		return pods
	}
	counted := classNames[0]
	countedRows := maxRows
	for i := range pods {
		if pods[i].Class != counted {
			countedRows--
		}
	}
	var rows []Pod
	for i := range pods {
		switch {
		case len(rows) == maxRows:
			return rows
		case pods[i].Class != counted:
			rows = append(rows, pods[i])
		case countedRows > 0:
			rows = append(rows, pods[i])
			countedRows--
		}
	}
	return rows
}

// sampleAge writes the age of a pod's number and its window.
func sampleAge(now time.Time, pod *Pod) string {
	if pod.MeasuredAt.IsZero() {
		return "–"
	}
	s := humanize.Duration(max(now.Sub(pod.MeasuredAt), 0))
	if window, err := time.ParseDuration(pod.Window); err == nil {
		s += "/" + humanize.Duration(window)
	}
	return s
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// escapeControls replaces characters that could control a terminal: names and errors may come
// from anyone. Line ends become spaces.
func escapeControls(s string) string {
	s = strings.ToValidUTF8(s, string(unicode.ReplacementChar))
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s // Fast path
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case !unicode.IsPrint(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
