package decisionreport

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/internal/humanize"
)

// textWriter writes a report as text.
type textWriter struct{ humanize.Page }

// WriteText writes the report for people, with the table of pods. colour adds colours for a
// terminal. The text may change; programs should read the JSON.
func (r *DecisionReport) WriteText(w io.Writer, colour bool) error {
	p := &textWriter{humanize.Page{Colour: colour}}
	p.Line(0, humanize.Bold, r.Summary)
	p.header(r)
	for i := range r.Metrics {
		p.metric(&r.Metrics[i])
	}
	if len(r.Steps) > 0 {
		p.Title("Then, in this order")
		for i := range r.Steps {
			p.Line(2, humanize.Plain, fmt.Sprintf("%d. %s", i+1, r.Steps[i].Message))
		}
	}
	p.missing(r)
	if len(r.Next) > 0 {
		p.Title("Next")
		for i := range r.Next {
			p.Line(2, humanize.Plain, r.Next[i].Message)
		}
	}
	for i, n := range r.Notes {
		if i == 0 {
			p.Gap()
		}
		p.Line(0, humanize.Plain, n)
	}
	for i := range r.Metrics {
		p.podTable(r, &r.Metrics[i])
	}
	return p.Print(w)
}

// header writes the lines about the whole report.
func (t *textWriter) header(r *DecisionReport) {
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
	t.Line(0, humanize.Dim, strings.TrimSpace(about)+": "+strings.Join(parts, ", "))
	if r.Error != "" && !r.hasFailedMetric() {
		t.Gap()
		t.Item(0, "error", humanize.Plain, r.Error)
	}
	if o := r.OtherController; o != nil {
		t.Gap()
		tint := humanize.Plain
		if !o.Agrees {
			tint = humanize.Amber
		}
		t.Line(0, tint, r.otherControllerText(o))
	}
}

// otherControllerText describes the decision of the controller that acts.
func (r *DecisionReport) otherControllerText(o *OtherController) string {
	switch {
	case o.Agrees && o.Desired == r.Desired && !r.hasFailedMetric():
		return fmt.Sprintf("The controller that acts wants %d too.", o.Desired)
	case o.Agrees && o.Desired == 0: // the controller has had no metric so far
		return "The controller that acts has decided nothing yet."
	case o.Agrees: // one of the two has made a newer decision
		return fmt.Sprintf("The controller that acts wanted %d when it last decided.", o.Desired)
	case o.Difference != "":
		return fmt.Sprintf("The controller that acts wants %d: %s", o.Desired, o.Difference)
	}
	return fmt.Sprintf("The controller that acts wants %d.", o.Desired)
}

// hasFailedMetric reports whether the report of a metric has an error.
func (r *DecisionReport) hasFailedMetric() bool {
	return slices.ContainsFunc(r.Metrics, func(m MetricReport) bool { return m.Error != "" })
}

// metric writes one metric.
func (t *textWriter) metric(m *MetricReport) {
	t.Gap()
	if m.Error != "" {
		t.Line(0, humanize.Red, fmt.Sprintf("%s: <unknown>%s (%s)", m.Name, targetSuffix(m), m.Reason))
		t.Item(2, "error", humanize.Plain, m.Error)
		t.Item(2, "asked", humanize.Plain, m.AnsweredBy)
		return
	}
	asks := fmt.Sprintf("%s: %s%s", m.Name, cmp.Or(displayQuantity(m, m.Usage), "–"), targetSuffix(m))
	if m.Proposal != nil {
		asks += fmt.Sprintf(", asks for %d", *m.Proposal)
	}
	if m.Decides {
		asks += ", which decides"
	}
	t.Line(0, humanize.Bold, asks)
	t.Line(2, humanize.Plain, m.Arithmetic)
	if m.Recount != nil {
		t.Line(2, humanize.Plain, m.Recount.Arithmetic)
	}
	if m.AnsweredBy != "" {
		t.Line(2, humanize.Dim, "answered by "+m.AnsweredBy)
	}
}

func targetSuffix(m *MetricReport) string {
	if m.Target == "" {
		return ""
	}
	return " / " + displayQuantity(m, m.Target)
}

// displayQuantity formats a quantity of a metric in the same way as the arithmetic.
func displayQuantity(m *MetricReport, text string) string {
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

// maxNames is the number of pods that are named for a cause.
const maxNames = 10

// missing writes what is missing and why.
func (t *textWriter) missing(r *DecisionReport) {
	advised := map[string]bool{}
	for i := range r.Missing {
		c := &r.Missing[i]
		if i == 0 {
			t.Title("Missing")
		}
		head, tint := c.Reason+", "+c.Metric, map[string]humanize.Tint{"broken": humanize.Red, "temporary": humanize.Amber}[c.Severity]
		if n := len(c.Pods); n > 0 {
			head += ": " + humanize.Count(n, "pod")
		}
		if c.Severity != "none" {
			head += ", " + c.Severity
		}
		t.Line(2, tint, head)
		t.Item(4, "why", humanize.Plain, c.Message)
		names := c.Pods[:min(len(c.Pods), maxNames)]
		pods := strings.Join(names, ", ")
		if more := len(c.Pods) - len(names); more > 0 {
			pods += " and " + humanize.Number(more) + " more"
		}
		t.Item(4, "who", humanize.Plain, pods)
		if !advised[c.Advice] {
			t.Item(4, "do", humanize.Plain, c.Advice)
		}
		advised[c.Advice] = true
	}
}

// maxRows is the number of pods in a table.
const maxRows = 50

// podTable writes how each pod was counted. If there are too many pods, those that were not counted
// have priority.
func (t *textWriter) podTable(r *DecisionReport, m *MetricReport) {
	if len(m.Pods) == 0 {
		return
	}
	t.Title("Pods, by " + m.Name)
	rows := shownPods(m.Pods)
	table := [][]string{{"POD", "CLASS", "USAGE", "REQUEST", "AGE/WINDOW", "WHY"}}
	for i := range rows {
		pod := &rows[i]
		reason := pod.Reason
		if pod.Assumed != "" {
			reason = strings.TrimPrefix(reason+"; assumed to use "+displayQuantity(m, pod.Assumed), "; ")
		}
		table = append(table, []string{
			pod.Name, pod.Class, cmp.Or(displayQuantity(m, pod.Usage), "–"), cmp.Or(displayQuantity(m, pod.Request), "–"), sampleAge(r.At, pod), cmp.Or(reason, "–"),
		})
	}
	t.Table(table)
	if more := len(m.Pods) - len(rows); more > 0 {
		t.Line(0, humanize.Dim, fmt.Sprintf("and %d more: -o json has them", more))
	}
}

// shownPods returns the pods of a table, in their order.
func shownPods(pods []PodReport) []PodReport {
	if len(pods) <= maxRows {
		return pods
	}
	counted := autoscaler.Counted.String()
	countedRows := maxRows
	for i := range pods {
		if pods[i].Class != counted {
			countedRows--
		}
	}
	var rows []PodReport
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

// sampleAge returns the age and the window of a pod's number.
func sampleAge(now time.Time, pod *PodReport) string {
	if pod.MeasuredAt.IsZero() {
		return "–"
	}
	s := humanize.Duration(max(now.Sub(pod.MeasuredAt), 0))
	if window, err := time.ParseDuration(pod.Window); err == nil {
		s += "/" + humanize.Duration(window)
	}
	return s
}
