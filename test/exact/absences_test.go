package exact

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/simulator"
)

// An absence is a container that ran and was not served when the values were
// read between two rounds, with weir's explanation and the truth.
type absence struct {
	play    *play
	of      *source
	life    *simulator.Life // that ran
	now     time.Time
	facts   *cluster.Facts
	found   explain.Finding // of CPU, or of memory if only that is absent
	summary string
	heard   []delivery // the answers so far
	served  time.Time  // when it was served again; zero if it was not
	atDue   bool       // it was served after the first round at or after Due
	wasDue  bool       // there was such a round
	judged  time.Time  // when that was seen
}

// explainer returns weir's explainer at now.
func (p *play) explainer(facts *cluster.Facts, now time.Time) *explain.Explainer {
	w := &explain.Explainer{Now: now, View: p.sink.Snapshot()}
	if facts != nil {
		c := cluster.FactsChange{Synced: true, At: facts.At}
		for _, n := range p.fleet.Nodes() {
			node := &cluster.Node{Name: metric.NodeName(n.Name), Ready: true}
			node.Spec.Set(metric.CPUNodeCapacity, float64(n.Cores)*1e9)
			c.Nodes = append(c.Nodes, node)
		}
		w.Facts = facts.With(c)
	}
	for _, s := range p.sources {
		state := explain.SourceState{Name: s.batch.Source, Node: s.batch.Node, Interval: s.batch.Interval, LastRead: s.lastRead, LastSuccess: s.lastSuccess, Due: s.next, ClockAhead: time.Duration(s.ahead)}
		if s.lastRead != s.lastSuccess {
			state.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: errMissed}
		}
		w.Sources = append(w.Sources, state)
	}
	return w
}

// explainAbsence returns the absence of a container that runs and is not served.
func (p *play) explainAbsence(l *simulator.Life, facts *cluster.Facts, now time.Time) *absence {
	s := p.sourceOf(metric.NodeName(l.Container.Pod.Node.Name))
	a := &absence{play: p, of: s, life: l, now: now, facts: facts, heard: s.heard[:len(s.heard):len(s.heard)]}
	ref := metric.PodRef{Namespace: metric.Namespace(l.Container.Pod.Namespace), Name: metric.PodName(l.Container.Pod.Name)}
	w := p.explainer(facts, now)
	e, ok := w.Container(ref, l.Container.Name)
	if !ok {
		a.summary = "nothing is known of it"
		return a
	}
	a.summary = e.Summary
	for _, f := range e.Findings[:2] {
		if a.found = f; !f.Served || f.Reason != metric.Measured.String() {
			break
		}
	}
	if a.found.Reason == metric.Measured.String() {
		// The container has its numbers: another one keeps the pod from being served.
		pod, _ := w.Pod(ref)
		a.summary = pod.Summary
		for _, f := range pod.Findings[:2] {
			if a.found = f; !f.Served || f.Reason != metric.Measured.String() {
				break
			}
		}
	}
	return a
}

// follow notes whether absences that were found before are served after the
// rounds at now.
func (p *play) follow(values map[string]value, now time.Time) {
	for _, a := range p.absences {
		_, ok := values[nameOf(a.life)]
		if !a.found.Due.IsZero() && !a.wasDue && !a.of.lastRead.Before(a.found.Due) {
			a.wasDue, a.atDue, a.judged = true, ok, now
		}
		if ok && a.served.IsZero() {
			a.served = now
		}
	}
}

func clock(ns int64) string {
	if ns == 0 || ns == (time.Time{}).UnixNano() {
		return "never"
	}
	if ns == math.MaxInt64 {
		return "the end"
	}
	return time.Unix(0, ns).UTC().Format("15:04:05.000")
}

