package exact

import (
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/test/simulator"
)

// delivery is one answer that reached weir, or a round without one.
type delivery struct {
	now, made       int64 // when it came, and when the node wrote it
	was, is         int64 // how far the node's clock was ahead at the answer before and at this one
	ok              bool
	reports, second []simulator.ReportedSample
	facts           *cluster.Facts
	interval        time.Duration
	cores           int64 // of the node
	read            bool  // nothing was delivered: the served values are read between rounds
}

// observer is what one endpoint's answers have shown so far.
type observer struct {
	endpoint simulator.Endpoint
	slack    time.Duration // by how much start times must differ to say which is later
	answers  int
	trails   map[*simulator.Life]*trail
	mentions map[string]*mention
	begun    int64 // when the first answer came
	stepped  int64 // when an answer last showed a step of the node's clock; 0 if never
	former   int64 // how far the clock was ahead before that step
	appeared map[pair]bool
	together map[pair]int64 // when they were last reported together
}

// pair is two lives of one name. In appeared, the present one is first.
type pair struct{ l, other *simulator.Life }

// trail is what was delivered of one life.
type trail struct {
	readings        []reading
	minStart        int64 // as reported, from lines that show which life the start belongs to; 0 if there was none
	maxStart        int64
	uid             bool // a line of it carried the pod's UID
	dated           bool // a start that is not after its own reading was reported
	firstCPU        int64
	lastCPU         int64
	lastStamp, last int64
	doubt           int64 // when the reading was taken that was delivered first since the clock stepped
	doubted         int64 // the step after which that was
	second          int64 // the start that its second path reported with its first reading, unless that was from before the start
	other           int64 // when the counter of another cgroup was last delivered under its ID
}

type reading struct{ stamp, shift, delivered int64 }

// mention says when a name was last reported.
type mention struct {
	answer int
	last   int64 // when it came
	broken int64 // when it was reported again after it was missing from two answers
	alone  *simulator.Life
	made   int64
}

// observe adds a delivery.
func (e *observer) observe(d delivery) {
	if e.mentions == nil {
		e.mentions, e.appeared, e.together = map[string]*mention{}, map[pair]bool{}, map[pair]int64{}
	}
	if !d.ok {
		return
	}
	if e.answers++; e.answers == 1 {
		e.begun = d.now
	}
	if d.was != d.is {
		e.stepped, e.former = d.now, d.was
	}
	lines := map[string][]*simulator.ReportedSample{}
	for i := range d.reports {
		name := nameOf(d.reports[i].Life)
		lines[name] = append(lines[name], &d.reports[i])
	}
	for name, of := range lines {
		m := e.mentions[name]
		if m == nil {
			m = &mention{answer: e.answers, last: d.now}
			e.mentions[name] = m
		}
		if e.answers-m.answer > 2 {
			m.broken = d.now
		}
		if d.now-m.last > hold(d.interval) {
			e.forget(name)
			m.alone = nil
		}
		m.last = d.now
		e.meet(of, m, d)
		m.answer, m.alone = e.answers, nil
		for _, r := range of {
			e.survive(r, of, d)
		}
		if alone(of) {
			m.alone, m.made = of[0].Life, d.made
		}
		for _, r := range of {
			e.read(r, d)
			if !r.Other && (e.endpoint != simulator.Resource || len(of) == 1) {
				e.start(r)
			}
		}
	}
	for i := range d.second {
		e.start(&d.second[i])
	}
}

// forget drops what distinguished the lives of a name. The name was not
// reported for so long that a new report may be about another life.
func (e *observer) forget(name string) {
	for l, t := range e.trails {
		if nameOf(l) == name {
			t.minStart, t.maxStart, t.uid = 0, 0, false
		}
	}
	for p := range e.appeared {
		if nameOf(p.l) == name {
			delete(e.appeared, p)
		}
	}
}

