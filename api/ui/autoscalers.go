package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/cluster/eventlog"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// autoscalerKinds maps a query parameter to the kind of autoscaler it names.
var autoscalerKinds = map[string]string{"hpa": "HorizontalPodAutoscaler", "autoscaler": "Autoscaler"}

// autoscalerListBody is the body of the page of all autoscalers.
type autoscalerListBody struct {
	Rows []autoscalerRow
	Cut  listRange
	Off  bool // no autoscaler controller runs
	// Unread explains why autoscalers cannot be read. It is empty if they can.
	Unread string
}

// autoscalerRow is an autoscaler in a list. Some fields replace those of the summary.
type autoscalerRow struct {
	*decisionreport.DecisionSummary
	Name, Href string
	Kind       string
	State      state
	Replicas   string // "3 → 5"
	Decided    shownTime
	Why        string
}

// autoscalers fills the page of all autoscalers. Autoscalers without a metric come first, then
// those where weir and another controller differ, then those that scale.
func (p *page) autoscalers() error {
	body := &autoscalerListBody{Off: p.opts.Autoscalers == nil}
	p.show("Autoscalers", "autoscalers", body)
	if body.Off {
		return nil
	}
	if p.opts.AutoscalersUnread != nil {
		body.Unread = p.opts.AutoscalersUnread()
	}
	all := slices.DeleteFunc(slices.Clone(p.opts.Autoscalers()), func(b decisionreport.DecisionSummary) bool {
		return !containsFold(b.Namespace+"/"+b.Name, p.query.filter)
	})
	slices.SortFunc(all, func(a, b decisionreport.DecisionSummary) int {
		if p.query.sort != byName {
			if c := cmp.Compare(urgency[autoscalerState(&a).Tone], urgency[autoscalerState(&b).Tone]); c != 0 {
				return c
			}
		}
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	body.Cut = p.paginate(len(all), page100, query{view: allAutoscalers})
	for i := range all[body.Cut.From:body.Cut.To] {
		body.Rows = append(body.Rows, p.autoscalerRow(&all[body.Cut.From+i]))
	}
	return nil
}

func (p *page) autoscalerRow(b *decisionreport.DecisionSummary) autoscalerRow {
	ref := metric.PodRef{Namespace: metric.Namespace(b.Namespace), Name: metric.PodName(b.Name)}
	r := autoscalerRow{
		DecisionSummary: b, Name: printable(b.Namespace + "/" + b.Name), Kind: shortKind(b.Kind), State: autoscalerState(b),
		Href: p.linkTo(query{view: oneAutoscaler, autoscalerKind: b.Kind, pod: ref}), Replicas: replicas(b.Current, b.Desired), Decided: relativeTime(b.At, p.Now),
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
	return fine
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
	Facts   facts
	Differs string
	Metrics []autoscalerMetric
	Missing missingReport
	Links   []anchor
}

// autoscalerMetric is the report of one metric as the page shows it.
type autoscalerMetric struct {
	decisionreport.MetricReport
	State      state
	Error      string
	Asks       string
	Lines      []string
	Pods       []autoscalerPod
	More       int
	MeasuredAt shownTime
}

// autoscalerPod is how a pod was counted. Some fields replace those of the PodReport.
type autoscalerPod struct {
	*decisionreport.PodReport
	Name, Href, Class, Why string
	Tone                   tone
	At                     shownTime
	// Others are further pods that the row is about, and OthersCount is how many there are.
	Others      []anchor
	OthersCount int
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
	p.Kind, p.Path = shortKind(p.query.autoscalerKind), append(p.Path, p.namespaceAnchor(namespace)...)
	body := &autoscalerBody{DecisionReport: r, Missing: p.autoscalerCauses(namespace, r.Missing)}
	body.Links = p.eventsLink(eventlog.Object{Kind: p.query.autoscalerKind, Namespace: string(namespace), Name: string(p.query.pod.Name)})
	body.Facts.add("replicas", replicas(r.Current, r.Desired))
	body.Facts.add("bounds", fmt.Sprintf("%d to %d", r.Min, r.Max))
	body.Facts.add("target", r.Target)
	body.Facts.add("mode", r.Mode)
	body.Facts.add("decided", relativeTime(r.At, p.Now).Text)
	body.Facts.add("error", r.WriteError)
	if o := r.OtherController; o != nil && !o.Agrees {
		body.Differs = differenceText(o)
	}
	for i := range r.Metrics {
		body.Metrics = append(body.Metrics, p.autoscalerMetric(namespace, &r.Metrics[i]))
	}
	p.show(printable(string(p.query.pod.Name)), "autoscaler", body)
	return nil
}

// autoscalerAnchors returns autoscalers by their names in answers, with links to the decisions about
// them.
func (p *page) autoscalerAnchors(names []string) (all []anchor) {
	for _, name := range names[:min(len(names), maxNames)] {
		a, known := p.scalers[name]
		if !known {
			a = p.autoscalerAnchor(name)
			p.scalers[name] = a
		}
		all = append(all, a)
	}
	return all
}

// autoscalerAnchor returns an autoscaler by its name in an answer.
func (p *page) autoscalerAnchor(name string) anchor {
	own, namespace, short := explain.ParseAutoscalerName(name)
	kind := autoscalerKinds["hpa"]
	if own {
		kind = autoscalerKinds["autoscaler"]
	}
	a := anchor{Text: printable(shortKind(kind) + " " + namespace + "/" + short)}
	if p.opts.Autoscaler != nil {
		if _, decided := p.opts.Autoscaler(kind, namespace, short); decided {
			a.Href = p.linkTo(query{view: oneAutoscaler, autoscalerKind: kind, pod: metric.PodRef{Namespace: metric.Namespace(namespace), Name: metric.PodName(short)}})
		}
	}
	return a
}

func (p *page) autoscalerMetric(namespace metric.Namespace, m *decisionreport.MetricReport) autoscalerMetric {
	d := autoscalerMetric{MetricReport: *m, State: fine, Error: printable(m.Error), MeasuredAt: relativeTime(m.MeasuredAt, p.Now)}
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
	if m.AnsweredBy != "" && m.Error == "" {
		d.Lines = append(d.Lines, "answered by "+m.AnsweredBy)
	}
	tones := map[string]tone{"Counted": good, "Unready": warn, "Missing": bad}
	// Pods that were not simply counted come first: readers look for them.
	pods := slices.Clone(m.Pods)
	isCounted := map[string]int{"Counted": 1}
	slices.SortStableFunc(pods, func(a, b decisionreport.PodReport) int { return isCounted[a.Class] - isCounted[b.Class] })
	alike := map[groupKey]int{} // rows of pods without a number
	for i := range pods {
		pod := &pods[i]
		reason := pod.Reason
		if pod.Assumed != "" {
			reason = strings.TrimPrefix(reason+"; assumed to use "+pod.Assumed, "; ")
		}
		row := autoscalerPod{PodReport: pod, Name: printable(pod.Name), Class: strings.ToLower(pod.Class), Tone: cmp.Or(tones[pod.Class], quiet),
			Why: reason, At: relativeTime(p.measuredAt(namespace, m, pod), p.Now)}
		if pod.Class != "NotInTarget" {
			row.Href = p.linkTo(query{view: onePod, pod: metric.PodRef{Namespace: namespace, Name: metric.PodName(pod.Name)}})
		}
		key := groupKey{pod.Class, reason, pod.Request}
		if at, known := alike[key]; known && pod.Usage == "" && reason != "" {
			d.Pods[at].add(anchor{Text: row.Name, Href: row.Href}, row.At)
			continue
		}
		if len(d.Pods) == page100 {
			d.More++
			continue
		}
		alike[key] = len(d.Pods)
		d.Pods = append(d.Pods, row)
	}
	return d
}

// groupKey is what pods without a number have in common that share a row.
type groupKey struct{ class, reason, request string }

// add adds a pod to the row of others.
func (a *autoscalerPod) add(pod anchor, at shownTime) {
	a.OthersCount++
	if len(a.Others) < maxNames {
		a.Others = append(a.Others, pod)
	}
	if at.Full > a.At.Full {
		a.At = at
	}
}

// measuredAt returns when a pod was measured for a metric, which may be before the decision's readings: the
// memory has the past of CPU and memory. It is zero if that is not known.
func (p *page) measuredAt(namespace metric.Namespace, m *decisionreport.MetricReport, pod *decisionreport.PodReport) (last time.Time) {
	r := map[bool]*resource{true: &resources.cpu, false: &resources.memory}[strings.HasPrefix(m.Name, "cpu")]
	if !pod.MeasuredAt.IsZero() || p.opts.Points == nil || m.Type != string(autoscalingv2.ResourceMetricSourceType) && m.Type != string(autoscalingv2.ContainerResourceMetricSourceType) {
		return pod.MeasuredAt
	}
	ref := metric.PodRef{Namespace: namespace, Name: metric.PodName(pod.Name)}
	known := p.Facts.Pod(ref)
	if known == nil {
		return last
	}
	e := metric.Entity{Kind: metric.Pod, Node: known.Node, Namespace: namespace, Pod: ref.Name}
	for at := range p.opts.Points(e, r.used, p.Now.Add(-shortestSpan), p.Now) {
		last = at
	}
	return last
}

// autoscalerCauses returns the causes of missing metrics as the page shows them.
func (p *page) autoscalerCauses(namespace metric.Namespace, missing []decisionreport.MissingCause) (drawn missingReport) {
	for i := range missing {
		m := &missing[i]
		c := explain.MissingCause{
			Reason: m.Reason, Why: printable(m.Metric), Severity: m.Severity, Message: m.Message, Advice: m.Advice, Pods: len(m.Pods),
		}
		for _, pod := range m.Pods {
			c.Names = append(c.Names, string(namespace)+"/"+pod)
		}
		drawn.Causes = append(drawn.Causes, p.cause(&c))
	}
	return drawn
}
