package run

import (
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Likeness is the relation between two instances of one entity.
type Likeness uint8

// The relations. Undecided means that nothing shows whether the instances are the same.
const (
	Undecided Likeness = iota
	Same
	Other   // by a name
	Earlier // the first began before the second
	Later   // the first began after the second
)

// Compare returns the relation of instance a to instance b, as two endpoints report them. Different
// UIDs or container IDs decide, and equal container IDs or inodes. Equal UIDs do not: a pod has many
// runs. Without a decision, starts that are equal to the second are of one instance, and starts that
// are more than Jitter apart are of two.
func Compare(a, b *metric.Instance) Likeness {
	if l := compareNames(a, b); l != Undecided {
		return l
	}
	if !known(a) || !known(b) {
		return Undecided
	}
	switch {
	case Reported(a.Start, a.Origin, Cut).Overlaps(Reported(b.Start, b.Origin, Cut)):
		return Same
	case Apart(a.Start, b.Start) <= int64(Jitter):
		return Undecided
	case a.Start < b.Start:
		return Earlier
	}
	return Later
}

// compareNames compares UID, container ID, inode and path.
func compareNames(a, b *metric.Instance) Likeness {
	switch {
	case a.UID != "" && b.UID != "" && a.UID != b.UID:
		return Other
	case a.ID != "" && b.ID != "" && a.ID != b.ID:
		return Other
	case a.ID != "" && b.ID != "":
		return Same
	case a.Inode != 0 && a.Inode == b.Inode && a.Path == b.Path:
		return Same
	}
	return Undecided
}

// known reports whether the start of i is known better than from a cgroup's modification time.
func known(i *metric.Instance) bool { return i.Start != 0 && i.Origin != metric.StartCgroup }

// IsLater reports whether a start is later than another one that the same endpoint reports. Two
// starts that are cut to the second order strictly.
func IsLater(start, other int64, resolution time.Duration) bool {
	return start > other && (IsCut(start) && IsCut(other) || start-other > 2*int64(Near(resolution)))
}

// AssignmentDistance returns how far two starts count as apart, in nanoseconds, where reports are
// assigned to instances: 0 if one is the other one cut to the second, and UnknownDistance if one is 0,
// which means unknown.
func AssignmentDistance(a, b int64) int64 {
	cut := func(start int64) int64 { return start - start%int64(time.Second) }
	switch {
	case a == 0 || b == 0:
		return int64(UnknownDistance)
	case a == b, cut(a) == b, a == cut(b):
		return 0
	}
	return Apart(a, b)
}

// Apart returns how far two times are apart, in nanoseconds.
func Apart(a, b int64) int64 { return max(a-b, b-a) }

// IsAfterReading reports whether a start lies after a reading of its own counter, by more than times
// are cut. Then the start is not that of the counter: the node's clock was put back since, or the
// start is another cgroup's.
func IsAfterReading(start, read int64, resolution time.Duration) bool {
	return start-read > int64(Cut+resolution)
}
