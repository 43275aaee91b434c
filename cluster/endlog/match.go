package endlog

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// sameTime is how far apart two kills may be that fit an end equally well: scans are a second apart, and statuses are
// cut to the second.
const sameTime = 2 * time.Second

// match is an end with a kill that can have caused it.
type match struct {
	end      key
	kill     *Kill
	namesRun bool          // the kill is known to be that of the run
	distance time.Duration // in time; 0 if namesRun
}

// matchKills finds the kills of all ends in some pods, whichever of them was known first. l is locked.
func (l *Log) matchKills(pods map[metric.PodUID]bool) {
	kills := map[metric.PodUID][]*Kill{}
	for k, kill := range l.kills {
		if pods[k.uid] {
			kills[k.uid] = append(kills[k.uid], kill)
		}
	}
	if len(kills) == 0 {
		return
	}
	all, ends := l.possibleMatches(kills)
	chosen, lastEnd := assign(all)
	doubted := doubtful(all, chosen, lastEnd)
	for _, k := range ends {
		e := *l.ends[k] // readers may have the old one
		var known *Kill
		if e.Kill != nil {
			known = l.kills[e.Kill.origin]
		}
		m, found := chosen[k]
		switch {
		case e.GoesOn():
			_, endedRun := lastEnd[known]
			e.retracted = endedRun && known.At.Sub(known.After) <= Cleanup // else there are earlier ones
		case found:
			e.Kill = m.kill.asEnd(doubted[k])
		case known != nil: // it is that of another end
			e.Kill = nil
		}
		l.ends[k] = &e
	}
}

// possibleMatches returns which of the kills can have caused which ends, and all ends in their pods. l is locked.
func (l *Log) possibleMatches(kills map[metric.PodUID][]*Kill) (all []match, ends []key) {
	for k, e := range l.ends {
		if len(kills[k.uid]) > 0 {
			ends = append(ends, k)
		}
		for _, kill := range kills[k.uid] {
			if e.GoesOn() || !kill.mayHaveEnded(e) {
				continue
			}
			m := match{end: k, kill: kill, namesRun: kill.namesRun(e)}
			if !m.namesRun {
				m.distance = e.At.Sub(kill.At).Abs()
			}
			all = append(all, m)
		}
	}
	return all, ends
}

// assign gives each end one kill: the kill that names its run, else the nearest in time. A kill ends at most as many
// runs as it has processes. lastEnd has the last end that a kill was given to.
func assign(all []match) (chosen map[key]match, lastEnd map[*Kill]key) {
	slices.SortFunc(all, func(a, b match) int {
		switch {
		case a.namesRun && !b.namesRun:
			return -1
		case b.namesRun && !a.namesRun:
			return 1
		}
		return cmp.Or(cmp.Compare(a.distance, b.distance), a.kill.At.Compare(b.kill.At), cmp.Compare(a.end.container, b.end.container), cmp.Compare(a.end.started, b.end.started))
	})
	chosen, lastEnd = map[key]match{}, map[*Kill]key{}
	runs := map[*Kill]uint64{}
	for _, m := range all {
		if _, known := chosen[m.end]; !known && runs[m.kill] < max(1, m.kill.Processes) {
			chosen[m.end], lastEnd[m.kill] = m, m.end
			runs[m.kill]++
		}
	}
	return chosen, lastEnd
}

// doubtful returns the ends whose kill is in doubt. A kill with another limit fits the end equally well, or the kill fits
// another end equally well that got no kill.
func doubtful(all []match, chosen map[key]match, lastEnd map[*Kill]key) map[key]bool {
	doubted := map[key]bool{}
	for _, m := range all {
		end := m.end
		best, found := chosen[end]
		switch {
		case !found:
			end = lastEnd[m.kill]
			best = chosen[end]
		case best.kill.Limit == m.kill.Limit && best.kill.Slice == m.kill.Slice:
			continue
		}
		doubted[end] = doubted[end] || !best.namesRun && (m.distance-best.distance).Abs() <= sameTime
	}
	return doubted
}

// asEnd returns k as the kill that ended a run. If it is that of a child, the run had seemed to go on: see Late.
func (k *Kill) asEnd(doubted bool) *Kill {
	end := *k
	if doubted {
		end.Doubt = cmp.Or(end.Doubt, Several)
	}
	if end.Scope == Child {
		end.Scope, end.Doubt = InContainer, Late
		end.SetLimit(end.Limit, end.Slice)
	}
	return &end
}
