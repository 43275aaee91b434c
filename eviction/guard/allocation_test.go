package guard

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/test/cmptest"
)

func memory(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(quantity)}
}

// TestPendingResize has a pod whose request is to grow beyond what it uses, and has not yet.
func TestPendingResize(t *testing.T) {
	for name, set := range map[string]func(*corev1.Pod){
		"allocated": func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", AllocatedResources: memory("1Gi")}}
		},
		"in the status": func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Resources: &corev1.ResourceRequirements{Requests: memory("1Gi")}}}
		},
		"of an init container": func(p *corev1.Pod) {
			p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, nil
			p.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "app", AllocatedResources: memory("1Gi")}}
		},
		"of the pod": func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: memory("4Gi")}
			p.Spec.Containers[0].Resources.Requests = memory("1Gi")
			p.Spec.Overhead = memory("64Mi")
			p.Status.AllocatedResources = memory("1088Mi")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				n.pod("other", gib*3/2)
				n.pod("resized", gib*3/2)
				n.pods[0].Spec.Containers[0].Resources.Requests = memory("1400Mi")
				p := n.pods[1]
				p.Spec.Containers[0].Resources.Requests = memory("4Gi")
				set(p)
				before := p.DeepCopy()
				n.free = 500 * mib
				d := n.timer(n.guard(execute.Observe, hardMemory)).Decision
				cmptest.Equal(t, "first", "resized", d.Ranking[d.Victim].Pod.Name)
				if m := d.Kills[0].Message; !strings.Contains(m, "was using 1536Mi, request is 1Gi,") {
					t.Errorf("got %q, want the allocated request", m)
				}
				cmptest.Equal(t, "the caller's pod", before, p)
			})
		})
	}
}

// TestAppliedResize checks that a pod is copied only if its requests differ from those allocated.
func TestAppliedResize(t *testing.T) {
	for name, p := range map[string]*corev1.Pod{
		"no status": {Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: memory("1Gi")}}}}},
		"equal": {
			Spec: corev1.PodSpec{
				Resources:  &corev1.ResourceRequirements{Requests: memory("1Gi")},
				Overhead:   memory("64Mi"),
				Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: memory("1Gi")}}, {Name: "none"}},
			},
			Status: corev1.PodStatus{
				AllocatedResources: memory("1088Mi"),
				ContainerStatuses:  []corev1.ContainerStatus{{Name: "app", AllocatedResources: memory("1024Mi")}, {Name: "none", Resources: &corev1.ResourceRequirements{}}},
			},
		},
	} {
		if withAllocation(p) != p {
			t.Errorf("%s: the pod was copied", name)
		}
	}
}