// String returns the explanation and the truth as text.
func (a *absence) String() string {
	var text strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	p := a.play
	add("== %s by %s: %s", nameOf(a.life), p.endpoints(), a.found.Reason)
	add("weir says at %s: %s", clock(a.now.UnixNano()), a.summary)
	if c := a.found.Container; c != "" {
		add("     of container %s", c)
	}
	add("     message: %s", a.found.Message)
	for _, line := range a.found.Evidence {
		add("     evidence: %s", line)
	}
	if a.found.Rule != "" {
		add("     rule: %s", a.found.Rule)
	}
	due := "unknown"
	if !a.found.Due.IsZero() {
		due = clock(a.found.Due.UnixNano())
	}
	add("     next: %s (due %s, since %s)", a.found.Next, due, clock(a.found.Since.UnixNano()))
	add("truth: it was served again %s; after the round that was due: %v", map[bool]string{true: "never", false: clock(a.served.UnixNano())}[a.served.IsZero()], a.atDue)
	for _, step := range p.stepsOf(a.of.node) {
		add("     the clock of the node is %v ahead from %s", time.Duration(step.shift), clock(step.from))
	}
	for _, l := range p.lives[nameOf(a.life)] {
		add("     run %.6s (pod %.6s) from %s to %s, started %s; present: %v", l.ID, l.Container.Pod.UID(), clock(l.From), clock(l.Until), clock(l.Started), l.Present(a.now.UnixNano()))
	}
	if pod := a.facts.Pod(metric.PodRef{Namespace: metric.Namespace(a.life.Container.Pod.Namespace), Name: metric.PodName(a.life.Container.Pod.Name)}); pod != nil {
		add("     API server: pod %.6s %s, started %s", pod.UID, pod.Phase, clock(pod.Started.UnixNano()))
		if c := pod.Container(a.life.Container.Name); c != nil {
			add("     API server: container state %d, %.6s, started %s, last %.6s ended %s", c.State, c.ID, clock(c.StartedAt.UnixNano()), c.LastID(), clock(c.EndedAt().UnixNano()))
		}
	} else if a.facts != nil {
		add("     API server: no such pod")
	}
	for _, d := range a.heard[max(0, len(a.heard)-5):] {
		line := "missed"
		if d.ok {
			line = "written " + clock(d.made)
		}
		for i := range d.reports {
			if r := &d.reports[i]; nameOf(r.Life) == nameOf(a.life) {
				line += fmt.Sprintf("; %.6s %.3fs of %s, start %s", r.Life.ID, float64(r.CPU)/1e9, clock(r.Stamp), clock(r.Start))
				if r.Unread {
					line += " UNREAD"
				}
				if r.Second || r.Other {
					line += " OTHER PATH"
				}
			}
		}
		add("     round %s: %s", clock(d.now), line)
	}
	add("     %s;%s", p.schedule, p.reasons(a.of, metric.PodRef{Namespace: metric.Namespace(a.life.Container.Pod.Namespace), Name: metric.PodName(a.life.Container.Pod.Name)}))
	return text.String()
}

// TestAbsences writes random absences beside the truth.
func TestAbsences(t *testing.T) {
	if *absences == 0 {
		t.Skip("-absences writes random absences")
	}
	r := rand.New(rand.NewPCG(firstSeed(), 8))
	for n := 0; n < *absences; {
		s, err := newSchedule(r.Uint64() >> 12)
		if i := r.IntN(len(causes) + 4); i < len(causes) {
			s, err = newCauseSchedule(&causes[i], r.Uint64()>>12)
		}
		p := newPlay(t, s, err)
		p.run()
		if a := p.pickAbsence(r); a != nil {
			n++
			fmt.Println(n, a)
		}
	}
}

