package metric

import "time"

// NodeClock follows a node's clock through the answers of one source, by the
// time the node says it is. The zero NodeClock knows nothing yet.
type NodeClock struct {
	// MinAhead and MaxAhead bound how far the node's clock is ahead of ours; both are 0
	// while Known is not set.
	MinAhead, MaxAhead time.Duration
	Known              bool
	// LatestBeforeStep is, at a step, the latest that the clock could have shown in that
	// answer without it, in nanoseconds since the Unix epoch.
	LatestBeforeStep int64
	// StepSize is by how much the last step put the clock forward, within a second or
	// so.
	StepSize time.Duration

	epoch time.Time
	at    time.Duration // of the last answer, since epoch
}

// A clock that is being set right without a step may gain or lose a part in
// driftPart, twice what kernels do, and shows a little unevenly.
const (
	driftPart  = 1000
	driftLeast = 20 * time.Millisecond
)

// Follow takes in an answer and reports whether the clock was stepped since the
// last: steps of two seconds and more always show, smaller ones sometimes.
// An answer that does not tell the node's time is passed over.
func (c *NodeClock) Follow(b *Batch) (stepped bool) {
	if b.NodeTime == 0 {
		return false
	}
	if c.epoch.IsZero() {
		c.epoch = b.Began
	}
	// By our clock since the epoch, which nobody sets.
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
