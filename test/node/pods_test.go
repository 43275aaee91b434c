//go:build e2e

package node

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/test/cluster/harness"
)

// classes are the priority classes of the pods in these tests.
var classes = map[string]int32{"node-test-low": -10, "node-test-high": 1000, "node-test-highest": 2000}

func (w *testCluster) createClasses(ctx context.Context) error {
	for name, value := range classes {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := w.kube.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// cgroups returns the folders of a pod's cgroup on the node, or of one of its
// containers if id is not empty: one for each hierarchy with usage.
func (w *testCluster) cgroups(t *testing.T, p *corev1.Pod, id string) (dirs []string) {
	t.Helper()
	_, id, _ = strings.Cut(id, "://")
	if w.v2 {
		slice := "kubepods"
		dir := "/sys/fs/cgroup/kubepods.slice"
		if class := p.Status.QOSClass; class != corev1.PodQOSGuaranteed { // guaranteed pods have no folder of their class
			slice += "-" + strings.ToLower(string(class))
			dir += "/" + slice + ".slice"
		}
		dir += "/" + slice + "-pod" + strings.ReplaceAll(string(p.UID), "-", "_") + ".slice"
		if id != "" {
			dir += "/cri-containerd-" + id + ".scope"
		}
		return []string{dir}
	}
	group := w.PodCgroup(p.Status.QOSClass, p.UID)
	if id != "" {
		group = group.Container(id)
	}
	for _, controller := range []string{"cpu", "memory"} {
		dirs = append(dirs, "/sys/fs/cgroup/"+controller+group.String())
	}
	return dirs
}

// requests returns requests of little CPU, and of this much memory and disk in
// bytes.
func requests(memory, disk int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("5m"),
		corev1.ResourceMemory:           *resource.NewQuantity(memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(disk, resource.BinarySI),
	}
}

// pod returns a pod on the node, with a volume at /data. By default it runs a
// server that changes its usage on request. The pod has a node name and does
// not use the scheduler, which would not place pods on a node under pressure.
func (w *testCluster) pod(name, class string, requests corev1.ResourceList, args ...string) *corev1.Pod {
	grace := int64(5)
	if len(args) == 0 {
		args = []string{"serve", "--listen=:8080"}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: w.Node(), PriorityClassName: class, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "main", Image: harness.WorkloadImage, ImagePullPolicy: corev1.PullNever, Args: args,
				Resources:    corev1.ResourceRequirements{Requests: requests},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}

// create creates pods, waits until they run, and returns them.
func (w *testCluster) create(t *testing.T, namespace string, pods ...*corev1.Pod) map[string]*corev1.Pod {
	t.Helper()
	eventually(t, "the node takes pods", time.Minute, func() error { return w.waitForNoPressure(t.Context()) })
	for _, p := range pods {
		if _, err := w.kube.CoreV1().Pods(namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	running := map[string]*corev1.Pod{}
	for _, p := range pods {
		eventually(t, p.Name+" runs", time.Minute, func() error {
			got, err := w.kube.CoreV1().Pods(namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
			if err == nil && (got.Status.Phase != corev1.PodRunning || got.Status.PodIP == "") {
				err = fmt.Errorf("it is %s %s: %s", got.Status.Phase, got.Status.Reason, got.Status.Message)
			}
			running[p.Name] = got
			return err
		})
	}
	return running
}

// sendCommand sends a request to a pod's workload.
func sendCommand(p *corev1.Pod, path string) error {
	answer, err := http.Get("http://" + p.Status.PodIP + ":8080" + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s of %s answers %s: %s", path, p.Name, answer.Status, body)
	}
	return nil
}

// orderLoad sends a request until it succeeds, because a container may run a
// moment before its server listens.
func orderLoad(t *testing.T, p *corev1.Pod, path string) {
	t.Helper()
	eventually(t, p.Name+" does "+path, 20*time.Second, func() error { return sendCommand(p, path) })
}
