package resizecmd

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/client/terminal"
	"github.com/weir-metrics/weir/resize"
)

// write writes text that names from a cluster are in.
func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, terminal.SafeLines(text))
	return err
}

// missing stands where there is nothing to tell.
const missing = "-"

// table lays rows out as kubectl does.
func table(rows [][]string) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a Builder fails never
	var text strings.Builder
	for line := range strings.Lines(out.String()) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return text.String()
}

// amount tells a quantity of a resource.
func amount(r resize.Resource, q *resource.Quantity) string {
	switch {
	case q == nil:
		return missing
	case r == resize.Memory:
		return resize.Tell(r, q.Value())
	}
	return resize.Tell(r, q.MilliValue())
}

// tellList tells recommendations of many pods. follow says what to type to follow one.
func (r *recommending) tellList(l *resizeapi.List, asked resizeapi.Request, follow func(*resize.Recommendation) string) string {
	var out strings.Builder
	wide := r.output == "wide"
	titles := []string{"NAMESPACE", "POD", "CONTAINER", "RESOURCE", "REQUEST", "USED", "PROPOSED", "FREES"}
	if wide {
		titles = append(titles, "NODE", "READINGS")
	}
	if asked.All {
		titles = append(titles, "REASON")
	}
	rows := [][]string{titles}
	var first *resize.Recommendation
	for _, rec := range l.Items {
		for i := range rec.Requests {
			a := &rec.Requests[i]
			if !asked.All && !a.Reason.Changes() {
				continue
			}
			if first == nil && a.Reason.Changes() {
				first = rec
			}
			rows = append(rows, row(rec, a, wide, asked.All))
		}
	}
	if len(rows) > 1 {
		out.WriteString(table(rows) + "\n")
	}
	if first != nil {
		out.WriteString(table(totals(l.Items)) + "\n")
	} else {
		out.WriteString("No request is to change.\n")
	}
	if n := stays(l.Stay); n != "" {
		out.WriteString(n)
		if !asked.All {
			out.WriteString(" --all lists them, and a pod's own recommendation says why.")
		}
		out.WriteString("\n")
	}
	notes(&out, l)
	if first != nil {
		out.WriteString("To follow one:  " + follow(first) + "\n")
	}
	return out.String()
}

func row(rec *resize.Recommendation, a *resize.Advice, wide, all bool) []string {
	used, frees, readings := missing, missing, missing
	if f := a.Used; f != nil {
		used = fmt.Sprintf("%s (%.4g%%)", amount(a.Resource, &f.Value), f.Percentile)
		readings = fmt.Sprintf("%d in %v", f.Samples, f.To.Sub(f.From).Round(time.Second))
	}
	if a.Proposed != nil {
		freed := *a.Proposed
		freed.Neg()
		if a.Request != nil {
			freed.Add(*a.Request)
		}
		frees = amount(a.Resource, &freed)
	}
	cells := []string{rec.Namespace, rec.Pod, a.Container, string(a.Resource), amount(a.Resource, a.Request), used, amount(a.Resource, a.Proposed), frees}
	if wide {
		cells = append(cells, cmp.Or(rec.Node, missing), readings)
	}
	if all {
		cells = append(cells, string(a.Reason))
	}
	return cells
}

// totals has a row for each node and namespace, where there are several, and one for all.
func totals(list []*resize.Recommendation) [][]string {
	nodes, namespaces, all := resize.Totals(list)
	rows := [][]string{{"FREES ON", "PODS", "CPU", "MEMORY"}}
	add := func(name string, t resize.Total) {
		rows = append(rows, []string{name, fmt.Sprint(t.Pods), resize.Tell(resize.CPU, t.CPU.Value), resize.Tell(resize.Memory, t.Memory.Value)})
	}
	if len(nodes) > 1 {
		for _, t := range nodes {
			add("node "+t.Name, t)
		}
	} else {
		add("node "+nodes[0].Name, all)
	}
	if len(namespaces) > 1 {
		for _, t := range namespaces {
			add("namespace "+t.Name, t)
		}
	}
	if len(nodes) > 1 {
		add("all nodes", all)
	}
	return rows
}

