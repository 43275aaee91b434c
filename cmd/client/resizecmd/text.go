package resizecmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/apply"
	"github.com/weir-metrics/weir/sources/host/inspect"
)

// missing is shown for an absent value.
const missing = "-"

// ownName is shown in the place of a container's name for the pod's own requests and limits. No
// container can have the name.
const ownName = "(pod)"

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

// writeList describes recommendations for many pods. all also lists requests that stay. follow
// returns the command that applies a recommendation.
func (r *recommendCommand) writeList(p *humanize.Page, l *resizeapi.RecommendationList, all bool, follow func(*resize.PodRecommendation) string) {
	wide, workloads := r.output == "wide", slices.ContainsFunc(l.Items, func(rec *resize.PodRecommendation) bool { return rec.Workload != nil })
	rows := [][]string{titles(workloads, wide, all)}
	var first *resize.PodRecommendation
	for _, rec := range l.Items {
		for i := range rec.Requests {
			a := &rec.Requests[i]
			if first == nil && a.Reason.Changes() {
				first = rec
			}
			if all || a.Reason.Changes() || a.Reason == resize.Autoscaled {
				rows = append(rows, row(rec, a, wide, all))
			}
		}
	}
	if len(rows) > 1 {
		p.Table(rows)
		p.Gap()
	}
	if first != nil {
		p.Table(totals(l.Items))
		p.Gap()
	} else {
		p.Line(0, humanize.Plain, "No request is to change.")
	}
	if text := unchangedText(l.Unchanged); text != "" {
		if !all {
			owner := "pod"
			if workloads {
				owner = "workload"
			}
			text += " --all lists them, and a " + owner + "'s own recommendation shows why."
		}
		p.Line(0, humanize.Plain, text)
	}
	for _, n := range l.Notes {
		p.Line(0, humanize.Plain, cli.ForProgram(n, r.Program))
	}
	if first != nil {
		p.Line(0, humanize.Plain, followText(first, "To follow one:  ")+follow(first))
	}
}

// titles returns the titles of the cells of row.
func titles(workloads, wide, all bool) []string {
	titles := []string{"NAMESPACE", "POD", "CONTAINER", "RESOURCE", "REQUEST", "USED", "PROPOSED", "FREES"}
	if workloads {
		titles = []string{"NAMESPACE", "WORKLOAD", "PODS", "CONTAINER", "RESOURCE", "REQUEST", "USED", "PROPOSED", "FREES", "HISTORY"}
	}
	switch {
	case wide && workloads:
		titles = append(titles, "READINGS", "RISK")
	case wide:
		titles = append(titles, "NODE", "READINGS", "RISK")
	}
	if all {
		titles = append(titles, "REASON")
	}
	return titles
}

// row returns the cells of a request.
func row(rec *resize.PodRecommendation, a *resize.Advice, wide, all bool) []string {
	used, frees, readings, past, risk := missing, missing, missing, missing, missing
	if f := a.Used; f != nil {
		past = humanize.Duration(f.To.Sub(f.From).Round(time.Second))
		used = fmt.Sprintf("%s (%.4g%%)", amount(a.Resource, &f.Value), f.Percentile)
		readings = fmt.Sprintf("%d in %s", f.Samples, past)
	}
	if a.Proposed != nil {
		above := a.Used.Risk.Above
		if held := a.Used.Risk.HeldOut; held != nil {
			above = *held
		}
		risk = humanize.Percent(above)
		freed := *a.Proposed
		freed.Neg()
		if a.Request != nil {
			freed.Add(*a.Request)
		}
		if rec.Workload != nil {
			freed.Mul(int64(rec.Workload.Pods))
		}
		frees = amount(a.Resource, &freed)
	}
	var cells []string
	if rec.Workload != nil {
		cells = workloadCells(rec, a, used, frees, past)
	} else {
		cells = []string{rec.Namespace, rec.Pod, cmp.Or(a.Container, ownName), string(a.Resource), amount(a.Resource, a.Request), used, amount(a.Resource, a.Proposed), frees}
		if wide {
			cells = append(cells, cmp.Or(rec.Node, missing))
		}
	}
	if wide {
		cells = append(cells, readings, risk)
	}
	if all {
		cells = append(cells, string(a.Reason))
	}
	return cells
}

// workloadCells returns the cells of a workload's request that every table has.
func workloadCells(rec *resize.PodRecommendation, a *resize.Advice, used, frees, past string) []string {
	proposed := amount(a.Resource, a.Proposed)
	if a.Reason == resize.Autoscaled {
		proposed = "- (HPA)"
	}
	pods := humanize.Number(rec.Workload.Pods)
	if n := rec.Workload.GonePods; n > 0 {
		pods += " + " + humanize.Number(n) + " gone"
	}
	return []string{rec.Namespace, rec.Workload.String(), pods, cmp.Or(a.Container, ownName), string(a.Resource), amount(a.Resource, a.Request), used, proposed, frees, past}
}