// meet notes which lives were reported together, and which of them appeared
// while the other was already known.
func (e *observer) meet(of []*simulator.ReportedSample, m *mention, d delivery) {
	mixed := map[pair]bool{}
	for _, x := range of {
		for _, y := range of {
			if e.endpoint == simulator.Resource && x.Life.ID != y.Life.ID && e.mixed(x, y, m, d) {
				mixed[pair{x.Life, y.Life}], mixed[pair{y.Life, x.Life}] = true, true
			}
		}
	}
	for _, x := range of {
		for _, y := range of {
			if x.Life == y.Life || x.Life.ID == y.Life.ID {
				continue
			}
			e.together[pair{x.Life, y.Life}] = d.now
			if mixed[pair{x.Life, y.Life}] {
				e.lose(x.Life)
				e.lose(y.Life)
				continue
			}
			// y must be the life that was reported alone before. Its counter shows that, so
			// its counter must be known. After an answer without either, that would not be
			// certain.
			if e.trails[x.Life] == nil && m.alone == y.Life && m.made < x.Life.From && e.followed(y.Life) && m.answer+1 == e.answers {
				e.appeared[pair{x.Life, y.Life}] = true
			}
		}
	}
}

// survive handles a life that is reported without another one that was reported beside it in the
// answer before, by an endpoint that names neither. It drops what is known of both if the counter
// could also be the continuation of the other's. Lives that are still beside it change nothing: of
// three lives at 52781.2 s, 23.2 s and 19.2 s, the counter 31.9 s of the next answer 15 s later
// may be of the second or the third.
func (e *observer) survive(x *simulator.ReportedSample, of []*simulator.ReportedSample, d delivery) {
	t := e.trails[x.Life]
	if e.endpoint != simulator.Resource || t == nil || len(d.second) > 0 || x.Unread {
		return
	}
	for y, o := range e.trails {
		reported := slices.ContainsFunc(of, func(r *simulator.ReportedSample) bool { return r.Life == y })
		if reported || nameOf(y) != nameOf(x.Life) || o.last != t.last || o.lastCPU > x.CPU {
			continue
		}
		if x.CPU-max(t.lastCPU, o.lastCPU) <= d.cores*(d.now-t.last+int64(20*time.Second)) {
			e.lose(x.Life)
			e.lose(y)
		}
	}
}

// followed reports whether a reading of the life's counter was delivered.
func (e *observer) followed(l *simulator.Life) bool {
	t := e.trails[l]
	return t != nil && len(t.readings) > 0
}

// mixed reports whether x, whose counter is known, and y could be confused at
// an endpoint that names neither: each counter could also be the continuation
// of the other's.
func (e *observer) mixed(x, y *simulator.ReportedSample, m *mention, d delivery) bool {
	t, o := e.trails[x.Life], e.trails[y.Life]
	if t == nil || len(t.readings) == 0 || len(d.second) > 0 || x.Unread || y.Unread {
		return false
	}
	mostUsed := d.cores * (d.now - m.last + int64(20*time.Second))
	may := func(from, to int64) bool { return to >= from && to-from <= mostUsed }
	if o == nil || len(o.readings) == 0 { // y is new
		return may(t.lastCPU, y.CPU) && may(0, x.CPU)
	}
	return may(t.lastCPU, y.CPU) && may(o.lastCPU, x.CPU)
}

// lose drops what is known of a life because its line was followed.
func (e *observer) lose(l *simulator.Life) {
	if t := e.trails[l]; t != nil {
		*t = trail{last: t.last, lastCPU: t.lastCPU, firstCPU: t.firstCPU, other: t.other}
	}
	for p := range e.appeared {
		if p.l == l || p.other == l {
			delete(e.appeared, p)
		}
	}
}

func alone(of []*simulator.ReportedSample) bool {
	for _, r := range of {
		if r.Life != of[0].Life {
			return false
		}
	}
	return true
}

func (e *observer) trail(l *simulator.Life) *trail {
	t := e.trails[l]
	if t == nil {
		t = &trail{}
		e.trails[l] = t
	}
	return t
}

