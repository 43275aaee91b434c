package rate

import (
	"math"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// fromStart measures the CPU of a young instance from its start, when its
// counter was 0.
func (s *Calculator) fromStart(t *track, pod *cluster.Pod, sample *metric.Sample, e *entry, b *metric.Batch) metric.Reason {
	i := &sample.Instance
	if i.Start == 0 || math.IsNaN(e.counters[0]) || sample.Entity.Kind != metric.Container || sample.Entity.Part != "" {
		return metric.FirstSample
	}
	if i.Origin != metric.StartRuntime && i.Origin != metric.StartReported {
		return metric.FirstSample
	}
	life := time.Duration(e.time - i.Start)
	switch {
	case life < 0 || life > max(2*b.Interval, time.Minute):
		return metric.FirstSample
	case s.steppedSince(i.Start, b):
		return metric.ClockStep
	case life < s.leastLife(i, b):
		return metric.TooYoung
	case i.Origin != metric.StartRuntime && !t.steady && !s.confirmed(pod, sample, b):
		// Starts that are merely reported wander. This one is believed when it has
		// been the same twice, or the API server says the same.
		return metric.FirstSample
	}
	start := series{n: 1}
	start.entries[0].time = i.Start
	return s.pair(metric.CPU, sample, &start.entries[0], e, b, &start)
}

// leastLife returns how long an instance must have lived to be measured from its
// start.
func (s *Calculator) leastLife(i *metric.Instance, b *metric.Batch) time.Duration {
	if i.Start%int64(time.Second) == 0 {
		// Cut to a whole second, as /metrics/cadvisor does though its samples'
		// times are finer.
		return coarseWindows * s.options.MinWindow
	}
	return s.shortest(b)
}

// steppedSince reports whether a start may be from before the node's clock was
// stepped: by the clock as it was, then, while the readings are by another. After a step
// back the clock shows times that it has shown before, so that nothing tells.
func (s *Calculator) steppedSince(start int64, b *metric.Batch) bool {
	if s.stepped < 0 || s.clock-s.stepped > forgetAfter {
		return false
	}
	return b.NodeTime == 0 || start <= s.node.LatestBeforeStep
}

// steady reports whether a start is the one that was reported before, near
// enough for a rate measured from it.
func steady(was, is *metric.Instance, sample *metric.Sample) bool {
	moved := was.Start - is.Start
	life := sample.Times[metric.CPU] - is.Start
	return was.Start != 0 && is.Start != 0 && max(moved, -moved) <= life/1000
}

// confirmed reports whether the API server says that the container's present run
// began when sample's start says it did. It knows that to the second only, so the
// start is believed to the millisecond as long as this node's starts, of which
// there was an answer before, stand still; and if nobody else claims to be the
// container.
func (s *Calculator) confirmed(pod *cluster.Pod, sample *metric.Sample, b *metric.Batch) bool {
	if s.answers < 2 || s.startsMove(b) || sample.Reasons[metric.CPU] == metric.Ambiguous {
		return false
	}
	f := pod.Container(sample.Entity.Name)
	return f != nil && f.State == cluster.StateRunning && f.StartedAt.Sub(sample.Instance.StartTime()).Abs() <= time.Second+b.Resolution
}

// startsMove reports whether starts were lately seen to wander: before, or in the
// batch in hand.
func (s *Calculator) startsMove(b *metric.Batch) bool {
	if s.scanned != s.round {
		s.scanned = s.round
		var t track
		for i := range b.Samples {
			sample := &b.Samples[i]
			if slot := sample.Slot; !s.reported[slot] && !s.tracks.empty(slot) && !sample.Rejected() {
				s.tracks.unpack(slot, &t)
				s.recordStartMove(&t, sample) // of those yet to come
			}
		}
	}
	return s.startMoved >= 0 && s.clock-s.startMoved < forgetAfter
}

// recordStartMove notes if the start of what t follows is not what it was.
func (s *Calculator) recordStartMove(t *track, sample *metric.Sample) {
	was, is := &t.instance, &sample.Instance
	if was.Start == is.Start || was.Start == 0 || is.Start == 0 || is.Origin != metric.StartReported || was.Line != is.Line || was.ID != is.ID {
		return
	}
	before, _ := t.last.get(metric.CPUUsage)
	if cpu, ok := sample.Values.Get(metric.CPUUsage); !ok || cpu < before {
		return // it began again
	}
	if moved := was.Start - is.Start; max(moved, -moved) > int64(s.options.MinWindow/1000) {
		s.startMoved = s.clock
	}
}
