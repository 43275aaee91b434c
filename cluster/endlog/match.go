package endlog

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// alike is how far apart two kills may be that fit an end as well: scans are a second apart, and statuses cut to one.
const alike = 2 * time.Second

const sure = time.Duration(-1) // comes before all others

// match is an end with a kill that can have caused it.
type match struct {
	end  key
	kill *Kill
	away time.Duration // in time; sure if the kill is known to be that of the run
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
	var all []match
	var ends []key
	for k, e := range l.ends {
		if len(kills[k.uid]) > 0 {
			ends = append(ends, k)
		}
		for _, kill := range kills[k.uid] {
			switch {
			case e.GoesOn() || !kill.mayHaveEnded(e):
			case kill.namesRun(e):
				all = append(all, match{k, kill, sure})
			default:
				all = append(all, match{k, kill, e.At.Sub(kill.At).Abs()})
			}
		}
	}
	found, ended := choose(all)
	for _, k := range ends {
		e := *l.ends[k] // readers may have the old one
		var known *Kill
		if e.Kill != nil {
			known = l.kills[e.Kill.origin]
		}
		switch {
		case e.GoesOn():
			e.retracted = ended[known] && known.At.Sub(known.After) <= Cleanup // else there are earlier ones
		case found[k] != nil:
			e.Kill = found[k]
		case known != nil: // it is that of another end
			e.Kill = nil
		}
		l.ends[k] = &e
	}
}

// choose gives each end one kill: the kill that names its run, else the nearest in time. A kill ends at most as many
// runs as it has processes. ended has the kills that ended a run.
func choose(all []match) (found map[key]*Kill, ended map[*Kill]bool) {
	slices.SortFunc(all, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.away, b.away), a.kill.At.Compare(b.kill.At), cmp.Compare(a.end.container, b.end.container), cmp.Compare(a.end.started, b.end.started))
	})
	found, ended = map[key]*Kill{}, map[*Kill]bool{}
	chosen, runs, last := map[key]match{}, map[*Kill]uint64{}, map[*Kill]key{}
	for _, m := range all {
		if _, known := chosen[m.end]; !known && runs[m.kill] < max(1, m.kill.Processes) {
			chosen[m.end], last[m.kill], ended[m.kill] = m, m.end, true
			runs[m.kill]++
		}
	}
	doubted := map[key]bool{}
	for _, m := range all {
		best, known := chosen[m.end]
		switch {
		case !known: // the kill may be that of this end
			m.end = last[m.kill]
			best = chosen[m.end]
		case best.kill.Limit == m.kill.Limit && best.kill.Slice == m.kill.Slice:
			continue
		}
		doubted[m.end] = doubted[m.end] || best.away != sure && (m.away-best.away).Abs() <= alike
	}
	for end, m := range chosen {
		k := *m.kill
		if doubted[end] {
			k.Doubt = cmp.Or(k.Doubt, Several)
		}
		if k.Scope == Child {
			k.Scope, k.Doubt = cmp.Or(k.Limit, InContainer), Late
		}
		found[end] = &k
	}
	return found, ended
}