// because says of each reason why requests stay.
var because = map[resize.Reason]string{
	resize.Fits:          "fit what is used",
	resize.TooLow:        "are below what is used (--up)",
	resize.NoRequest:     "ask for nothing",
	resize.NoHistory:     "were not measured",
	resize.ShortHistory:  "were not measured for long enough",
	resize.NotRunning:    "are of what does not run",
	resize.InitContainer: "are of init containers",
	resize.QoSClass:      "would change the QoS class",
	resize.Restarts:      "would restart the container",
	resize.Static:        "are of static pods",
	resize.Windows:       "are of Windows pods",
	resize.PodLevel:      "are of pods with requests of their own",
	resize.Resizing:      "are being resized",
	resize.OldKubelet:    "are on nodes that do not resize in place",
	resize.Invalid:       "cannot be",
}

// stays says why requests stay, the most frequent reason first.
func stays(by map[resize.Reason]int) string {
	sum := 0
	var words []string
	for _, r := range slices.SortedFunc(maps.Keys(by), func(a, b resize.Reason) int { return cmp.Or(by[b]-by[a], cmp.Compare(a, b)) }) {
		sum += by[r]
		words = append(words, fmt.Sprintf("%d %s", by[r], cmp.Or(because[r], "are "+string(r))))
	}
	if sum == 0 {
		return ""
	}
	noun := "requests stay"
	if sum == 1 {
		noun = "request stays"
	}
	return fmt.Sprintf("%d %s as they are: %s.", sum, noun, strings.Join(words, ", "))
}

func notes(out *strings.Builder, l *resizeapi.List) {
	for _, n := range l.Notes {
		out.WriteString(n + "\n")
	}
}

// tellPod tells the recommendation for one pod.
func (r *recommending) tellPod(l *resizeapi.List, follow func(*resize.Recommendation) string) string {
	var out strings.Builder
	for _, rec := range l.Items {
		crosses := false
		fmt.Fprintf(&out, "Pod %s/%s on node %s, of QoS class %s. Readings are from %s.\n", rec.Namespace, rec.Pod, cmp.Or(rec.Node, missing), rec.QoS, l.Source)
		for i := range rec.Requests {
			crosses = crosses || rec.Requests[i].Reason == resize.QoSClass
			out.WriteString("\n" + tellAdvice(&rec.Requests[i]))
		}
		out.WriteString("\n")
		if changes := rec.Changes(); len(changes) > 0 {
			fmt.Fprintf(&out, "Frees %s CPU and %s memory.\n", amount(resize.CPU, &rec.Frees.CPU), amount(resize.Memory, &rec.Frees.Memory))
		} else {
			out.WriteString("No request is to change.\n")
		}
		for _, n := range rec.Notes {
			out.WriteString("Note: " + n + ".\n")
		}
		notes(&out, l)
		if len(rec.Changes()) > 0 {
			out.WriteString("To follow it:  " + follow(rec) + "\n")
		}
		if crosses && rec.QoS == resize.Guaranteed {
			out.WriteString("With --limits its limits shrink with its requests, and the class stays.\n")
		}
	}
	return strings.ReplaceAll(out.String(), "`weir ", "`"+r.Program+" ")
}

// tellAdvice is a line with the numbers, and one with the reason.
func tellAdvice(a *resize.Advice) string {
	request := amount(a.Resource, a.Request)
	change := request + " stays"
	switch {
	case a.Proposed != nil && a.ProposedLimit != nil:
		change = fmt.Sprintf("%s → %s, request and limit", request, amount(a.Resource, a.Proposed))
	case a.Proposed != nil:
		change = fmt.Sprintf("%s → %s", request, amount(a.Resource, a.Proposed))
	case a.Request == nil:
		change = "no request"
	}
	return fmt.Sprintf("%s %s: %s\n  %s.\n", a.Container, a.Resource, change, a.Message)
}
