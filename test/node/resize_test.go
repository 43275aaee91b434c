//go:build e2e

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/apply"
)

const sizes = "sizes" // the namespace of the pods to resize

// history is the shortest history of a container for a recommendation. The
// default of ten minutes is too long for tests.
const history = "--min-history=30s"

// createSizes creates the pods to resize before any test runs, because a
// recommendation needs a history.
func (w *testCluster) createSizes(ctx context.Context) error {
	if _, err := w.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sizes}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	// They must not be evicted when other tests make the node short of memory.
	const critical = "system-node-critical"
	roomy := w.pod("roomy", critical, requests(256*mi, mi), "use", "--millicores=20", fmt.Sprintf("--bytes=%d", 40*mi))
	roomy.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("200m")
	guaranteed := w.pod("guaranteed", critical, requests(128*mi, mi), "pause")
	// Its limit holds for the start of the container too.
	guaranteed.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100m")
	guaranteed.Spec.Containers[0].Resources.Limits = guaranteed.Spec.Containers[0].Resources.Requests
	whole := w.pod("whole", critical, nil, "use", "--millicores=20", fmt.Sprintf("--bytes=%d", 40*mi))
	whole.Spec.Resources = &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: *resource.NewQuantity(256*mi, resource.BinarySI)},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: *resource.NewQuantity(512*mi, resource.BinarySI)},
	}
	for _, p := range []*corev1.Pod{roomy, guaranteed, whole} {
		if _, err := w.kube.CoreV1().Pods(sizes).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// TestResize reduces a pod's requests to the recommended ones, in place.
func TestResize(t *testing.T) {
	w := sharedCluster
	const pod = sizes + "/roomy"
	eventually(t, "weir recommends less for "+pod, 2*time.Minute, func() error {
		var list resizeapi.RecommendationList
		out, err := w.weir(t.Context(), "resize", "recommend", pod, history, "-o", "json")
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			return err
		}
		shrinks := 0
		for _, item := range list.Items {
			for i := range item.Requests {
				if item.Requests[i].Reason == resize.Shrink {
					shrinks++
				}
			}
		}
		if shrinks != 2 {
			return fmt.Errorf("it would shrink %d requests, want CPU and memory: %s", shrinks, out)
		}
		return nil
	})
	t.Logf("weir resize recommend %s\n%s", pod, w.kubectlWeir(t, "resize", "recommend", pod, history))

	before, sharesBefore := w.sized(t, "roomy")
	// First a dry run, which must not change anything.
	w.kubectlWeir(t, "resize", "apply", "--pod", pod, "--recommended", history)
	if p, shares := w.sized(t, "roomy"); p.Generation != before.Generation || shares != sharesBefore {
		t.Errorf("a dry run: generation %d, then %d; CPU shares %s, then %s", before.Generation, p.Generation, sharesBefore, shares)
	}
	var result apply.Result
	out := w.kubectlWeir(t, "resize", "apply", "--pod", pod, "--recommended", history, "--yes", "-o", "json")
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatalf("read what became of it: %v\n%s", err, out)
	}
	if !result.Cgroups.Checked || len(result.Cgroups.Problems) > 0 {
		t.Errorf("weir's agent on the cgroups: checked %v, %q, %v", result.Cgroups.Checked, result.Cgroups.UncheckedReason, result.Cgroups.Problems)
	}
	after, sharesAfter := w.sized(t, "roomy")
	was, is := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]
	if was.ContainerID != is.ContainerID || was.RestartCount != is.RestartCount || before.UID != after.UID {
		t.Errorf("not in place: container %s restarted %d times, then %s restarted %d times", was.ContainerID, was.RestartCount, is.ContainerID, is.RestartCount)
	}
	for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		spec, allocated, old := after.Spec.Containers[0].Resources.Requests[r], is.AllocatedResources[r], before.Spec.Containers[0].Resources.Requests[r]
		if spec.Cmp(old) >= 0 || allocated.Cmp(spec) != 0 {
			t.Errorf("%s: requested %s, now %s, allocated %s; want less, and allocated", r, &old, &spec, &allocated)
		}
		t.Logf("%s: %s, now %s", r, &old, &spec)
	}
	if sharesBefore == sharesAfter {
		t.Errorf("the container's CPU shares are %s as before", sharesAfter)
	}
	t.Logf("CPU shares of the container: %s, now %s; done after %.1fs", sharesBefore, sharesAfter, result.TookSeconds)

	// With a request below its limit it would be Burstable.
	out, err := w.weir(t.Context(), "resize", "apply", "--pod", sizes+"/guaranteed", "--memory", "64Mi", "--yes")
	if err == nil || !strings.Contains(err.Error()+out, "QoS") {
		t.Errorf("a change that would alter the QoS class: got %v, want it to be refused with the reason\n%s", err, out)
	}
	t.Logf("refused: %v", err)
	if p, _ := w.sized(t, "guaranteed"); p.Generation != 1 {
		t.Errorf("the pod whose change was refused is of generation %d, want 1: it was changed", p.Generation)
	}
}

