package aggregate

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// podIndex holds pods and finds them by name. Most rounds do not look any up, for they
// meet the pods of the round before in the same order. The zero podIndex is empty.
type podIndex struct {
	all []*pod
	at  hashIndex[podKey]
}

// podKey tells pods apart; a source of many nodes may meet one twice.
type podKey struct {
	node      metric.NodeName
	namespace metric.Namespace
	name      metric.PodName
}

func podKeyOf(e *metric.Entity) podKey { return podKey{e.Node, e.Namespace, e.Pod} }

func (x *podIndex) key(at int) podKey { return podKeyOf(x.all[at].entity) }

// find returns the pod that e is or is in; nil if there is none.
func (x *podIndex) find(e *metric.Entity) *pod {
	if at, ok := x.at.find(podKeyOf(e), x.key); ok {
		return x.all[at]
	}
	return nil
}

// add adds a pod that is not there.
func (x *podIndex) add(p *pod) {
	x.all = append(x.all, p)
	x.at.set(len(x.all)-1, x.key)
}

// drop removes the pods for which gone is true.
func (x *podIndex) drop(gone func(*pod) bool) {
	n := len(x.all)
	x.all = slices.DeleteFunc(x.all, gone)
	if len(x.all) < n {
		x.at = hashIndex[podKey]{}
		for at := range x.all {
			x.at.set(at, x.key)
		}
	}
}
