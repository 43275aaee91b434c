package guard

import (
	"time"

	"github.com/weir-metrics/weir/eviction"
)

const (
	// fillRate is more than one processor can fill, in bytes in a second: it clears pages of 2 MiB at
	// up to 12 GB/s, and pages of 4 KiB, one fault each, at 1 to 3 GB/s.
	fillRate = 16 << 30
	// maxProcessors is how many processors can fill memory at that rate at the same time: 1 TiB a second
	// is what the memory of the largest machines of two sockets takes.
	maxProcessors = 64
	// maxPause is the longest pause between two polls.
	maxPause = time.Second
	// maxRest is the longest pause while a threshold could be crossed in it, unless polls took more than
	// maxRestShare then. It bounds the time from a crossing to its poll.
	maxRest = 50 * time.Millisecond
	// minPause is the shortest pause.
	minPause = time.Millisecond
	// hugePage is how much the kernel adds at once. A program that fills 20 MiB in a second grows by
	// this much every 100 ms, and not at all in between.
	hugePage = 2 << 20
	// speedWindow is at least the time over which a speed is measured, beside that between the last two
	// polls: it has some huge pages.
	speedWindow = time.Second
	// restShare is the share of a processor that polls take at rest, hurryShare the share while memory
	// approaches a threshold. The first leaves as much again for the wake-ups. The second matters where
	// a read is slow: if it takes 0.5 ms, a share of 0.02 finds a fill of 20 MiB a second 12 ms after the
	// crossing, this one 3 ms, with 8% more polls (pace_test.go).
	restShare, hurryShare = 0.001, 0.1
	// maxRestShare is the share of a processor that polls take at most at rest. It makes pauses longer
	// than maxRest where a poll takes more than 0.5 ms.
	maxRestShare = 0.01
)

// pace decides when the working sets must be read again:
//
//   - Not before a threshold can be crossed, if all processors filled memory as fast as they can.
//   - While that is soon, as often as restShare allows, which is every 15 to 50 ms, but not more often
//     than maxRestShare allows.
//   - When memory approaches a threshold: after half the time in which it would cross it, because a
//     fill that has just begun is faster than the last polls show. In the last huge page before the
//     threshold, several times in the time of a huge page.
//
// Where a poll takes 0.5 ms or less, a crossing is found within maxRest, however fast memory is filled, and within
// milliseconds when the fill began more than a pause before the crossing.
type pace struct {
	fastest float64       // bytes in a second
	cost    time.Duration // of a poll, which reads all working sets
	read    map[eviction.Signal]workingSetReads
}

// workingSetReads are the last read of a working set and two earlier ones. These are at least
// speedWindow apart, so that one of them is old enough at any later read.
type workingSetReads struct {
	older, newer, last workingSetAt
	cost               time.Duration // of a read
}

type workingSetAt struct {
	at         time.Time
	workingSet int64
}

// until returns how fast the working set has grown from w until now, in bytes in a second; 0 if w
// was not read.
func (w workingSetAt) until(now workingSetAt) float64 {
	elapsed := now.at.Sub(w.at)
	if w.at.IsZero() || elapsed <= 0 {
		return 0
	}
	return float64(now.workingSet-w.workingSet) / elapsed.Seconds()
}

// speeds are how fast a working set has grown: since the last read, and over one to two
// speedWindows.
type speeds struct{ now, lately float64 }

func newPace(processors int) *pace {
	return &pace{fastest: fillRate * float64(min(processors, maxProcessors)), read: map[eviction.Signal]workingSetReads{}}
}

// observe adds a read of a working set. It returns how fast the working set has grown.
func (p *pace) observe(s eviction.Signal, began, ended time.Time, workingSet int64) speeds {
	r, now := p.read[s], workingSetAt{ended, workingSet}
	p.cost -= r.cost
	// A read that took longer waited for a processor, as long as others are short.
	if duration := ended.Sub(began); duration < r.cost || r.last.at.IsZero() {
		r.cost = duration
	} else {
		r.cost += (duration - r.cost) / 128
	}
	p.cost += r.cost
	found := speeds{now: r.last.until(now)}
	if r.last = now; now.at.Sub(r.newer.at) >= speedWindow {
		r.older, r.newer = r.newer, now
	}
	found.lately = r.older.until(now)
	p.read[s] = r
	return found
}

// pause returns the time until the next read. distance is how much the working set must grow to
// reach a threshold; it is negative if the working set must shrink.
func (p *pace) pause(distance int64, grows speeds) time.Duration {
	far, speed := float64(distance), max(grows.now, grows.lately)
	if distance < 0 {
		far, speed = -far, -min(grows.now, grows.lately)
	}
	rest := max(min(time.Duration(float64(p.cost)/restShare), maxRest), time.Duration(float64(p.cost)/maxRestShare))
	pause := max(seconds(far/p.fastest), rest)
	if speed > 0 { // it approaches the threshold
		sooner := max((far-hugePage)/2, min(far, hugePage/16))
		pause = min(pause, max(seconds(sooner/speed), time.Duration(float64(p.cost)/hurryShare)))
	}
	return min(max(pause, minPause), maxPause)
}

// seconds returns a duration of at most maxPause.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, maxPause.Seconds()) * float64(time.Second))
}
