package rate

import (
	"math"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// fromStart measures the CPU of a young instance from its start, when its counter was 0. It
// returns Measured, or the reason why that is not possible.
func (ca *Calculator) fromStart(r *reading) metric.Reason {
	e, i, b := &r.sample.Entity, &r.sample.Instance, r.batch
	if i.Start == 0 || math.IsNaN(r.counters[0]) || e.Kind != metric.Container || e.Part != "" {
		return metric.FirstSample
	}
	life := time.Duration(r.time - i.Start)
	switch {
	case life < 0 || life > max(2*b.Interval, time.Minute):
		return metric.FirstSample
	case i.Origin != metric.StartRuntime && i.Origin != metric.StartReported:
		return metric.FirstSample
	case ca.steppedSince(i.Start, b):
		return metric.ClockStep
	case life < ca.leastLife(i, b):
		return metric.TooYoung
	case i.Origin == metric.StartReported && !ca.isCredible(r):
		return metric.FirstSample
	}
	// The first reading of the instance: its counter was 0 at its start, and no stored one is newer.
	first := series{}
	fromZero := *r
	fromZero.series = &first
	return ca.pair(&fromZero, &entry{time: i.Start})
}

// isCredible reports whether a reported start, which may jitter, can be that of the counter: two
// reports gave the same, or the API server confirms it, and its present run did not begin before.
func (ca *Calculator) isCredible(r *reading) bool {
	if startsAfterRun(r.pod, r.sample, r.batch) {
		return false
	}
	return ca.repeated(r.track, &r.sample.Instance, r.batch) || ca.confirmed(r.pod, r.sample, r.batch)
}

// leastLife returns how long an instance must have lived to be measured from its start.
func (ca *Calculator) leastLife(i *metric.Instance, b *metric.Batch) time.Duration {
	if run.IsCut(i.Start) {
		// Sample times may be finer, as in /metrics/cadvisor.
		return ca.options.CoarseWindow
	}
	return ca.shortest(b)
}

// steppedSince reports whether a start may be from before a step of the node's clock. Then the
// start and the readings are by different clocks. A clock that stepped back shows some times
// twice, so a start up to the latest time that it showed counts as from before, unless the step
// was long ago: no container that began before it would be young.
func (ca *Calculator) steppedSince(start int64, b *metric.Batch) bool {
	return ca.stepped >= 0 && ca.clock-ca.stepped <= forgetAfter && (b.NodeTime == 0 || start <= ca.latestShown)
}

// steadyPart is by which part of a window a start that repeats may move. A rate since the
// start is wrong by as much: 0.1%.
const steadyPart = 1000

// steady reports whether a start equals the previous one, to a part of the instance's life.
func steady(last, in *metric.Instance, sample *metric.Sample) bool {
	moved := last.Start - in.Start
	life := sample.Times[metric.CPU] - in.Start
	return last.Start != 0 && in.Start != 0 && max(moved, -moved) <= life/steadyPart
}

// repeated reports whether two reports gave the same start. Starts that move by seconds and are
// cut to seconds are often equal by chance, so a cut start is not used while this node's starts
// move.
func (ca *Calculator) repeated(t *track, i *metric.Instance, b *metric.Batch) bool {
	return t.steady && (!run.IsCut(i.Start) || !ca.startsMove(b))
}

// startsAfterRun reports whether the container's present run by the API server began before sample's
// start. The start is that of a cgroup path that was made later, or of a run that the API server
// does not name yet. If the sample has the ID of another run, it is the latter.
func startsAfterRun(pod *cluster.Pod, sample *metric.Sample, b *metric.Batch) bool {
	f, i := pod.Container(sample.Entity.Name), &sample.Instance
	if f == nil || f.State != cluster.StateRunning || i.ID != "" && f.ID != "" && i.ID != f.ID {
		return false
	}
	return run.Recorded(f.StartedAt).Before(run.Reported(i.Start, i.Origin, b.Resolution))
}

// confirmed reports whether the API server reports that the container's present run began at
// sample's start. The API server knows that to the second only, so a start that is cut to the
// second must be the same, and then it does not matter whether starts move. A finer one is used
// to the millisecond because this node's starts did not move lately, for which at least one
// earlier answer is needed. A container that identity marked Ambiguous is not confirmed.
func (ca *Calculator) confirmed(pod *cluster.Pod, sample *metric.Sample, b *metric.Batch) bool {
	f, start := pod.Container(sample.Entity.Name), sample.Instance.Start
	if ca.answers < 2 || sample.Reasons[metric.CPU] == metric.Ambiguous || !isStartOfRun(f, start, b) {
		return false
	}
	if run.IsCut(start) {
		return f.StartedAt.UnixNano() == start
	}
	return !ca.startsMove(b)
}

// isStartOfRun reports whether a start is that of the container's present run by the API server.
func isStartOfRun(f *cluster.Container, start int64, b *metric.Batch) bool {
	record := f.Record()
	return record.IsPresent("", start, b.Resolution)
}

// startsMove reports whether a reported start moved lately, in earlier batches or in this one.
func (ca *Calculator) startsMove(b *metric.Batch) bool {
	if ca.scanned != ca.round {
		ca.scanned = ca.round
		var t track
		for i := range b.Samples {
			sample := &b.Samples[i]
			if slot := sample.Slot; !ca.reported[slot] && !ca.tracks.empty(slot) && !sample.Rejected() {
				ca.tracks.unpack(slot, &t)
				ca.recordStartMove(&t, sample) // samples that Process has not reached yet
			}
		}
	}
	return ca.startMoved >= 0 && ca.clock-ca.startMoved < forgetAfter
}

// recordStartMove records that a reported start moved while the instance of t continued.
func (ca *Calculator) recordStartMove(t *track, sample *metric.Sample) {
	last, in := &t.instance, &sample.Instance
	if last.Start == in.Start || last.Start == 0 || in.Start == 0 || in.Origin != metric.StartReported || last.Line != in.Line || last.ID != in.ID {
		return
	}
	before, _ := t.last.get(metric.CPUUsage)
	if cpu, ok := sample.Values.Get(metric.CPUUsage); !ok || cpu < before {
		return // a new instance began
	}
	if moved := last.Start - in.Start; max(moved, -moved) > int64(minWindow/steadyPart) {
		ca.startMoved = ca.clock
	}
}
