package explain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/test/transcript"
)

// TestTranscripts runs the files in testdata. Each file has its own fixture: the whole pipeline and
// a memory sink. go test -rewrite writes their output again.
//
//	started at=0s
//	    weir began; without this line that is unknown
//	sink entities=2
//	    the sink keeps at most this many entities
//	facts [at=0s] [unsynced]
//	    node n1 [notready] [cpu=4]
//	    pod shop/web node=n1 [phase=Running] [uid=u1] [started=-5m] [deleted=30s] [known=-5m] [qos=Burstable] [hostnet]
//	    container shop/web/app [waiting|terminated|unknown] [why=…] [id=c1] [last=c0] [started=-5m] [ended=-6m] [restarts=2] [init|sidecar|ephemeral]
//	    everything that the API server says from now on
//	read n1 at=0s [source=kubelet:resource] [interval=15s] [clock=1ms] [error=NodeTimeout]
//	    shop/web/app [cpu=10s] [mem=10Mi] [rx=5Ki] [start=-5m] [time=0s] [uid=u1] [id=c1] [path=/a] [procs=1]
//	    verdict shop/web reason=Unsupported [limit=5]   a verdict that no processor makes
//	source n1 [due=15s] [began=15s] [unread=NodeExcluded]
//	    the state of a source, read or not
//	scales shop/web-hpa shop/web
//	    an autoscaler, and the prefix of the names of its pods
//	pod shop/web at=20s [json], container shop/web/app at=20s, node n1 at=20s, cgroup n1/init.scope at=20s, namespace shop at=20s, missing at=20s, why shop/web at=20s
//	    ask for an explanation
//	rule shop/web network/rx_rate [cpu/usage_rate] at=20s
//	    ask for the short reason, for a pod, a container, node/n1, namespace/shop, system/n1/kubelet or cluster
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newFixture()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := w.run(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

func (fx *fixture) run(d *datadriven.TestData) (string, error) {
	subject := ""
	r := reader{attrs: map[string]string{}}
	for i, a := range d.CmdArgs {
		if i == 0 && len(a.Vals) == 0 && a.Key != "unsynced" {
			subject = a.Key
			continue
		}
		r.attrs[a.Key] = strings.Join(a.Vals, ",")
	}
	at := r.moment("at")
	if at.IsZero() {
		at = transcript.Epoch
	}
	switch d.Cmd {
	case "facts":
		return "", fx.learn(transcript.Lines(d.Input), at, !r.flag("unsynced"))
	case "read":
		b := &metric.Batch{Source: "kubelet:resource", Node: metric.NodeName(subject), Interval: 15 * time.Second, Resolution: time.Millisecond, Began: at, Ended: at}
		if s := r.text("source"); s != "" {
			b.Source = s
		}
		var took time.Duration
		for key, to := range map[string]*time.Duration{"interval": &b.Interval, "clock": &b.Resolution, "took": &took} {
			if v := r.text(key); v != "" {
				var err error
				*to, err = time.ParseDuration(v)
				r.note(err)
			}
		}
		if v := r.text("ahead"); v != "" {
			ahead, err := time.ParseDuration(v)
			r.note(err)
			b.NodeTime = at.Add(ahead).UnixNano()
		}
		if v := r.text("error"); v != "" {
			finding, _ := metric.ParseReason(v)
			b.Err = &metric.ReadError{Reason: finding, Err: errors.New("get https://" + address + ":10250: it broke")}
		}
		if err := r.done(); err != nil {
			return "", err
		}
		fx.source(b.Source, b.Node).Took = took
		return "", fx.observe(b, transcript.Lines(d.Input))
	case "source":
		s := fx.source("kubelet:resource", metric.NodeName(subject))
		s.Due = r.moment("due")
		if began := r.moment("began"); !began.IsZero() {
			s.LastRead = began
		}
		if v := r.text("unread"); v != "" {
			finding, _ := metric.ParseReason(v)
			s.Unread = &metric.ReadError{Reason: finding, Err: errors.New("as configured")}
		}
		return "", r.done()
	case "started":
		fx.started = at
		return "", r.done()
	case "sink":
		fx.sink = memory.New(memory.Options{MaxEntities: int(r.number("entities"))})
		return "", r.done()
	case "scales":
		fx.scaled[subject] = d.CmdArgs[1].Key
		return "", nil
	}
	if d.Cmd == "rule" {
		delete(r.attrs, "at")
		return briefly(fx.at(at), subject, r.attrs), nil
	}
	asJSON := r.flag("json")
	if err := r.done(); err != nil {
		return "", err
	}
	if err := agree(fx.at(at)); err != nil {
		return "", err
	}
	out, err := ask(fx.at(at), d.Cmd, subject, asJSON)
	if err == nil && d.Cmd != "node" && strings.Contains(out, address) {
		err = fmt.Errorf("the answer names the address %s:\n%s", address, out)
	}
	return out, err
}

// agree returns an error if the answers of an explainer about a pod contradict each other, or lack
// a required part.
func agree(w *explain.Explainer) (err error) {
	survey := w.Survey()
	w.Facts.EachPod(func(p *cluster.Pod) bool {
		r, finding := survey.Pod(p), w.Why(p)
		if r.Reason.String() != finding.Reason || r.Served != finding.Served || r.Container != finding.Container {
			err = errors.Join(err, fmt.Errorf("%v: the survey says %v of container %q (served: %v), Why says %s of %q (%v)", p.PodRef, r.Reason, r.Container, r.Served, finding.Reason, finding.Container, finding.Served))
		}
		if r.Reason == metric.Incomplete && r.Container == "" {
			err = errors.Join(err, fmt.Errorf("%v: it is Incomplete, and nothing says why: %+v, facts %+v", p.PodRef, r, p))
		}
		e, known := w.Pod(p.PodRef)
		if !known || len(e.Findings) < 2 || e.Summary == "" {
			err = errors.Join(err, fmt.Errorf("%v has no explanation", p.PodRef))
			return true
		}
		found := false
		for _, f := range e.Findings {
			found = found || f.Reason == finding.Reason && f.Message == finding.Message && f.Served == finding.Served
			if !f.Served && f.Message == "" || f.Severity == "broken" && f.Advice == "" {
				err = errors.Join(err, fmt.Errorf("%v: the finding lacks words: %+v", p.PodRef, f))
			}
		}
		if !found {
			err = errors.Join(err, fmt.Errorf("%v: Why says %s, and no finding does: %+v", p.PodRef, finding.Reason, e.Findings))
		}
		if few := w.SurveyOf().Pod(p); few.Reason != r.Reason || few.Served != r.Served || few.Container != r.Container || !few.Since.Equal(r.Since) {
			err = errors.Join(err, fmt.Errorf("%v: a survey of all says %+v, one of it alone %+v", p.PodRef, r, few))
		}
		err = errors.Join(err, rules(w, &e, metric.Entity{Kind: metric.Pod, Namespace: p.Namespace, Pod: p.Name}))
		for i := range e.Containers {
			of := metric.Entity{Kind: metric.Container, Namespace: p.Namespace, Pod: p.Name, Name: e.Containers[i].Container}
			err = errors.Join(err, rules(w, &e.Containers[i], of))
		}
		return true
	})
	risks := w.Risks()
	w.Facts.EachNode(func(n *cluster.Node) bool {
		if risk, atRisk := w.Risk(n.Name); risks[n.Name] != risk || atRisk != (risk != explain.Risk{}) {
			err = errors.Join(err, fmt.Errorf("node %s: of all nodes it is %+v, of it alone %+v", n.Name, risks[n.Name], risk))
		}
		if all, few := survey.Node(n.Name), w.SurveyOf().Node(n.Name); all.ShortMessage() != few.ShortMessage() {
			err = errors.Join(err, fmt.Errorf("node %s: a survey of all says %s, one of it alone %s", n.Name, all.ShortMessage(), few.ShortMessage()))
		}
		if e, known := w.Node(n.Name); known {
			err = errors.Join(err, rules(w, &e, metric.Entity{Kind: metric.Node, Node: n.Name}))
		}
		return true
	})
	return err
}

// ofGroup is the main metric of each group, or its first metric.
var ofGroup = map[string]metric.ID{
	"cpu": metric.CPUUsageRate, "memory": metric.MemoryWorkingSet, "network": metric.NetworkRxRate,
	"filesystem": metric.EphemeralStorageUsage, "io": metric.DiskReadBytesRate, "process": metric.ProcessCount, "accelerator": metric.AcceleratorDutyCycle,
}

// rules returns an error if Rule and the findings disagree about the metrics of e.
func rules(w *explain.Explainer, e *explain.Explanation, of metric.Entity) (err error) {
	for i := range e.Findings {
		f := &e.Findings[i]
		r, known := w.Rule(of, ofGroup[f.Group])
		short := r.ShortMessage()
		switch {
		case !known:
			err = errors.Join(err, fmt.Errorf("%v: Rule knows nothing of what is explained", of))
		case f.Served && r.Reason == metric.Unsupported: // the group has other numbers
		case r.Reason.String() != f.Reason || r.Served != f.Served:
			err = errors.Join(err, fmt.Errorf("%v, %s: the finding says %s (served: %v), Rule %s (%v)", of, f.Group, f.Reason, f.Served, short, r.Served))
		case !strings.HasSuffix(short, "("+f.Reason+")") || strings.Contains(short, address) || len(short) < len(f.Reason)+10:
			err = errors.Join(err, fmt.Errorf("%v, %s: %q says too much or too little", of, f.Group, short))
		}
	}
	return err
}

// address is part of every error of a read.
const address = "10.0.0.1"

// ask returns the answer of an explainer.
func ask(w *explain.Explainer, what, subject string, asJSON bool) (string, error) {
	var answer any
	known := true
	switch e := entity(subject); what {
	case "pod":
		answer, known = w.Pod(e.PodRef())
	case "container":
		answer, known = w.Container(e.PodRef(), e.Name)
	case "why":
		answer = w.Why(w.Facts.Pod(e.PodRef()))
	case "node":
		answer, known = w.Node(metric.NodeName(subject))
	case "cgroup":
		node, name, _ := strings.Cut(subject, "/")
		answer, known = w.Cgroup(metric.NodeName(node), "/"+name)
	case "namespace":
		answer, known = w.Namespace(metric.Namespace(subject))
	case "missing":
		answer = w.Missing()
	default:
		return "", fmt.Errorf("unknown command %q", what)
	}
	if !known {
		return "nothing is known of it\n", nil
	}
	if asJSON {
		out, err := json.MarshalIndent(answer, "", "  ")
		return string(out) + "\n", err
	}
	var out strings.Builder
	switch a := answer.(type) {
	case explain.Explanation:
		describe(&out, &a, "")
	case explain.MissingReport:
		report(&out, &a)
	case explain.Finding:
		finding(&out, &a, "")
	}
	return out.String(), nil
}

// briefly returns the explainer's short answers for metrics.
func briefly(w *explain.Explainer, subject string, names map[string]string) string {
	e := entity(subject)
	kind, name, _ := strings.Cut(subject, "/")
	switch kind {
	case "node":
		e = metric.Entity{Kind: metric.Node, Node: metric.NodeName(name)}
	case "namespace":
		e = metric.Entity{Kind: metric.Namespaced, Namespace: metric.Namespace(name)}
	case "cluster":
		e = metric.Entity{Kind: metric.Cluster}
	case "system":
		node, cgroup, _ := strings.Cut(name, "/")
		e = metric.Entity{Kind: metric.System, Node: metric.NodeName(node), Name: cgroup}
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		id, ok := metric.ByName(name)
		if !ok {
			return fmt.Sprintf("no metric is called %s\n", name)
		}
		if r, known := w.Rule(e, id); known {
			fmt.Fprintf(&out, "%s: %s\n", name, r.ShortMessage())
		} else {
			fmt.Fprintf(&out, "nothing is known of it\n")
		}
	}
	return out.String()
}

// describe writes all fields of an explanation.
func describe(out *strings.Builder, e *explain.Explanation, indent string) {
	line := func(format string, args ...any) { fmt.Fprintf(out, indent+format+"\n", args...) }
	line("%s", e.Summary)
	if k := e.Known; k != nil {
		var words []string
		add := func(name string, v any) {
			if s := fmt.Sprint(v); s != "" && s != "0" {
				words = append(words, name+" "+s)
			}
		}
		add("uid", k.UID)
		add("phase", k.Phase)
		add("qos", k.QoS)
		add("state", k.State)
		add("why", k.Why)
		add("id", k.ID)
		add("restarts", k.Restarts)
		add("started", offset(k.Started))
		add("deleted", offset(k.Deleted))
		line("known: %s", strings.Join(words, ", "))
	}
	for i := range e.Findings {
		finding(out, &e.Findings[i], indent)
	}
	for _, r := range e.Duplicates {
		line("duplicate: %s on %s, %s, rule %s, since %s: %s", strings.Join(strings.Fields(fmt.Sprint(r.UID, " ", r.ID, " ", r.Path, " started ", offset(r.Started))), " "), r.Node, r.Reason, r.Rule, offset(r.Since), r.Message)
	}
	for _, r := range e.Reads {
		line("read: %s last %s, well %s, next %s %s %s", r.Source, offset(r.LastRead), offset(r.LastSuccess), offset(r.Due), r.Reason, r.Error)
	}
	if len(e.Autoscalers) > 0 {
		line("scaled by: %s", strings.Join(e.Autoscalers, ", "))
	}
	for i := range e.Containers {
		describe(out, &e.Containers[i], indent+"  ")
	}
}

func finding(out *strings.Builder, f *explain.Finding, indent string) {
	line := func(format string, args ...any) { fmt.Fprintf(out, indent+"  "+format+"\n", args...) }
	fmt.Fprintf(out, "%s%s: %s %s", indent, f.Group, f.Reason, f.Severity)
	if f.Served {
		fmt.Fprintf(out, ", %s at %s", f.Value, offset(f.Time))
	}
	if f.LastKnown {
		fmt.Fprintf(out, " (last known value)")
	}
	if f.Container != "" {
		fmt.Fprintf(out, ", container %s", f.Container)
	}
	if f.Rule != "" {
		fmt.Fprintf(out, ", rule %s", f.Rule)
	}
	if !f.Since.IsZero() {
		fmt.Fprintf(out, ", since %s%s", offset(f.Since), beforeStart(f.BeforeStart))
		if !f.ServedUntil.IsZero() {
			fmt.Fprintf(out, ", served until %s", offset(f.ServedUntil))
		}
	}
	if !f.Due.IsZero() {
		fmt.Fprintf(out, ", due %s", offset(f.Due))
	}
	fmt.Fprintln(out)
	if f.Message != "" {
		line("%s", f.Message)
	}
	for _, e := range f.Evidence {
		line("- %s", e)
	}
	if f.Next != "" {
		line("next: %s", f.Next)
	}
	if f.Advice != "" {
		line("do: %s", f.Advice)
	}
}

func report(out *strings.Builder, r *explain.MissingReport) {
	fmt.Fprintf(out, "%s\nnodes %+v, pods %+v\n", r.Summary, r.Nodes, r.Pods)
	if text := r.RiskText(); text != "" {
		fmt.Fprintf(out, "%s\n", text)
	}
	for i, c := range slices.Concat(r.Causes, r.Partial, r.Idle) {
		if i == len(r.Causes) {
			fmt.Fprintln(out, "not missing:")
		}
		cgroups := ""
		if c.Cgroups > 0 {
			cgroups = fmt.Sprintf(", %d cgroups", c.Cgroups)
		}
		fmt.Fprintf(out, "%s %s %s, since %s%s, %d pods, %d nodes%s: %s\n", c.Reason, c.Severity, c.Node, offset(c.Since), beforeStart(c.BeforeStart), c.Pods, c.Nodes, cgroups, strings.Join(c.Names, " "))
		for _, l := range []string{c.Message, "next: " + c.Next, "do: " + c.Advice, "scaled by: " + strings.Join(c.Autoscalers, ", ")} {
			if !strings.HasSuffix(l, ": ") {
				fmt.Fprintf(out, "  %s\n", l)
			}
		}
	}
}

func beforeStart(is bool) string {
	if is {
		return " (weir's start) or before"
	}
	return ""
}

func offset(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return transcript.Offset(t.UnixNano()).String()
}