// pickAbsence returns a random absence of a random reason; nil if there is none. It takes only
// those of a node that has been read twice: until then, they are alike.
func (p *play) pickAbsence(r *rand.Rand) *absence {
	of := map[string][]*absence{}
	for _, a := range p.absences {
		if len(a.heard) > 1 {
			of[a.found.Reason] = append(of[a.found.Reason], a)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return pick(r, of[pick(r, slices.Sorted(maps.Keys(of)))])
}

// contradiction returns why an explanation is untrue, by what really happened; empty if nothing
// contradicts it.
func (a *absence) contradiction() string {
	reason, _ := metric.ParseReason(a.found.Reason)
	last := delivery{}
	for _, d := range a.heard {
		if d.ok {
			last = d
		}
	}
	var lines []*simulator.ReportedSample // of the container, in the last answer
	for i := range last.reports {
		if r := &last.reports[i]; nameOf(r.Life) == a.container() {
			lines = append(lines, r)
		}
	}
	has := func(is func(r *simulator.ReportedSample) bool) bool { return slices.ContainsFunc(lines, is) }
	present := func(r *simulator.ReportedSample) bool { return r.Life.Present(a.now.UnixNano()) && !r.Other }
	switch {
	case strings.Contains(a.found.Message, "only by the path"):
	case strings.Contains(a.found.Message, "after its node was last read"):
		return a.contradictStart()
	case reason == metric.OlderStart:
		if !has(func(r *simulator.ReportedSample) bool { return !present(r) && a.sees(r) }) {
			return "what was seen is not of an older instance"
		}
	case reason.IsRejection():
		if has(present) {
			return "the present run was reported"
		}
	case reason == metric.NoData:
		if !has(func(r *simulator.ReportedSample) bool { return r.Unread || r.CPU == 0 }) {
			return "no counter was 0"
		}
	case reason == metric.NotReported:
		if len(lines) > 0 {
			return "it was reported"
		}
	case reason == metric.NodeTimeout:
		if a.heard[len(a.heard)-1].ok {
			return "the node answered"
		}
	case reason == metric.ClockStep:
		if steps := a.play.stepsOf(a.of.node); len(steps) == 0 || steps[0].from > a.now.UnixNano() {
			return "no clock stepped"
		}
	case reason == metric.TooYoung:
		return a.contradictAge(lines)
	}
	return ""
}

// container returns the name of the container that the explanation is about.
func (a *absence) container() string {
	if c := a.found.Container; c != "" {
		return a.life.Container.Pod.Namespace + "/" + a.life.Container.Pod.Name + "/" + c
	}
	return nameOf(a.life)
}

// sees reports whether the counter in the evidence is that of r or, if the explanation is about
// the pod, one that includes it.
func (a *absence) sees(r *simulator.ReportedSample) bool {
	for _, line := range a.found.Evidence {
		rest, ok := strings.CutPrefix(line, "seen: CPU counter ")
		text, _, _ := strings.Cut(rest, ",")
		if seen, err := time.ParseDuration(text); ok && err == nil {
			more := seen - time.Duration(r.CPU)
			return more.Abs() <= seen/100_000+time.Millisecond || more > 0 && strings.HasPrefix(a.summary, "Pod ")
		}
	}
	return false
}

// startError is by how much a start may differ that is known to the second, by a clock whose error
// is known to a second.
const startError = 3 * time.Second

// contradictStart checks that something of the pod began after the last read, and when.
func (a *absence) contradictStart() string {
	pod := a.facts.Pod(metric.PodRef{Namespace: metric.Namespace(a.life.Container.Pod.Namespace), Name: metric.PodName(a.life.Container.Pod.Name)})
	for _, lives := range a.play.lives {
		for _, l := range lives {
			if p := l.Container.Pod; p.Namespace != string(pod.Namespace) || p.Name != string(pod.Name) {
				continue
			}
			for _, began := range []int64{l.Started, l.Process} {
				apart := time.Duration(began - a.found.Since.UnixNano()).Abs()
				if apart <= startError && began > a.of.lastReadAt(a)-int64(startError) {
					return ""
				}
			}
		}
	}
	return "nothing started then, after the last read"
}

// lastReadAt returns when the node was last read before an absence.
func (s *source) lastReadAt(a *absence) int64 { return a.heard[len(a.heard)-1].now }

// contradictAge compares how long a container had run with the lines about it.
func (a *absence) contradictAge(lines []*simulator.ReportedSample) string {
	_, rest, ok := strings.Cut(a.found.Message, "it had run for ")
	text, _, _ := strings.Cut(rest, " when it was read")
	if !ok && strings.Contains(a.found.Message, "it started too recently") {
		return "" // in the second in which it was read
	}
	said, err := time.ParseDuration(text)
	if !ok || err != nil {
		return "it does not say for how long it had run"
	}
	for _, r := range lines {
		if (time.Duration(r.Stamp-r.Start) - said).Abs() <= 1100*time.Millisecond {
			return ""
		}
	}
	for _, d := range a.heard { // the last answer may have repeated it, or lacked it
		for i := range d.reports {
			if r := &d.reports[i]; nameOf(r.Life) == a.container() && (time.Duration(r.Stamp-r.Start)-said).Abs() <= 1100*time.Millisecond {
				return ""
			}
		}
	}
	return "it had not run for so long"
}

// isDueUntrue reports whether a number was due in a read that brought none, although nothing went
// wrong up to then: every answer came at once, was just read, and showed the same runs.
func (a *absence) isDueUntrue() bool {
	reason, _ := metric.ParseReason(a.found.Reason)
	switch reason {
	case metric.FirstSample, metric.TooYoung, metric.WarmingUp, metric.CounterReset, metric.Impossible:
	default:
		return false
	}
	p := a.play
	if !a.wasDue || a.atDue || !p.options.Fresh || len(p.sources) > 1 || p.slack > startSlack || p.missed > 0 || p.cut > 0 || p.late > 0 || len(p.changes) > 0 || p.wobble > 0 {
		return false
	}
	last := a.heard[len(a.heard)-1]
	if !slices.ContainsFunc(last.reports, func(r simulator.ReportedSample) bool { return r.Life == a.life }) || a.facts != nil && !p.named(a.life, delivery{facts: a.facts, read: true}) {
		return false // it was not read yet, or the API server is late
	}
	from, to := a.heard[0].now, a.judged.UnixNano()
	for _, f := range p.options.Faults {
		if at := p.options.Start.Add(f.At).UnixNano(); at < to && (f.Kind != simulator.Restart && f.Kind != simulator.Replace || at > a.now.UnixNano()) {
			return false
		}
	}
	for _, l := range p.lives[nameOf(a.life)] {
		if l != a.life && l.From > a.life.From && l.From < to || l.Until > a.now.UnixNano() && l.Until < to {
			return false
		}
	}
	return from < to
}

// Explanations of random absences agree with what really happened.
func TestExplanationsAreTrue(t *testing.T) {
	if *about != "" || *only >= 0 {
		t.Skip("-cause and -seed play schedules alone")
	}
	of, untrue := map[string]int{}, []string(nil)
	schedules, untrueIn := 0, 0
	check := func(p *play) {
		p.run()
		schedules++
		before := len(untrue)
		for _, a := range p.absences {
			if a.found.Reason == "" {
				continue
			}
			of[a.found.Reason]++
			why := a.contradiction()
			if a.isDueUntrue() {
				why = "the number was not there when it was due"
			}
			if why != "" {
				untrue = append(untrue, why+"\n"+a.String())
			}
		}
		if len(untrue) > before {
			untrueIn++
		}
	}
	for i := range *explained {
		s, err := newSchedule(firstSeed() + i)
		if p := newPlay(t, s, err); len(p.sources) == 1 {
			check(p)
		}
		for c := range causes {
			s, err := newCauseSchedule(&causes[c], firstSeed()+i)
			check(newPlay(t, s, err))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(of)) {
		t.Logf("%-20s %5d absences", reason, of[reason])
	}
	few := strings.Join(untrue[:min(len(untrue), *report)], "\n")
	t.Logf("%d of %d schedules from seed %d on have untrue explanations:\n%s", untrueIn, schedules, firstSeed(), few)
	if most := allowed(bar.untrue, schedules); untrueIn > most {
		t.Errorf("%d of %d schedules from seed %d on have untrue explanations: want at most %d (%v in 10,000)\n%s", untrueIn, schedules, firstSeed(), most, bar.untrue, few)
	}
}