// totals returns a row for each node and namespace, if there are several, and one row for all.
func totals(list []*resize.PodRecommendation) [][]string {
	rows := [][]string{{"FREES ON", "PODS", "CPU", "MEMORY"}}
	add := func(what string, totals []resize.Total) {
		for _, t := range totals {
			cpu, memory := t.CPU.AsApproximateFloat64(), t.Memory.AsApproximateFloat64()
			rows = append(rows, []string{strings.TrimSpace(what + " " + t.Name), humanize.Number(t.Pods), humanize.Cores(cpu * 1e9), humanize.Bytes(memory)})
		}
	}
	nodes := resize.Totals(list, func(rec *resize.PodRecommendation) string { return rec.Node })
	workloads := len(list) > 0 && list[0].Workload != nil
	if !workloads {
		add("node", nodes)
	}
	namespaces := resize.Totals(list, func(rec *resize.PodRecommendation) string { return rec.Namespace })
	if len(namespaces) > 1 || workloads {
		add("namespace", namespaces)
	}
	switch {
	case workloads && len(namespaces) > 1:
		add("all namespaces", resize.Totals(list, func(*resize.PodRecommendation) string { return "" }))
	case len(nodes) > 1:
		add("all nodes", resize.Totals(list, func(*resize.PodRecommendation) string { return "" }))
	}
	return rows
}

// unchangedReasons describe requests that stay, whatever their number.
var unchangedReasons = map[resize.AdviceReason]string{
	resize.Fits:          "about what is used",
	resize.TooLow:        "below what is used (--up)",
	resize.NoRequest:     "not set",
	resize.NoHistory:     "not measured",
	resize.ShortHistory:  "not measured for long enough",
	resize.NotRunning:    "of containers that are not running",
	resize.InitContainer: "of init containers",
	resize.QoSClass:      "because the QoS class would change",
	resize.Restarts:      "because the container would restart",
	resize.Static:        "of static pods",
	resize.Windows:       "of Windows pods",
	resize.PodLevel:      "of pods with requests of their own",
	resize.Resizing:      "being resized",
	resize.OldKubelet:    "on nodes that do not resize in place",
	resize.Autoscaled:    "that an HPA scales by",
	resize.Invalid:       "that would be invalid",
}

// unchangedText describes how many requests stay and why, the most frequent reason first.
func unchangedText(counts map[resize.AdviceReason]int) string {
	sum := 0
	var words []string
	for _, r := range slices.SortedFunc(maps.Keys(counts), func(a, b resize.AdviceReason) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) }) {
		sum += counts[r]
		words = append(words, fmt.Sprintf("%d %s", counts[r], cmp.Or(unchangedReasons[r], string(r))))
	}
	if sum == 0 {
		return ""
	}
	noun := "requests stay"
	if sum == 1 {
		noun = "request stays"
	}
	return fmt.Sprintf("%d %s: %s.", sum, noun, strings.Join(words, ", "))
}

// writePod describes the recommendation for one pod.
func (r *recommendCommand) writePod(p *humanize.Page, l *resizeapi.RecommendationList, follow func(*resize.PodRecommendation) string) {
	line := func(text string) { p.Line(0, humanize.Plain, text) }
	for _, rec := range l.Items {
		crosses := false
		line(headline(rec, l.Source))
		for i := range rec.Requests {
			a := &rec.Requests[i]
			crosses = crosses || a.Reason == resize.QoSClass
			p.Gap()
			line(fmt.Sprintf("%s %s: %s", cmp.Or(a.Container, ownName), a.Resource, changeText(a)))
			p.Line(2, humanize.Plain, cli.ForProgram(a.Message, r.Program)+".")
			if a.Proposed != nil {
				p.Line(2, humanize.Plain, a.Used.Risk.Text())
			}
		}
		writePairs(p, rec)
		p.Gap()
		changes := len(rec.Changes()) > 0
		switch {
		case changes:
			line(fmt.Sprintf("Frees %s CPU and %s memory.", amount(resize.CPU, &rec.Frees.CPU), amount(resize.Memory, &rec.Frees.Memory)))
		case slices.ContainsFunc(rec.Pairs, func(p resize.Pair) bool { return p.Refused == "" }):
			line("No request is to change without its HPA.")
		default:
			line("No request is to change.")
		}
		for _, n := range rec.Notes {
			line("Note: " + n + ".")
		}
		for _, n := range l.Notes {
			line(cli.ForProgram(n, r.Program))
		}
		if changes {
			line(followText(rec, "To follow it:  ") + follow(rec))
		}
		if crosses && rec.QoS == resize.Guaranteed {
			line("With --limits its limits shrink with its requests, and the class stays.")
		}
	}
}

// followText returns the words before the command that follows a recommendation: for a pod, text.
func followText(rec *resize.PodRecommendation, text string) string {
	if rec.Workload == nil {
		return text
	}
	return "As a patch:  "
}

