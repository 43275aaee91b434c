//go:build linux && e2e

package disk

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cluster/harness"
)

// TestAgreesWithKubelet compares the figures of a pod, with everything that counts, with those of a
// real kubelet and its containerd.
func TestAgreesWithKubelet(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute) // the test may have to build the programs
	defer cancel()
	c, err := harness.Start(ctx, harness.Options{
		Name: fmt.Sprintf("disk-%d", os.Getpid()), Progress: t.Output(),
		KubeletConfig: map[string]any{"volumeStatsAggPeriod": "2s"},
	})
	must(t, err)
	t.Cleanup(func() { must(t, c.Down(context.Background())) })
	config, err := c.RESTConfig()
	must(t, err)
	kube, err := kubernetes.NewForConfig(config)
	must(t, err)

	pod := runPod(ctx, t, kube, c.Node())
	root, err := c.NodePath("/")
	must(t, err)
	s := newScanner(t, Options{
		RootFS: root,
		Containers: func(uid metric.PodUID) (map[string]string, bool) {
			running := map[string]string{}
			for _, c := range pod.Status.ContainerStatuses {
				running[strings.TrimPrefix(c.ContainerID, "containerd://")] = c.Name
			}
			return running, uid == metric.PodUID(pod.UID)
		},
	})

	var diff string
	for ctx.Err() == nil {
		r := s.scanPods(ctx, false)
		if r.Problems != nil {
			t.Fatal(r.Problems)
		}
		got, _ := s.Pod(metric.PodUID(pod.UID))
		if diff = cmp.Diff(kubeletSays(ctx, t, kube, c.Node(), pod), weirSays(got), cmp.AllowUnexported(diskUse{})); diff == "" {
			t.Logf("agreed on: %+v", weirSays(got))
			break
		}
		// containerd and the kubelet measure every ten seconds.
		if time.Since(pod.Status.StartTime.Time) > 90*time.Second {
			break
		}
		time.Sleep(time.Second)
	}
	if diff != "" {
		t.Errorf("what the pod uses (-kubelet +weir):\n%s", diff)
	}

	// The node's own mount table gives the same layers.
	proc := t.TempDir()
	must(t, os.Symlink(filepath.Dir(filepath.Clean(root)), filepath.Join(proc, "1")))
	table, err := findLayers(proc, "/var/lib/containerd")
	must(t, err)
	live, err := findLayers("/proc", "/var/lib/containerd")
	must(t, err)
	for _, status := range pod.Status.ContainerStatuses {
		id := metric.ContainerID(strings.TrimPrefix(status.ContainerID, "containerd://"))
		want, err := live.find(metric.PodUID(pod.UID), id)
		must(t, err)
		if got := table.mounted[id]; got != want {
			t.Errorf("the mount table has %q for %s, and its process %q", got, status.Name, want)
		}
	}
}

// runPod runs a pod that has init containers that have ended, writable layers, volumes and logs.
func runPod(ctx context.Context, t *testing.T, kube kubernetes.Interface, node string) *corev1.Pod {
	t.Helper()
	container := func(name string, args ...string) corev1.Container {
		return corev1.Container{
			Name: name, Image: harness.WorkloadImage, ImagePullPolicy: corev1.PullNever, Args: args,
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "memory", MountPath: "/memory"}, {Name: "config", MountPath: "/config"}},
		}
	}
	_, err := kube.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "config"}, Data: map[string]string{"key": strings.Repeat("v", 10_000)},
	}, metav1.CreateOptions{})
	must(t, err)
	root := int64(0) // root may write anywhere in the layer
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "disk"},
		Spec: corev1.PodSpec{
			NodeName: node, SecurityContext: &corev1.PodSecurityContext{RunAsUser: &root},
			// The writable layer of the init container is removed with the container, but its logs are not.
			InitContainers: []corev1.Container{container("init", "exit", "--code", "0")},
			Containers: []corev1.Container{
				container("volume", "serve", "--listen", ":8080"),
				container("layer", "serve", "--listen", ":8081"),
			},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}}},
			},
		},
	}
	_, err = kube.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
	must(t, err)
	for {
		got, err := kube.CoreV1().Pods("default").Get(ctx, pod.Name, metav1.GetOptions{})
		must(t, err)
		if got.Status.Phase == corev1.PodRunning && got.Status.PodIP != "" {
			requestUntilAnswered(ctx, t, "http://"+got.Status.PodIP+":8080/fill?dir=/data&bytes=3000000&files=30")
			requestUntilAnswered(ctx, t, "http://"+got.Status.PodIP+":8080/fill?dir=/memory&bytes=5000000&files=50")
			requestUntilAnswered(ctx, t, "http://"+got.Status.PodIP+":8081/fill?dir=/srv/deep&bytes=7000000&files=70")
			return got
		}
		if got.Status.StartTime != nil && time.Since(got.Status.StartTime.Time) > time.Minute {
			t.Fatalf("the pod does not run: %+v", got.Status)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// kubeletSays returns the pod's figures in the kubelet's summary.
func kubeletSays(ctx context.Context, t *testing.T, kube *kubernetes.Clientset, node string, pod *corev1.Pod) map[string]diskUse {
	t.Helper()
	data, err := kube.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", node, "proxy/stats/summary").DoRaw(ctx)
	must(t, err)
	var summary stats.Summary
	must(t, json.Unmarshal(data, &summary))
	for _, p := range summary.Pods {
		if p.PodRef.UID != string(pod.UID) {
			continue
		}
		all := &PodUsage{Ephemeral: p.EphemeralStorage, Volumes: p.VolumeStats, Containers: map[string]ContainerUsage{}}
		for _, c := range p.Containers {
			all.Containers[c.Name] = ContainerUsage{c.Rootfs, c.Logs}
		}
		return weirSays(all)
	}
	return nil
}

func weirSays(p *PodUsage) map[string]diskUse {
	all := map[string]diskUse{"ephemeral": whole(p.Ephemeral)}
	for _, v := range p.Volumes {
		name := v.Name
		if strings.HasPrefix(name, "kube-api-access-") {
			name = "token"
		}
		all["volume "+name] = whole(&v.FsStats)
	}
	for name, c := range p.Containers {
		all["rootfs of "+name], all["logs of "+name] = whole(c.Rootfs), whole(c.Logs)
	}
	return all
}

// whole returns the usage, or zero if a figure is missing.
func whole(s *stats.FsStats) diskUse {
	if s == nil || s.UsedBytes == nil || s.InodesUsed == nil {
		return diskUse{}
	}
	return used(s)
}

// requestUntilAnswered repeats a request to a workload until it answers.
func requestUntilAnswered(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		must(t, err)
		answer, err := http.DefaultClient.Do(q)
		if err == nil {
			body, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				http.DefaultClient.CloseIdleConnections()
				return
			}
			err = fmt.Errorf("it answers %s: %s", answer.Status, body)
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%s: %v", url, err)
		}
	}
}
