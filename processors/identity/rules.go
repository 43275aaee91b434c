package identity

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// The names of the rules in the evidence of a verdict.
const (
	rulePlace       = "place"
	ruleUID         = "uid"
	ruleUnknown     = "unknown"
	ruleContainerID = "container id"
	ruleLife        = "life"
	ruleViews       = "two paths, one container"
	ruleStart       = "start"
	ruleMovement    = "movement"
	ruleAge         = "age"
	ruleContinuity  = "continuity"
)

// pairRules are the rules that choose between two candidates, strongest first. loses reports whether
// x loses to y. action applies what the rule shows of single candidates.
var pairRules = [...]struct {
	rule   string
	reason metric.Reason
	loses  func(s *Identifier, x, y *candidate) bool
	action func(s *Identifier)
}{
	{ruleUID, metric.OldPod, (*Identifier).isOfOtherPod, (*Identifier).rejectOldPods},
	{ruleLife, metric.DeadCgroup, (*Identifier).isDead, nil},
	{ruleViews, metric.Ambiguous, (*Identifier).isSecondPath, (*Identifier).rejectForeignPaths},
	{ruleStart, metric.OldContainer, (*Identifier).startsAfterPresentRun, nil},
	{ruleStart, metric.OlderStart, (*Identifier).wasThereBefore, nil},
	{ruleStart, metric.OldContainer, (*Identifier).startsBeforePresentRun, nil},
	{ruleStart, metric.OlderStart, (*Identifier).startsEarlier, nil},
	{ruleMovement, metric.OlderStart, (*Identifier).rests, (*Identifier).preferMoving},
}

// applyPairRules rejects the candidates that lose to another one. A candidate that loses to several
// is compared with the one that wins against these too.
func (identifier *Identifier) applyPairRules() {
	for r := range pairRules {
		rule := &pairRules[r]
		for i := range identifier.candidates {
			x := &identifier.candidates[i]
			if winner := identifier.winnerOver(x, rule.loses); winner != nil {
				identifier.rejectFor(x, winner, rule.reason, rule.rule)
			}
		}
		if rule.action != nil {
			rule.action(identifier)
		}
	}
}

// winnerOver returns the candidate to which x loses; nil if it loses to none or is rejected.
func (identifier *Identifier) winnerOver(x *candidate, loses func(s *Identifier, x, y *candidate) bool) (winner *candidate) {
	for j := range identifier.candidates {
		y := &identifier.candidates[j]
		if x != y && !x.rejected && !y.rejected && loses(identifier, x, y) && (winner == nil || loses(identifier, winner, y)) {
			winner = y
		}
	}
	return winner
}

// isOfOtherPod is the rule uid between two candidates: the UID of y is that of the chosen pod.
func (identifier *Identifier) isOfOtherPod(x, y *candidate) bool {
	uid := identifier.chosenPod()
	return uid != "" && identifier.line(y).uid == uid && identifier.line(x).uid != "" && identifier.line(x).uid != uid
}

// isDead is the rule life: the cgroup of x and those below it have no process, those of y have some.
func (identifier *Identifier) isDead(x, y *candidate) bool {
	return identifier.sample(x).Instance.Processes == 0 && identifier.sample(y).Instance.Processes > 0
}

// startsAfterPresentRun is the rule present run: y is the run that the API server names, and it would
// name x by now. So the start of x is by a clock that was put back since. But if x moved since y did,
// the API server may be late for longer.
func (identifier *Identifier) startsAfterPresentRun(x, y *candidate) bool {
	if !y.present || x.present || identifier.start(x)-identifier.start(y) <= int64(run.Jitter) || !identifier.wouldName(identifier.start(x), identifier.line(x).origin) {
		return false
	}
	rests := identifier.stillFor(y)
	return rests <= identifier.stillFor(x) && (rests < stillness || identifier.line(x).id != identifier.t.chosen)
}

