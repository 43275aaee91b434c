package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/humanize"
	"github.com/weir-metrics/weir/metric"
)

// autoscalerKinds maps a query parameter to the kind of autoscaler it names.
var autoscalerKinds = map[string]string{"hpa": "HorizontalPodAutoscaler", "autoscaler": "Autoscaler"}

// autoscalerListBody is the body of the page of all autoscalers.
type autoscalerListBody struct {
	Rows []autoscalerRow
	Cut  listRange
	Off  bool // no autoscaler controller runs
	None string
}

// autoscalerRow is an autoscaler in a list.
type autoscalerRow struct {
	Name, Href string
	Kind       string
	State      state
	Mode       string
	Replicas   string // "3 → 5"
	Range      string // "1 to 10"
	Decided    shownTime
	Why        string
}

// autoscalers fills the page of all autoscalers. Autoscalers without a metric come first, then
// those where weir and another controller differ, then those that scale.
func (p *page) autoscalers() {
	p.Heading, p.Path = "Autoscalers", p.breadcrumbs()
	body := &autoscalerListBody{Off: p.opts.Autoscalers == nil, None: "There is no autoscaler, or none with that name."}
	p.Body = body
	if body.Off {
		return
	}
	all := slices.DeleteFunc(slices.Clone(p.opts.Autoscalers()), func(b decisionreport.DecisionSummary) bool {
		return !containsFold(b.Namespace+"/"+b.Name, p.query.filter)
	})
	order := map[tone]int{bad: 0, warn: 1, good: 2, quiet: 3}
	slices.SortFunc(all, func(a, b decisionreport.DecisionSummary) int {
		if p.query.sort != byName {
			if c := cmp.Compare(order[autoscalerState(&a).Tone], order[autoscalerState(&b).Tone]); c != 0 {
				return c
			}
		}
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	body.Cut = paginate(len(all), page100, p.query, query{view: allAutoscalers})
	for i := range all[body.Cut.From:body.Cut.To] {
		body.Rows = append(body.Rows, p.autoscalerRow(&all[body.Cut.From+i]))
	}
}

func (p *page) autoscalerRow(b *decisionreport.DecisionSummary) autoscalerRow {
	ref := metric.PodRef{Namespace: metric.Namespace(b.Namespace), Name: metric.PodName(b.Name)}
	r := autoscalerRow{
		Name: printable(b.Namespace + "/" + b.Name), Href: p.linkTo(query{view: oneAutoscaler, autoscalerKind: b.Kind, pod: ref}), Kind: shortKind(b.Kind),
		State: autoscalerState(b), Mode: b.Mode, Replicas: replicas(b.Current, b.Desired), Range: fmt.Sprintf("%d to %d", b.Min, b.Max), Decided: relativeTime(b.At, p.Now),
	}
	if r.Why = printable(b.Summary); b.OtherController != nil && !b.OtherController.Agrees {
		r.Why += ". " + differenceText(b.OtherController)
	}
	return r
}

// autoscalerState returns the state of an autoscaler.
func autoscalerState(b *decisionreport.DecisionSummary) state {
	switch {
	case b.NoDecision:
		return state{"no decision", bad}
	case len(b.FailedMetrics) > 0:
		return state{"unknown", bad}
	case b.PodsMissing > 0:
		return state{"pods missing", warn}
	case b.OtherController != nil && !b.OtherController.Agrees:
		return state{"differs", warn}
	case b.Current != b.Desired:
		return state{"scales", good}
	}
	return state{"ok", good}
}

// differenceText describes the decision of the other controller and the reason for the
// difference.
func differenceText(o *decisionreport.OtherController) string {
	s := fmt.Sprintf("The controller that acts wants %d", o.Desired)
	if o.Difference == "" {
		return s + "."
	}
	return s + ": " + printable(o.Difference)
}

func shortKind(kind string) string {
	if kind == autoscalerKinds["hpa"] {
		return "HPA"
	}
	return kind
}

func replicas(current, desired int32) string {
	if current == desired {
		return fmt.Sprint(current)
	}
	return fmt.Sprintf("%d → %d", current, desired)
}

// autoscalerBody is the body of the page of one autoscaler.
type autoscalerBody struct {
	*decisionreport.DecisionReport
	Facts   []fact
	Differs string
	Metrics []autoscalerMetric
	Missing missingReport
	Steps   []string
	Next    []string
}

// autoscalerMetric is the report of one metric as the page shows it.
type autoscalerMetric struct {
	decisionreport.Metric
	State      state
	Error      string
	Asks       string
	Lines      []string
	Pods       []autoscalerPod
	More       int
	MeasuredAt shownTime
}

// autoscalerPod is how a pod was counted.
type autoscalerPod struct {
	Name, Href, Class   string
	Tone                tone
	Usage, Request, Why string
	At                  shownTime
}

// autoscaler fills the page of one autoscaler.
func (p *page) autoscaler() error {
	var r *decisionreport.DecisionReport
	known := p.opts.Autoscaler != nil
	if known {
		r, known = p.opts.Autoscaler(p.query.autoscalerKind, string(p.query.pod.Namespace), string(p.query.pod.Name))
	}
	if !known {
		return p.notFound(shortKind(p.query.autoscalerKind) + " " + printable(p.query.pod.String()))
	}
	namespace := p.query.pod.Namespace
	p.Heading, p.Kind = printable(string(p.query.pod.Name)), shortKind(p.query.autoscalerKind)
	p.Path = p.breadcrumbs(anchor{Text: printable(string(namespace)), Href: p.linkTo(query{view: oneNamespace, pod: metric.PodRef{Namespace: namespace}})})
	body := &autoscalerBody{DecisionReport: r}
	body.addFact("replicas", replicas(r.Current, r.Desired))
	body.addFact("bounds", fmt.Sprintf("%d to %d", r.Min, r.Max))
	body.addFact("target", printable(r.Target))
	body.addFact("mode", r.Mode)
	body.addFact("decided", relativeTime(r.At, p.Now).Text)
	body.addFact("error", printable(r.WriteError))
	if o := r.OtherController; o != nil && !o.Agrees {
		body.Differs = differenceText(o)
	}
	for i := range r.Metrics {
		body.Metrics = append(body.Metrics, p.autoscalerMetric(namespace, &r.Metrics[i]))
	}
	for i := range r.Steps {
		body.Steps = append(body.Steps, printable(r.Steps[i].Message))
	}
	for i := range r.Next {
		body.Next = append(body.Next, r.Next[i].Message)
	}
	body.Missing = p.autoscalerCauses(namespace, r.Missing)
	p.Body = body
	return nil
}

func (b *autoscalerBody) addFact(name, value string) {
	if value != "" {
		b.Facts = append(b.Facts, fact{Name: name, Value: value})
	}
}

func (p *page) autoscalerMetric(namespace metric.Namespace, m *decisionreport.Metric) autoscalerMetric {
	d := autoscalerMetric{Metric: *m, State: state{"ok", good}, Error: printable(m.Error), MeasuredAt: relativeTime(m.MeasuredAt, p.Now)}
	d.Name = printable(m.Name)
	switch {
	case m.Error != "":
		d.State = state{"unknown", bad}
	case m.Recount != nil:
		d.State = state{"pods missing", warn}
	case m.Decides:
		d.State = state{"decides", good}
	}
	if m.Proposal != nil {
		d.Asks = fmt.Sprintf("asks for %d", *m.Proposal)
	}
	if m.Arithmetic != "" {
		d.Lines = append(d.Lines, m.Arithmetic)
	}
	if m.Recount != nil {
		d.Lines = append(d.Lines, m.Recount.Arithmetic)
	}
	tones := map[string]tone{"Counted": good, "Unready": warn, "Missing": bad}
	// Pods that were not simply counted come first: readers look for them.
	pods := slices.Clone(m.Pods)
	slices.SortStableFunc(pods, func(a, b decisionreport.Pod) int {
		switch counted := "Counted"; {
		case a.Class == b.Class || a.Class != counted && b.Class != counted:
			return 0
		case b.Class == counted:
			return -1
		}
		return 1
	})
	for i := range pods[:min(len(pods), page100)] {
		pod := &pods[i]
		why := pod.Reason
		if pod.Assumed != "" {
			why = strings.TrimPrefix(why+"; assumed to use "+pod.Assumed, "; ")
		}
		row := autoscalerPod{Name: printable(pod.Name), Class: strings.ToLower(pod.Class), Tone: cmp.Or(tones[pod.Class], quiet),
			Usage: pod.Usage, Request: pod.Request, Why: why, At: relativeTime(pod.MeasuredAt, p.Now)}
		if pod.Class != "NotInTarget" {
			row.Href = p.linkTo(query{view: onePod, pod: metric.PodRef{Namespace: namespace, Name: metric.PodName(pod.Name)}})
		}
		d.Pods = append(d.Pods, row)
	}
	d.More = len(pods) - len(d.Pods)
	return d
}

// autoscalerCauses returns the causes of missing metrics as the page shows them.
func (p *page) autoscalerCauses(namespace metric.Namespace, missing []decisionreport.Cause) missingReport {
	var drawn missingReport
	for i := range missing {
		m := &missing[i]
		c := cause{State: severityState(m.Severity), Reason: m.Reason + ", " + printable(m.Metric), Message: m.Message, Advice: m.Advice}
		if n := len(m.Pods); n > 0 {
			c.Count = humanize.Count(n, "pod")
		}
		for _, pod := range m.Pods[:min(len(m.Pods), maxNames)] {
			c.Names = append(c.Names, p.named(string(namespace)+"/"+pod))
		}
		c.Others = len(m.Pods) - len(c.Names)
		drawn.Causes = append(drawn.Causes, c)
	}
	return drawn
}