// read adds the counter of a line.
func (e *observer) read(r *simulator.ReportedSample, d delivery) {
	t := e.trail(r.Life)
	t.last = d.now
	if r.Other {
		t.other = d.now
		return
	}
	if r.Unread || r.CPU == 0 {
		return
	}
	if r.Second && len(t.readings) == 0 {
		t.second = r.Start
	}
	if r.Stamp < t.second {
		t.second = 0
	}
	if e.looksRestarted(t, r, d) {
		t.readings = nil
	}
	stamp := r.Stamp / int64(e.cut()) * int64(e.cut())
	shift := r.Stamp - r.At
	if n := len(t.readings); n > 0 && t.readings[n-1].shift == shift && stamp <= t.readings[n-1].stamp {
		return // a repeated line, or a late one
	}
	if e.mayPrecedeStep(t, r, d) {
		return
	}
	if len(t.readings) == 0 {
		t.firstCPU = r.CPU
	}
	t.lastCPU, t.lastStamp = r.CPU, stamp
	t.readings = append(t.readings, reading{stamp, shift, d.now})
}

// looksRestarted reports whether a run that began after the last reading of the
// life could have the same line, because it has the start of a second path, and
// nothing names the run.
//
// In seed 82616 a run has used 9.346 s at 5m18.447s. The next answer says 17.066 s
// at 5m29.216s, and the second path's start of 5m21.586s. A run that began then and
// used 2.2 of 4 cores would be reported with the same bytes.
func (e *observer) looksRestarted(t *trail, r *simulator.ReportedSample, d delivery) bool {
	return r.Second && d.facts == nil && e.endpoint != simulator.CAdvisor && t.lastStamp != 0 &&
		r.Start > t.lastStamp && r.Start < r.Stamp && r.CPU <= d.cores*(r.Stamp-r.Start)
}

// oldestReading is how old a reading may be when it is delivered: 15 s until
// the node reads the cgroup again, and 20 s if the answer is late.
const oldestReading = 35 * time.Second

// mayPrecedeStep reports whether the time of a reading may be of another clock
// than the node's present one.
//
// The clock may have been set before the first answer, and nothing shows how. A
// reading that is more than oldestReading old in the first answer may thus have
// any age.
//
// A reading may also be from before the answer at B that last showed a step.
// Nobody can know which clock it has its time from then. If the answer before
// that, at A, shows no step and the one at B shows one of 22 s, the clock may
// have been put ahead by 16 s at some time between them and by 6 s later, or by
// 100 s and back by 78 s. A reading from between A and B can thus have any time.
// Its delivery shows that a reading is from after B if it comes more than
// oldestReading after B. It also shows that if an earlier answer of B or later
// has another reading of that counter, as nodes report the newest one. But an
// answer may be made 20 s before it is dated: then a second reading may be from
// before B, too, unless the clock could not have shown its time without the step.
// A step back by 2 s leaves that open for each reading that is up to 33 s old by
// the present clock, because it may be 35 s old by the former one.
func (e *observer) mayPrecedeStep(t *trail, r *simulator.ReportedSample, d delivery) bool {
	if r.At < e.begun && d.now+d.is-r.Stamp > int64(oldestReading) {
		return true
	}
	if e.stepped == 0 || d.now-e.stepped > int64(oldestReading) {
		return false
	}
	if t.doubted != e.stepped {
		t.doubt, t.doubted = r.At, e.stepped
	}
	return r.At == t.doubt || d.now-int64(oldestReading) <= r.Stamp-e.former && r.Stamp-e.former <= e.stepped
}

// start adds the start time of a line, and whether the line names its pod.
func (e *observer) start(r *simulator.ReportedSample) {
	t := e.trail(r.Life)
	if t.minStart == 0 || r.Start < t.minStart {
		t.minStart = r.Start
	}
	t.maxStart = max(t.maxStart, r.Start)
	t.dated = t.dated || r.Start <= r.Stamp
	t.uid = t.uid || e.endpoint != simulator.Resource
}

// cut is the resolution of the endpoint's timestamps.
func (e *observer) cut() time.Duration {
	if e.endpoint == simulator.Summary {
		return time.Second
	}
	return time.Millisecond
}
