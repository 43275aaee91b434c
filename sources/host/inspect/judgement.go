package inspect

// Judgement is what is thought of a cgroup. The list is closed; README.md says
// what each means and what to do.
type Judgement string

// The judgements. Where several would fit, the one listed first is given.
const (
	// Unknown: nobody who knows was asked, or their answer cannot speak of it.
	Unknown Judgement = "unknown"
	// Orphan: there is no pod of its UID.
	Orphan Judgement = "orphan"
	// Duplicate: another cgroup is the pod's, or the container's.
	Duplicate Judgement = "duplicate"
	// WrongQoS: it is the pod's, but stands in another class than the pod's.
	WrongQoS Judgement = "wrong-qos"
	// OldContainer: its container has ended, or been replaced.
	OldContainer Judgement = "old-container"
	// Empty: it is where it should be, and nothing runs in it.
	Empty Judgement = "empty"
	// Live: it is where it should be, and in use.
	Live Judgement = "live"
)

// Judgements returns all of them in their order.
func Judgements() []Judgement {
	return []Judgement{Unknown, Orphan, Duplicate, WrongQoS, OldContainer, Empty, Live}
}

// Leftover reports whether a cgroup so judged should no longer be there.
func (j Judgement) Leftover() bool { return j == Orphan || j == Duplicate || j == OldContainer }
