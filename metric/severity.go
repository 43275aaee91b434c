package metric

// Severity is how serious an absence is.
type Severity uint8

// The severities, the least serious first.
const (
	// None: the number is there, or there should be none.
	None Severity = iota
	// Temporary: it ends by itself, soon.
	Temporary
	// Broken: it remains until somebody acts.
	Broken
)

// String returns "none", "temporary" or "broken".
func (s Severity) String() string { return [...]string{"none", "temporary", "broken"}[s] }

// Severity returns how serious r is. A sample that identity rejected leaves no gap, so the
// reasons of identity are None. If it was the only sample, package explain reports the gap as
// Temporary.
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