// wasThereBefore is the rule start for a y without one: y appeared after x, with no more on its
// counter than the cores allow since the previous answer.
func (identifier *Identifier) wasThereBefore(x, y *candidate) bool {
	return identifier.start(y) == 0 && identifier.line(y).born && identifier.line(x).firstAnswer < identifier.line(y).firstAnswer
}

// startsBeforePresentRun is the rule start for a y without one: x began before the present run that
// the API server names.
func (identifier *Identifier) startsBeforePresentRun(x, y *candidate) bool {
	return identifier.start(y) == 0 && identifier.record.State == run.Running &&
		run.Reported(identifier.start(x), metric.StartReported, run.Jitter).EndsBefore(nanos(identifier.record.Start))
}

// startsEarlier is the rule start: the start of y is later.
func (identifier *Identifier) startsEarlier(x, y *candidate) bool {
	return identifier.start(x) != 0 && identifier.start(y) != 0 && run.IsLater(identifier.start(y), identifier.start(x), identifier.limits.Resolution)
}

// rests is the rule movement: x rests beside y, and their starts are known.
func (identifier *Identifier) rests(x, y *candidate) bool {
	return identifier.restsBeside(x, y) && identifier.start(x) != 0 && identifier.start(y) != 0
}

// restsBeside reports whether in three new readings the counter of x was equal to the last digit while
// that of y moved. The line that won because its counter moved may rest later.
func (identifier *Identifier) restsBeside(x, y *candidate) bool {
	return identifier.line(y).rate > 0 && identifier.stillFor(y) == 0 && identifier.line(x).id != identifier.t.moved && identifier.stillFor(x) >= stillness
}

// preferMoving prefers a line that moves to the chosen one, if that rests. Where a start is unknown,
// movement is no evidence: the line that rests is not rejected. If the chosen one moves and another one
// rests, it has won.
func (identifier *Identifier) preferMoving() {
	t := identifier.t
	for i := range identifier.candidates {
		for j := range identifier.candidates {
			x, y := &identifier.candidates[i], &identifier.candidates[j]
			if !x.rejected && !y.rejected && (identifier.line(x).id == t.chosen || identifier.line(y).id == t.chosen) && identifier.restsBeside(x, y) {
				t.chosen = identifier.line(y).id
				t.moved = t.chosen
				return
			}
		}
	}
}

// stillness is how many new readings that are equal to the last digit show that a counter is at
// rest.
const stillness = 3

// stillFor returns in how many new readings, at most stillness, the counter of c did not move, its
// sample included.
func (identifier *Identifier) stillFor(c *candidate) uint8 {
	l, sample := identifier.line(c), identifier.sample(c)
	switch cpu, ok := sample.Values.Get(metric.CPUUsage); {
	case !ok || cpu == 0 || l.cpu < 0 || cpu < l.cpu:
		return 0
	case reportTime(sample) <= l.time:
		return l.still
	case cpu > l.cpu:
		return 0
	}
	return min(l.still+1, stillness)
}

// putBack is added to starts by a clock that was put back since. So they are before all others,
// and in their order: they are by one clock.
const putBack = -4_000_000_000 * int64(1e9)

// start returns when the candidate's instance began; 0 if that is unknown, or known only from a
// cgroup's modification time.
func (identifier *Identifier) start(c *candidate) int64 {
	l, in := identifier.line(c), &identifier.sample(c).Instance
	start, origin := l.start, l.origin
	if start == 0 {
		start, origin = in.Start, in.Origin
	}
	if start == 0 || origin == metric.StartCgroup {
		return 0
	}
	start += l.shift
	if read := identifier.sample(c).Times[metric.CPU]; read != 0 && start-read > int64(run.OldReading) {
		if l.born && !slices.ContainsFunc(identifier.t.lines, func(o line) bool { return o.firstAnswer > l.firstAnswer }) {
			return read // it appeared last, so it is younger than the others, and only its start is wrong
		}
		return start + putBack // by a clock that was put back since
	}
	return start
}