// headline describes what a recommendation is for.
func headline(rec *resize.PodRecommendation, source string) string {
	w := rec.Workload
	if w == nil {
		return fmt.Sprintf("Pod %s/%s on node %s, of QoS class %s. Readings are from %s.", rec.Namespace, rec.Pod, cmp.Or(rec.Node, missing), rec.QoS, source)
	}
	requests := "its newest pod"
	if w.FromTemplate {
		requests = "its pod template"
	}
	gone := ""
	if w.GonePods > 0 {
		gone = fmt.Sprintf(" and the readings of %s that came before", humanize.Count(w.GonePods, "pod"))
	}
	return fmt.Sprintf("%s %s/%s with %s%s, of QoS class %s. Requests are those of %s, readings are from %s.",
		w.Kind, rec.Namespace, w.Name, humanize.Count(w.Pods, "pod"), gone, rec.QoS, requests, source)
}

// changeText describes the change of a request.
func changeText(a *resize.Advice) string {
	request := amount(a.Resource, a.Request)
	switch {
	case a.Proposed != nil && a.ProposedLimit != nil:
		return fmt.Sprintf("%s → %s, request and limit", request, amount(a.Resource, a.Proposed))
	case a.Proposed != nil:
		return fmt.Sprintf("%s → %s", request, amount(a.Resource, a.Proposed))
	case a.Request == nil:
		return "no request"
	}
	return request + " stays"
}

// writePlan describes the changes of a plan.
func writePlan(page *humanize.Page, p *apply.Plan) {
	page.Line(0, humanize.Plain, fmt.Sprintf("Pod %s/%s on node %s, which stays %s:", p.Namespace, p.Pod, p.Node, p.QoS))
	writeSteps(page, "", p.Steps)
}

// writeSteps writes a line for each change of a value, after the name of what has it.
func writeSteps(page *humanize.Page, subject string, steps []apply.ValueChange) {
	for _, s := range steps {
		page.Line(2, humanize.Plain, subject+stepText(s))
	}
}

// stepText describes the change of a value: "app: cpu request 100m → 50m".
func stepText(s apply.ValueChange) string {
	return fmt.Sprintf("%s: %s %s %s → %s", cmp.Or(s.Container, ownName), s.Resource, s.Field, cmp.Or(s.From, "none"), s.To)
}

// stageTexts describe the stages of a resize.
var stageTexts = map[apply.Stage]string{
	apply.Asked:      "The API server has accepted it; the kubelet has not acted yet",
	apply.Deferred:   "The kubelet defers it",
	apply.Infeasible: "The kubelet refuses it",
	apply.InProgress: "The kubelet is applying the change",
	apply.Failing:    "The kubelet failed and is trying again",
	apply.Done:       "The kubelet has done it",
	apply.Superseded: "A newer change replaced this one",
	apply.Gone:       "There is nothing left to resize",
}

func stateText(s apply.ResizeState) string {
	text := stageTexts[s.Stage]
	if s.Message != "" {
		text += ": " + strings.TrimSuffix(s.Message, ".")
	}
	return text + "."
}

// writeResult describes what was verified after a resize that is done.
func writeResult(p *humanize.Page, r *apply.Result) {
	if r.Stage != apply.Done {
		return
	}
	p.Line(0, humanize.Plain, fmt.Sprintf("It took %s.", humanize.Seconds(r.TookSeconds)))
	restarted := false
	for _, c := range r.Containers {
		if c.Restarted {
			restarted = true
			p.Line(0, humanize.Plain, fmt.Sprintf("Container %s was restarted: it has restarted %d times in all.", c.Name, c.Restarts))
		}
	}
	if !restarted {
		p.Line(0, humanize.Plain, fmt.Sprintf("Nothing was restarted: %s as before.", containersText(r.Containers)))
	}
	p.Line(0, humanize.Plain, cgroupsText(r.Cgroups))
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
	case len(c.Problems) > 0:
		return "Cgroups are not as they should be: " + strings.Join(c.Problems, "; ") + "."
	case !c.Checked && len(c.Found) == 0:
		return "Cgroups were not checked: " + c.UncheckedReason + "."
	case !c.Checked:
		return "The pod has one cgroup of its own; values were not checked: " + c.UncheckedReason + "."
	}
	return "Cgroups have the new values, and the pod has one of its own."
}

// resultError returns the error that sets the exit status, or nil for success.
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
			"Its containers go on as they were, but the pod's spec differs: apply what was requested before.")
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
	cgroupOf := func(j *inspect.CgroupReport, container string, pod bool) apply.Cgroup {
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
		if p.Driver != "" { // it is a pod's cgroup, not that of a container outside of pods
			found = append(found, cgroupOf(&p.CgroupReport, "", true))
		}
		for j := range p.Containers {
			if c := &p.Containers[j]; c.Name != "" && !c.Judgement.Leftover() {
				found = append(found, cgroupOf(&c.CgroupReport, c.Name, false))
			}
		}
	}
	return found, nil
}
