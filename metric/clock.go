package metric

import "time"

// NodeClock compares a node's clock with ours, by the time that the node reports in the answers
// of one source. The zero NodeClock knows nothing yet.
type NodeClock struct {
	// MinAhead and MaxAhead are the bounds of how far the node's clock is ahead of ours. Both
	// are 0 while Known is false.
	MinAhead, MaxAhead time.Duration
	Known              bool
	// LatestBeforeStep is set at a step: the latest time that the clock could have shown in
	// that answer without the step, in nanoseconds since the Unix epoch.
	LatestBeforeStep int64
	// StepSize is by how much the last step put the clock forward, to about a second.
	StepSize time.Duration

	epoch time.Time
	at    time.Duration // of the last answer, since epoch
}

// Latest returns the latest time that the node's clock may show at t, in nanoseconds since the
// Unix epoch.
func (c *NodeClock) Latest(t time.Time) int64 { return c.OurTime(t) + int64(c.MaxAhead) }

// OurTime returns a time of our clock with which times of the node's clock can be compared, in
// nanoseconds since the Unix epoch. If our wall clock steps, it does not.
func (c *NodeClock) OurTime(t time.Time) int64 {
	if c.epoch.IsZero() {
		return t.UnixNano()
	}
	return c.epoch.UnixNano() + int64(t.Sub(c.epoch))
}

// A clock that is adjusted without a step may gain or lose one part in driftPart, twice what
// kernels do, and driftLeast for jitter.
const (
	driftPart  = 1000
	driftLeast = 20 * time.Millisecond
)

// Follow updates c with the answer b and reports whether the clock stepped since the last
// answer. Steps of two seconds or more always show, smaller ones sometimes. An answer without
// the node's time changes nothing.
func (c *NodeClock) Follow(b *Batch) (stepped bool) {
	if b.NodeTime == 0 {
		return false
	}
	if c.epoch.IsZero() {
		c.epoch = b.Began
	}
	// By our monotonic clock since the epoch.
	epoch, began, ended := c.epoch.UnixNano(), b.Began.Sub(c.epoch), b.Ended.Sub(c.epoch)
	shown := time.Duration(b.NodeTime - epoch)
	low, high := shown-ended, shown+time.Second-began
	if c.Known {
		loose := (ended-c.at)/driftPart + driftLeast
		wasLow, wasHigh := c.MinAhead-loose, c.MaxAhead+loose
		if stepped = low > wasHigh || high < wasLow; stepped {
			c.LatestBeforeStep = epoch + int64(wasHigh+ended)
			c.StepSize = (low + high - c.MinAhead - c.MaxAhead) / 2
		} else {
			low, high = max(low, wasLow), min(high, wasHigh)
		}
	}
	c.MinAhead, c.MaxAhead, c.Known, c.at = low, high, true, ended
	return stepped
}
