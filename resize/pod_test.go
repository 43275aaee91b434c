package resize

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/metric"
)

// A list is made from the cluster facts, one pod is read from the API server: both say the same of a
// pod that its node can or cannot resize.
func TestFactsSayWhatThePodSays(t *testing.T) {
	amount := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("64Mi")}
	}
	f := func(statuses ...corev1.ContainerStatus) *PodResources {
		t.Helper()
		pod := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"},
			Spec: corev1.PodSpec{
				NodeName: "n1", Overhead: amount("250m"),
				Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: amount("1"), Limits: amount("2")}}},
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, ContainerStatuses: statuses},
		}
		facts := informer.FactsFromList(nil, &corev1.PodList{Items: []corev1.Pod{pod}}, time.Unix(1, 0))
		fromFacts, fromPod := FromFacts(facts.Pod(metric.PodRef{Namespace: "shop", Name: "web"})), FromPod(&pod)
		if diff := cmp.Diff(fromPod, fromFacts); diff != "" {
			t.Errorf("with statuses %v the facts differ from the pod (-pod +facts):\n%s", statuses, diff)
		}
		return fromFacts
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	if !f(corev1.ContainerStatus{Name: "app", State: running}).OldKubelet {
		t.Error("a kubelet that reports no resources of a running container is taken for one that can resize")
	}
	if f(corev1.ContainerStatus{Name: "app", State: running, Resources: &corev1.ResourceRequirements{Requests: amount("1")}}).OldKubelet {
		t.Error("a kubelet that reports resources is taken for one that cannot resize")
	}
	if p := f(); p.OldKubelet || p.Containers[0].Role != cluster.Regular {
		t.Errorf("of a container that does not run: %+v", p)
	}
}
