package eviction

import "slices"

// Layout is what a node says of its disks.
type Layout struct {
	// DedicatedImageFs says that images have a file system of their own, and
	// DedicatedContainerFs that containers are not on that one but with nodefs
	// ("split"). The latter alone is no real configuration: it stands for one
	// file system, except that nothing is derived for containerfs.
	DedicatedImageFs, DedicatedContainerFs bool
}

func (l Layout) split() bool { return l.DedicatedImageFs && l.DedicatedContainerFs }

func (l Layout) separate() bool { return l.DedicatedImageFs && !l.DedicatedContainerFs }

// withContainerFs returns the thresholds with those of containerfs, which are never what
// is configured but those of the file system that containers are on: from added on, those
// that nothing was configured for.
func withContainerFs(thresholds []Threshold, l Layout) (list []Threshold, added int) {
	list = slices.Clone(thresholds)
	bytes, inodes := NodeFsAvailable, NodeFsInodesFree
	switch {
	case l.separate():
		bytes, inodes = ImageFsAvailable, ImageFsInodesFree
	case l.DedicatedContainerFs && !l.DedicatedImageFs:
		return list, len(list)
	}
	added = len(list)
	var void []int
	for _, p := range [...]struct{ to, from Signal }{{ContainerFsAvailable, bytes}, {ContainerFsInodesFree, inodes}} {
		for _, hard := range [...]bool{true, false} {
			from, to := last(thresholds, p.from, hard), last(thresholds, p.to, hard)
			var t Threshold
			if from >= 0 {
				t = thresholds[from]
				t.Signal = p.to
			}
			switch {
			case to >= 0 && from >= 0:
				list[to] = t
			case to >= 0:
				void = append(void, to)
			case from >= 0:
				list = append(list, t)
			}
		}
	}
	slices.Sort(void)
	for _, i := range slices.Backward(void) {
		list = slices.Delete(list, i, i+1)
	}
	return list, added - len(void)
}

// last is the index of a signal's last threshold of a kind, -1 if there is none.
func last(list []Threshold, s Signal, hard bool) int {
	for i, t := range slices.Backward(list) {
		if t.Signal == s && t.Hard() == hard {
			return i
		}
	}
	return -1
}
