package memory

import (
	"cmp"
	"strings"
	"unique"

	"github.com/weir-metrics/weir/metric"
)

// podKey is a pod as directories, the history and homes know it. It is
// immutable and shared by them, so that a pod's names are kept once.
type podKey struct {
	metric.PodRef
	uid metric.PodUID
}

// what is the part of an entity's name that many share: "container app".
type what struct {
	kind metric.Kind
	name string
	part string
}

// inPod reports whether the name of e has a podKey.
func inPod(e *metric.Entity) bool { return ofPod(e.Kind) || e.Pod != "" || e.Namespace != "" }

// name is a metric.Entity without its node, in 16 bytes instead of 112.
type name struct {
	pod  *podKey // nil for what is in no pod
	what unique.Handle[what]
}

func whatOf(e *metric.Entity) unique.Handle[what] {
	return unique.Make(what{e.Kind, e.Name, e.Part})
}

// entity returns the entity of this name on a node.
func (n name) entity(node metric.NodeName) metric.Entity {
	w := n.what.Value()
	e := metric.Entity{Kind: w.kind, Node: node, Name: w.name, Part: w.part}
	if n.pod != nil {
		e.Namespace, e.Pod = n.pod.Namespace, n.pod.Name
	}
	return e
}

// ref returns the pod that n is or belongs to, or the zero PodRef.
func (n name) ref() metric.PodRef {
	if n.pod == nil {
		return metric.PodRef{}
	}
	return n.pod.PodRef
}

// of reports whether n is the name of e, whose node may be left empty.
func (n name) of(e *metric.Entity) bool {
	w := n.what.Value()
	if w.kind != e.Kind || w.name != e.Name || w.part != e.Part {
		return false
	}
	if n.pod == nil {
		return !inPod(e)
	}
	return n.pod.Name == e.Pod && n.pod.Namespace == e.Namespace
}

// compare orders the names of one node's entities as metric.Entity.Compare
// orders the entities.
func (n name) compare(o name) int {
	w, v := n.what.Value(), o.what.Value()
	if w.kind != v.kind {
		return int(w.kind) - int(v.kind)
	}
	if n.pod != o.pod {
		if c := comparePods(n.ref(), o.ref()); c != 0 {
			return c
		}
	}
	if n.what == o.what {
		return 0
	}
	return cmp.Or(strings.Compare(w.name, v.name), strings.Compare(w.part, v.part))
}

// compareTo compares n with the name of e.
func (n name) compareTo(e *metric.Entity) int {
	w := n.what.Value()
	if w.kind != e.Kind {
		return int(w.kind) - int(e.Kind)
	}
	if c := comparePods(n.ref(), e.PodRef()); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(w.name, e.Name), strings.Compare(w.part, e.Part))
}

// sameName compares two entities of one node. Whoever fills a batch may leave
// Node empty in its samples.
func sameName(a, b *metric.Entity) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Pod == b.Pod && a.Name == b.Name && a.Part == b.Part
}

// compareNames orders the entities of one node as metric.Entity.Compare does.
func compareNames(a, b *metric.Entity) int {
	if a.Kind != b.Kind {
		return int(a.Kind) - int(b.Kind)
	}
	if c := comparePods(a.PodRef(), b.PodRef()); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Part, b.Part))
}

func comparePodKeys(a, b *podKey) int {
	if a == b {
		return 0
	}
	return comparePods(a.PodRef, b.PodRef)
}

func comparePods(a, b metric.PodRef) int {
	if c := strings.Compare(string(a.Namespace), string(b.Namespace)); c != 0 {
		return c
	}
	return strings.Compare(string(a.Name), string(b.Name))
}
