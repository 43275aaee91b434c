package eviction

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// requestOf is what a pod requests of a resource, zero if nothing. Requests of the pod
// as a whole, of whatever resource, hide those of its containers.
func requestOf(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	var request resource.Quantity
	if podLevel(pod) {
		if q, ok := pod.Spec.Resources.Requests[name]; ok && ofPods(name) {
			request = q.DeepCopy()
		}
	} else if t := aggregate(pod, name, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }); t.set {
		request = t.sum
	}
	addOverhead(pod, name, &request)
	return request
}

// limitOf is the limit of a pod's containers together, of those that have one. What the
// pod as a whole is limited to does not count: it cannot be of storage.
func limitOf(pod *corev1.Pod, name corev1.ResourceName) (resource.Quantity, bool) {
	t := aggregate(pod, name, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })
	addOverhead(pod, name, &t.sum)
	return t.sum, t.set
}

func addOverhead(pod *corev1.Pod, name corev1.ResourceName, q *resource.Quantity) {
	if overhead, ok := pod.Spec.Overhead[name]; ok && !q.IsZero() {
		q.Add(overhead)
	}
}

// podLevel says whether a pod has resources of its own.
func podLevel(pod *corev1.Pod) bool {
	r := pod.Spec.Resources
	if r == nil {
		return false
	}
	for _, list := range [...]corev1.ResourceList{r.Requests, r.Limits} {
		for name := range list {
			if ofPods(name) {
				return true
			}
		}
	}
	return false
}

// ofPods says whether a pod as a whole may have the resource.
func ofPods(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// tally is a sum that may be of nothing, which is not zero. Its format is that of the
// first it is made of.
type tally struct {
	sum resource.Quantity
	set bool
}

func (t *tally) add(list corev1.ResourceList, name corev1.ResourceName) {
	if q, ok := list[name]; ok {
		t.plus(q)
	}
}

func (t *tally) plus(q resource.Quantity) {
	if !t.set {
		t.sum, t.set = q.DeepCopy(), true
		return
	}
	t.sum.Add(q)
}

func (t *tally) atLeast(u tally) {
	if u.set && (!t.set || u.sum.Cmp(t.sum) > 0) {
		t.sum, t.set = u.sum.DeepCopy(), true
	}
}

// aggregate is what containers need together: the regular ones and the restartable init
// containers at once; before that each other init container with the restartable
// ones that were started by then.
func aggregate(pod *corev1.Pod, name corev1.ResourceName, of func(*corev1.Container) corev1.ResourceList) tally {
	var running, beside, starting tally
	for i := range pod.Spec.Containers {
		running.add(of(&pod.Spec.Containers[i]), name)
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			running.add(of(c), name)
			beside.add(of(c), name)
			starting.atLeast(beside)
			continue
		}
		var alone tally
		alone.add(of(c), name)
		if beside.set {
			alone.plus(beside.sum)
		}
		starting.atLeast(alone)
	}
	running.atLeast(starting)
	return running
}
