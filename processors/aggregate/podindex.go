package aggregate

import (
	"hash/maphash"
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// podIndex holds pods and finds them by name. It is, as verdictIndex, a hash table with open
// addressing that holds nothing but places: each source has one, and most rounds need none of
// it, for they meet the pods of the round before in the same order. The zero podIndex is empty.
type podIndex struct {
	seed  maphash.Seed
	all   []*pod
	slots []int32 // places in all and 1; 0 for none. At most half are in use
}

// podKey tells pods apart; a source of many nodes may meet one twice.
type podKey struct {
	node      metric.NodeName
	namespace metric.Namespace
	name      metric.PodName
}

// slot returns the slot of the pod that e is or is in, or the free one it would have.
func (x *podIndex) slot(e *metric.Entity) int {
	mask := len(x.slots) - 1
	for i := int(maphash.Comparable(x.seed, podKey{e.Node, e.Namespace, e.Pod})) & mask; ; i = (i + 1) & mask {
		if at := x.slots[i] - 1; at < 0 || x.all[at].is(e) {
			return i
		}
	}
}

// find returns the pod that e is or is in; nil if there is none.
func (x *podIndex) find(e *metric.Entity) *pod {
	if len(x.all) == 0 {
		return nil
	}
	at := x.slots[x.slot(e)] - 1
	if at < 0 {
		return nil
	}
	return x.all[at]
}

// add adds a pod that is not there.
func (x *podIndex) add(p *pod) {
	x.all = append(x.all, p)
	if 2*len(x.all) > len(x.slots) {
		x.arrange()
		return
	}
	x.slots[x.slot(p.entity)] = int32(len(x.all))
}

// drop removes the pods for which gone is true.
func (x *podIndex) drop(gone func(*pod) bool) {
	n := len(x.all)
	x.all = slices.DeleteFunc(x.all, gone)
	if len(x.all) < n {
		x.arrange()
	}
}

// arrange gives each pod its slot.
func (x *podIndex) arrange() {
	size := 16
	for size < 2*len(x.all) {
		size *= 2
	}
	if len(x.slots) == 0 {
		x.seed = maphash.MakeSeed()
	}
	x.slots = make([]int32, size)
	for i, p := range x.all {
		x.slots[x.slot(p.entity)] = int32(i + 1)
	}
}
