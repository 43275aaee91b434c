//go:build linux && e2e

package cri

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/test/cluster/harness"
)

const (
	unusedImage = "weir.test/unused:latest"
	usedImage   = "weir.test/used:latest"
)

// The node that runs this test, if it is the node of a cluster that has both images.
var (
	kubeconfig = flag.String("kubeconfig", "", "the cluster's administrator (default: the test starts a cluster)")
	nodeName   = flag.String("node", "", "this node's name, with -kubeconfig")
)

// TestContainerd removes objects from a real containerd below a real kubelet, and checks that the
// kubelet's pods are not affected.
func TestContainerd(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute) // the test may have to build the programs
	defer cancel()
	socket, node := "/run/containerd/containerd.sock", *nodeName
	var config *rest.Config
	var err error
	if *kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", *kubeconfig)
		must(t, err)
	} else {
		c, err := harness.Start(ctx, harness.Options{Name: fmt.Sprintf("cri-%d", os.Getpid()), Progress: t.Output()})
		must(t, err)
		t.Cleanup(func() { must(t, c.Down(context.Background())) })
		config, err = c.RESTConfig()
		must(t, err)
		for _, name := range []string{unusedImage, usedImage} { // other arguments give another image
			tarball := filepath.Join(t.TempDir(), "image.tar")
			must(t, c.BuildImage(ctx, tarball, name, filepath.Join(c.Dir(), "workload"), "pause", name))
			must(t, c.LoadImage(ctx, tarball))
		}
		node = c.Node()
		socket, err = c.NodePath(socket)
		must(t, err)
	}
	client, err := rest.HTTPClientFor(config)
	must(t, err)
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(client.Transport) })
	kube, err := kubernetes.NewForConfigAndClient(config, client)
	must(t, err)

	container := func(name, image string, args ...string) corev1.Container {
		return corev1.Container{Name: name, Image: image, ImagePullPolicy: corev1.PullNever, Args: args}
	}
	create := func(name string, spec corev1.PodSpec) {
		t.Helper()
		spec.NodeName = node
		_, err := kube.CoreV1().Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
		must(t, err)
		t.Cleanup(func() {
			must(t, kube.CoreV1().Pods("default").Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
		})
	}
	// One container keeps running. The other one has ended for good, which the kubelet knows from its
	// exited container.
	create("goes-on", corev1.PodSpec{
		RestartPolicy:  corev1.RestartPolicyOnFailure,
		InitContainers: []corev1.Container{container("init", harness.WorkloadImage, "exit", "--code", "0")},
		Containers:     []corev1.Container{container("main", usedImage, "pause"), container("once", harness.WorkloadImage, "exit", "--code", "0")},
	})
	create("done", corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{container("main", harness.WorkloadImage, "exit", "--code", "0")},
	})
	get := func(name string) *corev1.Pod {
		t.Helper()
		pod, err := kube.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		must(t, err)
		return pod
	}
	await := func(what string, ok func() bool) {
		t.Helper()
		for began := time.Now(); !ok(); time.Sleep(200 * time.Millisecond) {
			if time.Since(began) > 4*time.Minute { // an emulated node is slow
				t.Fatalf("%s: not in four minutes", what)
			}
		}
	}
	await("the pods are there", func() bool {
		for _, s := range get("goes-on").Status.ContainerStatuses {
			if s.Name == "main" && s.State.Running == nil || s.Name == "once" && s.State.Terminated == nil {
				return false
			}
		}
		return get("goes-on").Status.Phase == corev1.PodRunning && get("done").Status.Phase == corev1.PodSucceeded
	})
	before, done := get("goes-on"), get("done")

	r := connect(t, Options{
		Socket: socket, MinImageAge: time.Nanosecond,
		Ended: func(uid types.UID) bool { return uid == done.UID },
	})
	await("the kubelet has stopped the sandbox of what is done", func() bool {
		ready, err := r.readyPods(ctx)
		must(t, err)
		return ready[before.UID] && !ready[done.UID]
	})
	containers, images := left(ctx, t, r)
	if !slices.Contains(containers, "done/main") || !slices.Contains(images, unusedImage) {
		t.Fatalf("before: containers %v, images %v", containers, images)
	}
	freed, err := r.Reclaim(ctx, eviction.UnusedContainers)
	if err != nil || freed.Items != 1 {
		t.Errorf("freed %+v, %v, want one container", freed, err)
	}
	freed, err = r.Reclaim(ctx, eviction.UnusedImages)
	if err != nil || freed.Items != 1 || freed.Bytes < 1<<20 {
		t.Errorf("freed %+v, %v, want one image of more than a MiB", freed, err)
	}
	containers, images = left(ctx, t, r)
	if want := []string{"goes-on/init", "goes-on/main", "goes-on/once"}; !slices.Equal(containers, want) {
		t.Errorf("containers left: %v, want %v", containers, want)
	}
	if slices.Contains(images, unusedImage) || !slices.Contains(images, usedImage) || !slices.Contains(images, harness.WorkloadImage) {
		t.Errorf("images left: %v, want all but %s", images, unusedImage)
	}

	// The kubelet lists all containers again every second.
	time.Sleep(5 * time.Second)
	after := get("goes-on")
	for i, s := range after.Status.ContainerStatuses {
		if was := before.Status.ContainerStatuses[i]; s.ContainerID != was.ContainerID || s.RestartCount != was.RestartCount {
			t.Errorf("%s was %s, restarted %d times, and is %s, %d", s.Name, was.ContainerID, was.RestartCount, s.ContainerID, s.RestartCount)
		}
	}
	if got := get("done"); got.Status.Phase != corev1.PodSucceeded || got.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the pod that was done is %+v", got.Status)
	}
}

// left lists the containers of the tests' pods as POD/NAME, and the tags of images.
func left(ctx context.Context, t *testing.T, r *Reclaimer) (containers, images []string) {
	t.Helper()
	all, err := r.containers.ListContainers(ctx, &runtime.ListContainersRequest{})
	must(t, err)
	for _, c := range all.Containers {
		if c.Labels["io.kubernetes.pod.namespace"] == "default" {
			containers = append(containers, c.Labels["io.kubernetes.pod.name"]+"/"+c.Labels[labelName])
		}
	}
	list, err := r.images.ListImages(ctx, &runtime.ListImagesRequest{})
	must(t, err)
	for _, i := range list.Images {
		images = append(images, i.RepoTags...)
	}
	slices.Sort(containers)
	return containers, images
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
