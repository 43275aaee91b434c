package parity

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podList returns n pods of the target, and sometimes some pods of others.
func (s *scene) podList(n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, n+2)
	for i := range n {
		pods = append(pods, s.pod(fmt.Sprintf("web-%d", i)))
	}
	if s.percent(10) {
		p := s.pod("other-0")
		p.Labels = map[string]string{"app": "other"}
		pods = append(pods, p)
	}
	if s.percent(5) {
		p := s.pod("web-0")
		p.Namespace = "elsewhere"
		pods = append(pods, p)
	}
	return pods
}

func (s *scene) pod(name string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "web"}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	container := func(name string) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: s.requests()}}
	}
	p.Spec.Containers = []corev1.Container{container("app")}
	if s.sidecars {
		always := corev1.ContainerRestartPolicyAlways
		for _, extra := range []string{"log", "cache"} {
			if s.percent(40) {
				p.Spec.Containers = append(p.Spec.Containers, container(extra))
			}
		}
		for i := range s.IntN(4) {
			c := container(fmt.Sprintf("init-%d", i))
			if s.percent(50) {
				c.Name, c.RestartPolicy = one(s.random, "proxy", c.Name), &always
			}
			if i > 0 && c.Name == "proxy" && p.Spec.InitContainers[0].Name == "proxy" {
				c.Name = fmt.Sprintf("proxy-%d", i)
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		}
	}
	if s.levels {
		if s.percent(70) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: s.levelRequests()}
		}
		if s.percent(40) {
			p.Spec.Overhead = s.levelRequests()
		}
	}
	s.age(p)
	return p
}

// requests returns the requests of a container.
func (s *scene) requests() corev1.ResourceList {
	if s.gaps && s.percent(3) {
		return nil
	}
	list := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(s.cpu, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewMilliQuantity(s.memory, resource.BinarySI),
	}
	if s.percent(20) {
		list[corev1.ResourceCPU] = *resource.NewMilliQuantity(s.cpu*int64(s.between(0, 3)), resource.DecimalSI)
	}
	// Pod-level requests are added as quantities. If a sum does not fit in 64 bits
	// of thousandths (9 PB), the result depends on how each quantity was written,
	// so such requests are not generated.
	if s.extreme && !s.levels && s.percent(30) {
		list[corev1.ResourceMemory] = *resource.NewQuantity(one[int64](s.random, 1e15, 9e15, 0), resource.BinarySI)
	}
	if s.gaps && s.percent(3) {
		delete(list, one(s.random, corev1.ResourceCPU, corev1.ResourceMemory))
	}
	return list
}

// levelRequests returns the requests of a pod itself, or its overhead, for some
// resources only.
func (s *scene) levelRequests() corev1.ResourceList {
	list := corev1.ResourceList{}
	if s.percent(60) {
		list[corev1.ResourceCPU] = *resource.NewMilliQuantity(s.cpu*int64(s.between(0, 4)), resource.DecimalSI)
	}
	if s.percent(60) {
		list[corev1.ResourceMemory] = *resource.NewMilliQuantity(s.memory*int64(s.between(0, 4)), resource.BinarySI)
	}
	if s.percent(20) {
		list["hugepages-2Mi"] = resource.MustParse("2Mi")
	}
	if s.percent(10) {
		list[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
	}
	return list
}

// age sets a pod's phase, start and readiness.
func (s *scene) age(p *corev1.Pod) {
	at := func(t time.Time) metav1.Time { return metav1.NewTime(t) }
	started := s.now.Add(-time.Duration(s.between(600, 90000)) * time.Second)
	ready, since := corev1.ConditionTrue, started.Add(10*time.Second)
	if !s.messy {
		t := at(started)
		p.Status.StartTime = &t
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: ready, LastTransitionTime: at(since)},
		}
		return
	}
	p.Status.Phase = one(s.random, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning,
		corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning,
		corev1.PodPending, corev1.PodFailed, corev1.PodSucceeded)
	if s.percent(1) {
		p.Status.Phase = one(s.random, corev1.PodUnknown, "")
	}
	if s.percent(6) {
		t := at(s.now.Add(-time.Second))
		p.DeletionTimestamp = &t
	}
	switch s.IntN(4) { // the start of the pod
	case 0:
		started = s.edge(s.now.Add(-s.config.CPUInitialization))
	case 1:
		started = s.now.Add(-time.Duration(s.between(0, 400)) * time.Second)
	}
	switch s.IntN(6) { // the last change of its readiness
	case 0:
		since = s.edge(started.Add(s.config.InitialReadinessDelay))
	case 1:
		since = s.edge(started)
	case 2:
		since = s.now.Add(-time.Duration(s.between(0, 120)) * time.Second)
	case 3:
		since = s.edge(s.sampled().Add(-s.window()))
	default:
		since = started.Add(10 * time.Second)
	}
	if s.percent(25) {
		ready = one(s.random, corev1.ConditionFalse, corev1.ConditionFalse, corev1.ConditionFalse, corev1.ConditionUnknown)
	}
	if !s.percent(3) {
		t := at(started)
		p.Status.StartTime = &t
	}
	if s.percent(50) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady, Status: ready})
	}
	if !s.percent(3) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: ready, LastTransitionTime: at(since)})
	}
}
