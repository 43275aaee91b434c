package metric

// Severity says how bad it is that a number is missing.
type Severity uint8

// The severities, the least first.
const (
	// None: there is nothing to miss, or the number is there.
	None Severity = iota
	// Temporary: it ends by itself, soon.
	Temporary
	// Broken: it stays until somebody does something.
	Broken
)

// String returns "none", "temporary" or "broken".
func (g Severity) String() string { return [...]string{"none", "temporary", "broken"}[g] }

// Severity returns how bad r is. What identity turned away leaves no gap by
// itself, so that its reasons are None; where such a report was all there was, the
// gap is a Temporary one.
func (r Reason) Severity() Severity {
	switch r {
	case Unjudged, Measured, PodFinished, ContainerFinished, NodeExcluded, NotApplicable, Unsupported,
		OtherNode, OldPod, OldContainer, DeadCgroup, OlderStart, Discontinuous:
		return None
	case PodPending, PodTerminating, ContainerNotStarted, NodeNotScrapedYet, WarmingUp,
		FirstSample, TooYoung, CounterReset, ClockStep, Impossible, NoData, NotReported:
		return Temporary
	default:
		return Broken
	}
}
