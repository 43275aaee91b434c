package guard

import (
	"math"
	"time"

	"github.com/weir-metrics/weir/eviction"
)

const (
	// fillRate is more than one processor can fill, in bytes in a second: it clears pages of 2 MiB at
	// up to 12 GB/s, and pages of 4 KiB, one fault each, at 1 to 3 GB/s.
	fillRate = 16 << 30
	// maxPause is the longest pause between two polls.
	maxPause = time.Second
	// maxRest is the longest pause while a threshold could be crossed in it. It bounds the time from a
	// crossing to its poll.
	maxRest = 100 * time.Millisecond
	// minPause is the shortest pause.
	minPause = time.Millisecond
	// restShare is the share of a processor that polls take at rest, hurryShare the share while memory
	// approaches a threshold. The first leaves as much again for the wake-ups.
	restShare, hurryShare = 0.001, 0.02
)

// pace decides when the working sets must be read again:
//
//   - Not before a threshold can be crossed, if all processors filled memory as fast as they can.
//   - While that is soon, as often as restShare allows, which is every 20 to 40 ms.
//   - When memory approaches a threshold and would cross it earlier: at that time.
//
// A crossing is therefore found within maxRest, however fast memory is filled, and within
// milliseconds when the fill began more than a pause before the crossing.
type pace struct {
	fastest float64       // bytes in a second
	cost    time.Duration // of a read
	last    map[eviction.Signal]workingSetAt
}

type workingSetAt struct {
	at         time.Time
	workingSet int64
}

func newPace(processors int) *pace {
	return &pace{fastest: fillRate * float64(processors), last: map[eviction.Signal]workingSetAt{}}
}

// observe adds a read of a working set. It returns how fast the working set has grown since the
// read before, in bytes in a second.
func (p *pace) observe(s eviction.Signal, began, ended time.Time, workingSet int64) (speed float64) {
	last := p.last[s]
	// A read that took longer waited for a processor, as long as others are short.
	if took := ended.Sub(began); took < p.cost || last.at.IsZero() {
		p.cost = took
	} else {
		p.cost += (took - p.cost) / 128
	}
	p.last[s] = workingSetAt{ended, workingSet}
	if elapsed := ended.Sub(last.at); !last.at.IsZero() && elapsed > 0 {
		speed = float64(workingSet-last.workingSet) / elapsed.Seconds()
	}
	return speed
}

// pause returns the time until the next read. distance is how much the working set must grow to
// reach a threshold; it is negative if the working set must shrink.
func (p *pace) pause(distance int64, speed float64) time.Duration {
	soonest := seconds(math.Abs(float64(distance)) / p.fastest)
	rest := min(time.Duration(float64(p.cost)/restShare), maxRest)
	pause := max(soonest, rest)
	if approaches := distance >= 0 && speed > 0 || distance < 0 && speed < 0; approaches {
		pause = min(pause, max(seconds(float64(distance)/speed), time.Duration(float64(p.cost)/hurryShare)))
	}
	return min(max(pause, minPause), maxPause)
}

// seconds returns a duration of at most maxPause.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, maxPause.Seconds()) * float64(time.Second))
}