// TestResizeOfPodLevelResources reduces the requests of a pod itself (spec.resources) to the recommended
// ones, and then a limit.
func TestResizeOfPodLevelResources(t *testing.T) {
	w := sharedCluster
	const pod = sizes + "/whole"
	var out string
	eventually(t, "weir recommends less for "+pod, 2*time.Minute, func() (err error) {
		out, err = w.weir(t.Context(), "resize", "recommend", pod, history)
		if err == nil && strings.Count(out, "→") != 2 {
			err = fmt.Errorf("want less CPU and memory for the pod itself: %s", out)
		}
		return err
	})
	t.Logf("weir resize recommend %s\n%s", pod, out)
	get := func() *corev1.Pod {
		t.Helper()
		p, err := w.kube.CoreV1().Pods(sizes).Get(t.Context(), "whole", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	before := get()
	for _, args := range [][]string{{"--recommended", history}, {"--cpu-limit", "500m", "--memory-limit", "384Mi"}} {
		var result apply.Result
		out := w.kubectlWeir(t, append([]string{"resize", "apply", "--pod", pod, "--yes", "-o", "json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &result); err != nil {
			t.Fatalf("read what became of it: %v\n%s", err, out)
		}
		if result.Stage != apply.Done || !result.InPlace() || !result.Cgroups.Checked {
			t.Errorf("%v: want it done in place, with the right cgroup of the pod: %s", args, out)
		}
	}
	after := get()
	for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, old, allocated := after.Spec.Resources.Requests[r], before.Spec.Resources.Requests[r], after.Status.AllocatedResources[r]
		if request.Cmp(old) >= 0 || allocated.Cmp(request) != 0 {
			t.Errorf("%s: requested %s, now %s, allocated %s; want less, and allocated", r, &old, &request, &allocated)
		}
	}
	if was, is := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]; was.ContainerID != is.ContainerID || before.Status.QOSClass != after.Status.QOSClass {
		t.Errorf("not in place: container %s, now %s; class %s, now %s", was.ContainerID, is.ContainerID, before.Status.QOSClass, after.Status.QOSClass)
	}
}

// TestResizeOfInitContainer resizes an init container while it runs, and again when it has ended.
func TestResizeOfInitContainer(t *testing.T) {
	w := sharedCluster
	p := w.pod("init", "", requests(16*mi, mi), "pause")
	p.Spec.PriorityClassName = "system-node-critical" // a node that was short of disk runs no other new pods for a while
	p.Spec.InitContainers = []corev1.Container{{
		Name: "setup", Image: p.Spec.Containers[0].Image, ImagePullPolicy: corev1.PullNever,
		Args:      []string{"exit", "--after=40s"},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
	}}
	namespace := w.namespace(t, "init-sizes")
	if _, err := w.kube.CoreV1().Pods(namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	setup := func() (s corev1.ContainerStatus, err error) {
		got, err := w.kube.CoreV1().Pods(namespace).Get(t.Context(), "init", metav1.GetOptions{})
		if err == nil && len(got.Status.InitContainerStatuses) == 1 {
			s = got.Status.InitContainerStatuses[0]
		}
		return s, err
	}
	eventually(t, "the init container runs", time.Minute, func() error {
		s, err := setup()
		if err == nil && s.State.Running == nil {
			err = fmt.Errorf("its state is %+v", s.State)
		}
		return err
	})
	shrink := func(cpu string) (r apply.Result) {
		t.Helper()
		out := w.kubectlWeir(t, "resize", "apply", "--pod", namespace+"/init", "--container", "setup", "--cpu", cpu, "--yes", "-o", "json")
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("read what became of it: %v\n%s", err, out)
		}
		s, err := setup()
		if allocated := s.AllocatedResources.Cpu().String(); err != nil || r.Stage != apply.Done || !r.InPlace() || allocated != cpu {
			t.Errorf("resize of the init container to %s: %v, allocated %s; want it done in place: %s", cpu, err, allocated, out)
		}
		return r
	}
	if r := shrink("50m"); !r.Cgroups.Checked {
		t.Errorf("the cgroup of the init container was not checked: %s", r.Cgroups.UncheckedReason)
	}
	eventually(t, "the init container has ended, and the pod runs", 2*time.Minute, func() error {
		got, err := w.kube.CoreV1().Pods(namespace).Get(t.Context(), "init", metav1.GetOptions{})
		if err == nil && got.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("its phase is %s", got.Status.Phase)
		}
		return err
	})
	if r := shrink("20m"); !strings.Contains(r.Cgroups.UncheckedReason, "does not run") {
		t.Errorf("the cgroup of an init container that has ended: checked %v, %q", r.Cgroups.Checked, r.Cgroups.UncheckedReason)
	}
}

// sized returns a pod and the CPU shares, or weight, of its container's cgroup.
func (w *testCluster) sized(t *testing.T, name string) (p *corev1.Pod, shares string) {
	t.Helper()
	p, err := w.kube.CoreV1().Pods(sizes).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || len(p.Status.ContainerStatuses) == 0 {
		t.Fatalf("pod %s: %v, %v", name, p, err)
	}
	dir := w.cgroups(t, p, p.Status.ContainerStatuses[0].ContainerID)[0]
	for _, file := range []string{"cpu.shares", "cpu.weight"} {
		if text, err := w.readFile(t.Context(), filepath.Join(dir, file)); err == nil {
			return p, strings.TrimSpace(text)
		}
	}
	t.Fatalf("cgroup %s has no CPU shares", dir)
	return nil, ""
}
