package resizecmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/humanize"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/apply"
	"github.com/weir-metrics/weir/sources/host/inspect"
)

// write writes text, and removes control characters, since names come from a cluster.
func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, humanize.PrintableLines(text))
	return err
}

// missing is shown for an absent value.
const missing = "-"

// table formats rows as kubectl does.
func table(rows [][]string) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // writing to a Builder does not fail
	var text strings.Builder
	for line := range strings.Lines(out.String()) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return text.String()
}

// amount formats a quantity of a resource.
func amount(r resize.Resource, q *resource.Quantity) string {
	switch {
	case q == nil:
		return missing
	case r == resize.Memory:
		return resize.FormatAmount(r, q.Value())
	}
	return resize.FormatAmount(r, q.MilliValue())
}

// listText describes recommendations for many pods. follow returns the command that applies one.
func (r *recommendCommand) listText(l *resizeapi.RecommendationList, asked resizeapi.Request, follow func(*resize.Recommendation) string) string {
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
	if n := unchangedText(l.Unchanged); n != "" {
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
		readings = fmt.Sprintf("%d in %s", f.Samples, humanize.Duration(f.To.Sub(f.From).Round(time.Second)))
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
		rows = append(rows, []string{name, humanize.Number(t.Pods), humanize.Cores(float64(t.CPU.Value) * 1e6), humanize.Bytes(float64(t.Memory.Value))})
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

// unchangedReasons describe the reasons why requests stay.
var unchangedReasons = map[resize.Reason]string{
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

// unchangedText says how many requests stay and why, the most frequent reason first.
func unchangedText(by map[resize.Reason]int) string {
	sum := 0
	var words []string
	for _, r := range slices.SortedFunc(maps.Keys(by), func(a, b resize.Reason) int { return cmp.Or(by[b]-by[a], cmp.Compare(a, b)) }) {
		sum += by[r]
		words = append(words, fmt.Sprintf("%d %s", by[r], cmp.Or(unchangedReasons[r], "are "+string(r))))
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

func notes(out *strings.Builder, l *resizeapi.RecommendationList) {
	for _, n := range l.Notes {
		out.WriteString(n + "\n")
	}
}

// podText describes the recommendation for one pod.
func (r *recommendCommand) podText(l *resizeapi.RecommendationList, follow func(*resize.Recommendation) string) string {
	var out strings.Builder
	for _, rec := range l.Items {
		crosses := false
		fmt.Fprintf(&out, "Pod %s/%s on node %s, of QoS class %s. Readings are from %s.\n", rec.Namespace, rec.Pod, cmp.Or(rec.Node, missing), rec.QoS, l.Source)
		for i := range rec.Requests {
			crosses = crosses || rec.Requests[i].Reason == resize.QoSClass
			out.WriteString("\n" + adviceText(&rec.Requests[i]))
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

// adviceText returns one line with the numbers, and one with the reason.
func adviceText(a *resize.Advice) string {
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

// planText describes the changes of a plan.
func planText(p *apply.Plan) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Pod %s/%s on node %s, which stays %s:\n", p.Namespace, p.Pod, p.Node, p.QoS)
	for _, s := range p.Steps {
		from := s.From
		if from == "" {
			from = "none"
		}
		fmt.Fprintf(&out, "  %s: %s %s %s → %s\n", s.Container, s.Resource, s.Field, from, s.To)
	}
	return out.String()
}

// stageTexts describe the stages of a resize.
var stageTexts = map[apply.Stage]string{
	apply.Asked:      "The API server has taken it; the kubelet has not acted yet",
	apply.Deferred:   "The kubelet defers it",
	apply.Infeasible: "The kubelet will not do it",
	apply.InProgress: "The kubelet is at it",
	apply.Failing:    "The kubelet cannot do it, and tries again",
	apply.Done:       "The kubelet has done it",
	apply.Superseded: "It is overtaken",
	apply.Gone:       "There is nothing left to resize",
}

func stateText(s apply.State) string {
	text := stageTexts[s.Stage]
	if s.Message != "" {
		text += ": " + strings.TrimSuffix(s.Message, ".")
	}
	return text + "."
}

// resultText describes what was verified.
func resultText(r *apply.Result) string {
	var out strings.Builder
	if r.Stage != apply.Done {
		return ""
	}
	fmt.Fprintf(&out, "It took %s.\n", humanize.Seconds(r.TookSeconds))
	restarted := 0
	for _, c := range r.Containers {
		if c.Restarted {
			restarted++
			fmt.Fprintf(&out, "Container %s was restarted: it has restarted %d times in all.\n", c.Name, c.Restarts)
		}
	}
	if restarted == 0 {
		fmt.Fprintf(&out, "Nothing was restarted: %s as before.\n", containersText(r.Containers))
	}
	out.WriteString(cgroupsText(r.Cgroups))
	return out.String()
}

// containersText lists the containers that were not restarted: "app (5f6197a9c1c9, restarts 0)".
func containersText(list []apply.ContainerCheck) string {
	words := make([]string, len(list))
	for i, c := range list {
		_, id, ok := strings.Cut(c.ID, "://")
		if !ok {
			id = c.ID
		}
		words[i] = fmt.Sprintf("%s (%.12s, restarts %d)", c.Name, id, c.Restarts)
	}
	return strings.Join(words, ", ")
}

func cgroupsText(c *apply.CgroupCheck) string {
	switch {
	case c == nil:
		return ""
	case len(c.Problems) > 0:
		return "Cgroups are not as they should be: " + strings.Join(c.Problems, "; ") + ".\n"
	case !c.Checked && len(c.Found) == 0:
		return "Cgroups were not checked: " + c.UncheckedReason + ".\n"
	case !c.Checked:
		return "The pod has one cgroup of its own; values were not checked: " + c.UncheckedReason + ".\n"
	}
	return "Cgroups have the new values, and the pod has one of its own.\n"
}

// resultError returns the error that sets the exit status; nil for success.
func resultError(r *apply.Result) error {
	switch {
	case r.InPlace():
		return nil
	case r.Stage == apply.Done:
		return errors.New("the resize was done, but not as it should be")
	case r.Stage == apply.Deferred:
		return cli.Hintf(fmt.Errorf("the kubelet still defers the resize: %s", r.Message),
			"It does it as soon as there is room on the node. To take it back, apply what was requested before.")
	case r.Stage == apply.Failing:
		return cli.Hintf(fmt.Errorf("the kubelet could not do the resize: %s", r.Message),
			"It goes on trying. To take it back, apply what was requested before.")
	case r.Stage == apply.Infeasible:
		return cli.Hintf(fmt.Errorf("the kubelet will not do the resize: %s", r.Message),
			"Its containers go on as they were, but the pod's spec says otherwise: apply what was requested before.")
	case r.TimedOut:
		return cli.Hintf(errors.New("time is up, and the resize is not done"), "The kubelet goes on. `kubectl get pod -o yaml` shows the conditions; --timeout allows it more.")
	}
	return fmt.Errorf("the resize was not done: %s", r.Message)
}

// readCgroups returns the cgroups of the pod with a UID from the inspector's report.
func readCgroups(report json.RawMessage, uid string) ([]apply.Cgroup, error) {
	var r inspect.Report
	if err := json.Unmarshal(report, &r); err != nil {
		return nil, fmt.Errorf("read the report on pod cgroups: %w", err)
	}
	of := func(j *inspect.CgroupReport, container string, pod bool) apply.Cgroup {
		c := apply.Cgroup{Path: string(j.Path), Container: container, Pod: pod}
		if l := j.Limits; l != nil {
			c.Shares, c.Weight, c.Quota, c.Period, c.MemoryLimit = l.Shares, l.Weight, l.Quota, l.Period, l.Memory
		}
		return c
	}
	var found []apply.Cgroup
	for i := range r.Pods {
		p := &r.Pods[i]
		if string(p.UID) != uid {
			continue
		}
		if p.Driver != "" { // it is a pod's cgroup, not that of a container outside a pod
			found = append(found, of(&p.CgroupReport, "", true))
		}
		for j := range p.Containers {
			if c := &p.Containers[j]; c.Name != "" && !c.Judgement.Leftover() {
				found = append(found, of(&c.CgroupReport, c.Name, false))
			}
		}
	}
	return found, nil
}
