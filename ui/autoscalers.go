package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/metric"
)

// kindOfScaler is the kind that a parameter names an autoscaler of.
var kindOfScaler = map[string]string{"hpa": "HorizontalPodAutoscaler", "autoscaler": "Autoscaler"}

// scalerList is the body of the page of all autoscalers.
type scalerList struct {
	Rows []scalerRow
	Cut  cut
	Off  bool // nobody decides about any
	None string
}

// scalerRow is an autoscaler in a list.
type scalerRow struct {
	Name, Href string
	Kind       string
	State      state
	Mode       string
	Replicas   string // "3 → 5"
	Range      string // "1 to 10"
	Decided    moment
	Why        string
}

// autoscalers fills the page of all autoscalers: those that lack metrics first,
// then those where weir and another controller differ, then those that change.
func (p *page) autoscalers() {
	p.Heading, p.Path = "Autoscalers", p.above()
	body := &scalerList{Off: p.opts.Autoscalers == nil, None: "No autoscaler is known, or none of that name."}
	p.Body = body
	if body.Off {
		return
	}
	all := slices.DeleteFunc(slices.Clone(p.opts.Autoscalers()), func(b decisionreport.Brief) bool {
		return !holds(b.Namespace+"/"+b.Name, p.query.filter)
	})
	order := map[tone]int{bad: 0, warn: 1, good: 2, quiet: 3}
	slices.SortFunc(all, func(a, b decisionreport.Brief) int {
		if p.query.sort != byName {
			if c := cmp.Compare(order[scalerState(&a).Tone], order[scalerState(&b).Tone]); c != 0 {
				return c
			}
		}
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	body.Cut = fit(len(all), page100, p.query, query{view: allScalers})
	for i := range all[body.Cut.From:body.Cut.To] {
		body.Rows = append(body.Rows, p.scalerRow(&all[body.Cut.From+i]))
	}
}

func (p *page) scalerRow(b *decisionreport.Brief) scalerRow {
	ref := metric.PodRef{Namespace: metric.Namespace(b.Namespace), Name: metric.PodName(b.Name)}
	r := scalerRow{
		Name: clean(b.Namespace + "/" + b.Name), Href: p.to(query{view: oneScaler, scaler: b.Kind, pod: ref}), Kind: shortKind(b.Kind),
		State: scalerState(b), Mode: b.Mode, Replicas: replicas(b.Current, b.Desired), Range: fmt.Sprintf("%d to %d", b.Min, b.Max), Decided: when(b.At, p.Now),
	}
	if r.Why = clean(b.Summary); b.Other != nil && !b.Other.Agrees {
		r.Why += ". " + differs(b.Other)
	}
	return r
}

// scalerState is how an autoscaler fares.
func scalerState(b *decisionreport.Brief) state {
	switch {
	case b.Failed:
		return state{"no decision", bad}
	case len(b.Unknown) > 0:
		return state{"unknown", bad}
	case b.Lacking > 0:
		return state{"pods missing", warn}
	case b.Other != nil && !b.Other.Agrees:
		return state{"differs", warn}
	case b.Current != b.Desired:
		return state{"scales", good}
	}
	return state{"ok", good}
}

// differs says what another controller wants, and why.
func differs(o *decisionreport.Other) string {
	s := fmt.Sprintf("The controller that acts wants %d", o.Desired)
	if o.Why == "" {
		return s + "."
	}
	return s + ": " + clean(o.Why)
}

func shortKind(kind string) string {
	if kind == kindOfScaler["hpa"] {
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

// scalerPage is the body of the page of one autoscaler.
type scalerPage struct {
	*decisionreport.Report
	Facts   []fact
	Differs string
	Metrics []scalerMetric
	Missing report
	Steps   []string
	Next    []string
}

// scalerMetric is what one metric asks for.
type scalerMetric struct {
	decisionreport.Metric
	State      state
	Error      string
	Asks       string
	Lines      []string
	Pods       []scalerPod
	More       int
	MeasuredAt moment
}

// scalerPod is how a pod was counted.
type scalerPod struct {
	Name, Href, Class   string
	Tone                tone
	Usage, Request, Why string
	At                  moment
}

// autoscaler fills the page of one autoscaler.
func (p *page) autoscaler() error {
	var r *decisionreport.Report
	known := p.opts.Autoscaler != nil
	if known {
		r, known = p.opts.Autoscaler(p.query.scaler, string(p.query.pod.Namespace), string(p.query.pod.Name))
	}
	if !known {
		return p.unknown(shortKind(p.query.scaler) + " " + clean(p.query.pod.String()))
	}
	namespace := p.query.pod.Namespace
	p.Heading, p.Kind = clean(string(p.query.pod.Name)), shortKind(p.query.scaler)
	p.Path = p.above(anchor{Text: clean(string(namespace)), Href: p.to(query{view: oneNamespace, pod: metric.PodRef{Namespace: namespace}})})
	body := &scalerPage{Report: r}
	body.fact("replicas", replicas(r.Current, r.Desired))
	body.fact("bounds", fmt.Sprintf("%d to %d", r.Min, r.Max))
	body.fact("target", clean(r.Target))
	body.fact("mode", r.Mode)
	body.fact("decided", when(r.At, p.Now).Text)
	body.fact("error", clean(r.WriteError))
	if o := r.Other; o != nil && !o.Agrees {
		body.Differs = differs(o)
	}
	for i := range r.Metrics {
		body.Metrics = append(body.Metrics, p.scalerMetric(namespace, &r.Metrics[i]))
	}
	for i := range r.Steps {
		body.Steps = append(body.Steps, clean(r.Steps[i].Message))
	}
	for i := range r.Next {
		body.Next = append(body.Next, r.Next[i].Message)
	}
	body.Missing = p.scalerCauses(namespace, r.Missing)
	p.Body = body
	return nil
}

func (b *scalerPage) fact(name, value string) {
	if value != "" {
		b.Facts = append(b.Facts, fact{Name: name, Value: value})
	}
}

func (p *page) scalerMetric(namespace metric.Namespace, m *decisionreport.Metric) scalerMetric {
	d := scalerMetric{Metric: *m, State: state{"ok", good}, Error: clean(m.Error), MeasuredAt: when(m.MeasuredAt, p.Now)}
	d.Name = clean(m.Name)
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
	// Those that were not simply counted come first: they are what one looks for.
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
		why := pod.Why
		if pod.Assumed != "" {
			why = strings.TrimPrefix(why+"; taken to use "+pod.Assumed, "; ")
		}
		row := scalerPod{Name: clean(pod.Name), Class: strings.ToLower(pod.Class), Tone: cmp.Or(tones[pod.Class], quiet),
			Usage: pod.Usage, Request: pod.Request, Why: why, At: when(pod.At, p.Now)}
		if pod.Class != "Stranger" {
			row.Href = p.to(query{view: onePod, pod: metric.PodRef{Namespace: namespace, Name: metric.PodName(pod.Name)}})
		}
		d.Pods = append(d.Pods, row)
	}
	d.More = len(pods) - len(d.Pods)
	return d
}

// scalerCauses returns what the metrics lack, as it is drawn.
func (p *page) scalerCauses(namespace metric.Namespace, missing []decisionreport.Cause) report {
	var drawn report
	for i := range missing {
		m := &missing[i]
		c := cause{State: grave(m.Severity), Reason: m.Reason + ", " + clean(m.Metric), Message: m.Message, Advice: m.Advice}
		if n := len(m.Pods); n > 0 {
			c.Count = plural(n, "pod")
		}
		for _, pod := range m.Pods[:min(len(m.Pods), maxNames)] {
			c.Names = append(c.Names, p.named(string(namespace)+"/"+pod))
		}
		c.Others = len(m.Pods) - len(c.Names)
		drawn.Causes = append(drawn.Causes, c)
	}
	return drawn
}