// markUnread gives CPU and memory the reason NoData where a kubelet wrote 0 for what it could
// not read: a CPU counter of 0, as starting a process takes CPU time, and memory of 0 beside it.
// It reports whether it found any. A source that reports the cgroup's inode read the kernel
// itself: there a 0 is a 0.
func (identifier *Identifier) markUnread() (any bool) {
	for i := range identifier.candidates {
		sample := identifier.sample(&identifier.candidates[i])
		cpu, reported := sample.Values.Get(metric.CPUUsage)
		if k := sample.Entity.Kind; k != metric.Container && k != metric.Pod || sample.Instance.Inode != 0 || !reported || cpu != 0 {
			continue
		}
		sample.Reasons[metric.CPU] = metric.NoData
		if memory, reported := sample.Values.Get(metric.MemoryWorkingSet); reported && memory == 0 {
			sample.Reasons[metric.Memory] = metric.NoData
		}
		any = true
	}
	return any
}

// reportUnread adds the verdicts for samples that markUnread marked and no rule rejected.
func (identifier *Identifier) reportUnread() {
	for i := range identifier.candidates {
		sample, l := identifier.sample(&identifier.candidates[i]), identifier.line(&identifier.candidates[i])
		for _, g := range [...]metric.Group{metric.CPU, metric.Memory} {
			if !sample.Rejected() && sample.Reasons[g] == metric.NoData {
				last := metric.CounterReading{Time: l.time, Value: max(l.cpu, 0), Start: l.start}
				identifier.addVerdict(sample, g, metric.NoData, metric.Evidence{Got: readingOf(sample, l), Other: last})
			}
		}
	}
}

// remains reports whether the line with this number has a candidate that is not rejected.
func (identifier *Identifier) remains(id uint32) bool {
	return slices.ContainsFunc(identifier.candidates, func(c candidate) bool { return !c.rejected && identifier.line(&c).id == id })
}

// remaining counts the candidates that are not rejected.
func (identifier *Identifier) remaining() (n int) {
	for i := range identifier.candidates {
		if !identifier.candidates[i].rejected {
			n++
		}
	}
	return n
}

// rejectFor rejects c in favour of kept.
func (identifier *Identifier) rejectFor(c, kept *candidate, reason metric.Reason, rule string) {
	l, winner := identifier.line(c), identifier.line(kept)
	l.lostTo = winner.id
	if rule == ruleMovement && !identifier.remains(identifier.t.moved) {
		identifier.t.moved = winner.id
	}
	if reason == metric.OlderStart && l.uid != "" && winner.uid != "" && l.uid != winner.uid {
		identifier.rememberOldPod(c.sample, l.uid, winner.uid)
	}
	identifier.reject(c, reason, metric.Evidence{Rule: rule, Other: readingOf(identifier.sample(kept), winner)})
}

// reject rejects a candidate and adds its verdicts for CPU and memory.
func (identifier *Identifier) reject(c *candidate, reason metric.Reason, evidence metric.Evidence) {
	sample, l := identifier.sample(c), identifier.line(c)
	c.rejected = true
	sample.Reject(reason)
	l.lost, l.rule = reason, evidence.Rule
	evidence.Got = readingOf(sample, l)
	for _, g := range [...]metric.Group{metric.CPU, metric.Memory} {
		identifier.addVerdict(sample, g, reason, evidence)
	}
}

func (identifier *Identifier) addVerdict(sample *metric.Sample, g metric.Group, reason metric.Reason, evidence metric.Evidence) {
	identifier.batch.Verdicts = append(identifier.batch.Verdicts, metric.Verdict{Entity: sample.Entity, Instance: sample.Instance, Group: g, Reason: reason, Evidence: evidence})
}

// readingOf returns what is known of a sample's instance, as evidence of a verdict.
func readingOf(sample *metric.Sample, l *line) metric.CounterReading {
	cpu, _ := sample.Values.Get(metric.CPUUsage)
	return metric.CounterReading{Time: reportTime(sample), Start: l.start, Value: cpu, UID: l.uid, ID: l.container, Path: l.path}
}
