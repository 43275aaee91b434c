package rate

import (
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// clockStepped reports whether the node's clock jumped since the last read: by the time that
// the node reports, else by its readings.
func (ca *Calculator) clockStepped(b *metric.Batch) bool {
	switch {
	case b.NodeTime != 0:
		return ca.node.Follow(b)
	case b.Failed():
		return false // no reading to compare
	}
	ca.node = metric.NodeClock{}
	return ca.readingsStepped(b)
}

// readingsStepped is clockStepped for a node that does not report its time. Every entity with a
// new reading votes, and the majority decides: one container with an absurd time is no step. A
// reading that is older than the last one is a late answer, unless most readings are older.
//
// There is a step if readings and our clock diverge by more than run.OldReading: statistics always
// lag by less. Smaller steps look like statistics that are a little older or younger than usual.
func (ca *Calculator) readingsStepped(b *metric.Batch) bool {
	var stepped, voters, back, late int
	var t track
	for i := range b.Samples {
		sample := &b.Samples[i]
		sr, at := &t.groups[metric.CPU].series, sample.Times[metric.CPU]
		if at == 0 || sample.Received&(1<<metric.CPU) != 0 || sample.Rejected() || ca.tracks.empty(sample.Slot) {
			continue
		}
		ca.tracks.unpack(sample.Slot, &t)
		last := sr.last()
		if sr.n == 0 || at == last.time {
			continue // nothing to compare with, or the same reading again
		}
		voters++
		if ca.diverges(at-last.time, sr) {
			stepped++
		}
		if at < last.time-int64(b.Resolution) {
			back++
			if cpu, ok := sample.Values.Get(metric.CPUUsage); ok && cpu < last.counters[0] {
				late++ // the counter is older as well
			}
		}
	}
	if late*2 > voters {
		return false // the answer was overtaken by a newer one
	}
	return stepped*2 > voters || voters > 1 && back*2 > voters
}

// diverges reports whether a node's clock, which went on by elapsed between the newest reading of a
// series and now, diverged from ours.
func (ca *Calculator) diverges(elapsed int64, sr *series) bool {
	return (time.Duration(elapsed) - (ca.clock - sr.since)).Abs() > run.OldReading
}

// timeIsSure reports whether a reading certainly has its time from the clock as it is set now. A
// reading in the future of its own answer was taken while the clock was set otherwise, even if no
// answer shows the step. Without a step, the first reading of a series is not accepted if it is
// older than run.OldReading, by the time that the node reports.
func (ca *Calculator) timeIsSure(sr *series, at int64, b *metric.Batch) bool {
	first, lately := sr.newest == 0 && sr.doubt == 0, ca.steppedLately()
	doubtful := sr.unsure || first && lately
	if b.NodeTime == 0 {
		return !doubtful || sr.newest == 0 || at < sr.newest || ca.diverges(at-sr.newest, sr)
	}
	age := time.Duration(b.NodeTime - at)
	if run.IsAfterReading(at, b.NodeTime, b.Resolution) || doubtful && !ca.isSinceStep(sr, at, age) {
		return false
	}
	if sr.n > 0 && !lately && age < forgetAfter {
		ca.oldest = max(ca.oldest, age)
	}
	return !first || age <= run.OldReading
}

// age returns how old a reading is by its node's clock as it is set now. It is 0 if that is not known:
// the node does not report its time, its clock stepped lately, or the reading's time is that of its
// arrival.
func (ca *Calculator) age(at int64, received bool, b *metric.Batch) time.Duration {
	if received || b.NodeTime == 0 || ca.steppedLately() {
		return 0
	}
	return max(time.Duration(b.NodeTime-at), 0)
}

// isSinceStep reports whether a reading is certainly from after the last step of the node's
// clock. age is how old it is by the clock as it is set now.
//
// A reading that an earlier answer since the step did not have is from after the step, because
// nodes report the newest reading, unless their readings are always old. The time alone would
// not show that: the clock may have stepped twice between two answers, and nobody knows what it
// showed in between. But answers may overtake each other. So the reading must also have a time
// that the clock could not have shown without the step, or, if the clock was put back, be too
// old for one from before. What comes later than a reading can be old is from after the step.
func (ca *Calculator) isSinceStep(sr *series, at int64, age time.Duration) bool {
	switch {
	case at == sr.newest:
		return false
	case ca.stepped < 0:
		return true
	case !ca.steppedLately():
		return age <= ca.clock-ca.stepped
	case sr.doubt == 0 || ca.oldest > run.OldReading:
		return false
	}
	back := -ca.node.StepSize
	return at > ca.node.LatestBeforeStep || back > 0 && age >= run.OldReading+time.Second-back
}

// steppedLately reports whether a reading from before the last step of the node's clock may
// still be reported.
func (ca *Calculator) steppedLately() bool {
	return ca.stepped >= 0 && ca.clock-ca.stepped <= ca.oldestReading()
}

// oldestReading returns how old a reading may be when it is first reported.
func (ca *Calculator) oldestReading() time.Duration { return max(run.OldReading, ca.oldest) }
