package parity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// shrink returns the smallest case it finds that still fails. It removes one
// thing at a time, until it can remove nothing more.
func shrink[T interface{ smaller() []T }](c T, fails func(T) bool) T {
again:
	for {
		for _, s := range c.smaller() {
			if fails(s) {
				c = s
				continue again
			}
		}
		return c
	}
}

// smaller returns copies of the case, each with one thing removed.
func (c *call) smaller() (list []*call) {
	edit := func(change func(*call)) {
		s := *c
		change(&s)
		list = append(list, &s)
	}
	if c.Behavior != nil {
		edit(func(s *call) { s.Behavior = nil })
	}
	for _, w := range c.Input.smaller() {
		edit(func(s *call) { s.Input = w })
	}
	return list
}

func (q *sequence) smaller() (list []*sequence) {
	edit := func(change func(*sequence)) {
		s := *q
		s.Steps = slices.Clone(q.Steps)
		change(&s)
		list = append(list, &s)
	}
	for i := range q.Steps {
		edit(func(s *sequence) { // the other steps keep their times
			if i+1 < len(s.Steps) {
				s.Steps[i+1].After += s.Steps[i].After
			}
			s.Steps = slices.Delete(s.Steps, i, i+1)
		})
	}
	if len(q.Status.Conditions) > 0 {
		edit(func(s *sequence) { s.Status.Conditions = s.Status.Conditions[1:] })
	}
	for i := range q.Steps {
		at := &q.Steps[i]
		for j := range at.Spec.Metrics {
			if len(at.Spec.Metrics) > 1 {
				edit(func(s *sequence) { s.Steps[i].Spec.Metrics = slices.Delete(slices.Clone(at.Spec.Metrics), j, j+1) })
			}
		}
		if at.Spec.Behavior != nil {
			edit(func(s *sequence) { s.Steps[i].Spec.Behavior = nil })
		}
		if len(at.Others) > 0 {
			edit(func(s *sequence) { s.Steps[i].Others = nil })
		}
		if compact(at.Faults) != compact(faults{}) {
			edit(func(s *sequence) { s.Steps[i].Faults = faults{} })
		}
		for _, w := range at.Input.smaller() {
			edit(func(s *sequence) { s.Steps[i].Input = w })
		}
	}
	return list
}

func (w *testInput) smaller() (list []testInput) {
	edit := func(change func(*testInput)) {
		s := *w
		change(&s)
		list = append(list, s)
	}
	for i, pod := range w.Pods {
		edit(func(s *testInput) { s.Pods = slices.Delete(slices.Clone(s.Pods), i, i+1) })
		inner := func(change func(*corev1.Pod)) {
			edit(func(s *testInput) {
				s.Pods = slices.Clone(s.Pods)
				s.Pods[i] = pod.DeepCopy()
				change(s.Pods[i])
			})
		}
		for j := range pod.Spec.InitContainers {
			inner(func(p *corev1.Pod) { p.Spec.InitContainers = slices.Delete(p.Spec.InitContainers, j, j+1) })
		}
		if len(pod.Spec.Containers) > 1 {
			inner(func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] })
		}
		if pod.Spec.Overhead != nil {
			inner(func(p *corev1.Pod) { p.Spec.Overhead = nil })
		}
		if pod.Spec.Resources != nil {
			inner(func(p *corev1.Pod) { p.Spec.Resources = nil })
		}
	}
	if w.Resource != nil {
		for i := range *w.Resource {
			edit(func(s *testInput) {
				items := slices.Delete(slices.Clone(*s.Resource), i, i+1)
				s.Resource = &items
			})
		}
	}
	if w.PodsFail {
		edit(func(s *testInput) { s.PodsFail = false })
	}
	return list
}
