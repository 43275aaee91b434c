//go:build e2e

package apis

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-metrics/weir/test/cluster/harness"
)

var verticalPodAutoscalers = schema.GroupVersionResource{Group: "autoscaling.k8s.io", Version: "v1", Resource: "verticalpodautoscalers"}

// TestVerticalPodAutoscaler runs the recommender of the VerticalPodAutoscaler with the rights of its
// own manifests. What it recommends for a pod must follow from numbers that weir served.
func TestVerticalPodAutoscaler(t *testing.T) {
	w := sharedCluster
	w.resourceMetricsFrom(t, ours)
	t.Parallel()
	const held = 64 * mebi
	namespace := w.namespace(t, "vertical")
	w.deployment(t, namespace, "web", container("app", "use", "--millicores=60", fmt.Sprintf("--bytes=%d", held)))
	w.addressOf(t, namespace, "web")
	served := w.recordServed(t, namespace)

	w.startRecommender(t)
	err := w.Apply(t.Context(), fmt.Sprintf(`{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler","metadata":{"name":"web","namespace":%q},`+
		`"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"updatePolicy":{"updateMode":"Off"}}}`, namespace))
	if err != nil {
		t.Fatal(err)
	}
	var cpu, memory int64
	took := eventually(t, "the recommender recommends", 2*time.Minute, func() (err error) {
		cpu, memory, err = w.verticalTarget(t.Context(), namespace, "web", "app")
		return err
	})
	// Numbers of other rounds move the recommendation.
	last := len(served.all())
	eventually(t, "weir serves further numbers", time.Minute, func() error {
		if n := len(served.all()); n < last+2 {
			return fmt.Errorf("%d different ones, of which %d are new", n, n-last)
		}
		return nil
	})
	if cpu, memory, err = w.verticalTarget(t.Context(), namespace, "web", "app"); err != nil {
		t.Fatal(err)
	}
	wait(t, time.Second) // what the recommender has read is recorded, too
	var cpus, memories []int64
	for _, s := range served.all() {
		cpus = append(cpus, recommended(float64(s.millicores)/1000, 0.01, 1000))
		memories = append(memories, recommended(float64(s.bytes), 1e7, 1))
	}
	t.Logf("%d millicores and %d bytes are recommended after %v and further rounds; weir served %v", cpu, memory, took.Round(time.Second), served.all())
	if !slices.Contains(cpus, cpu) {
		t.Errorf("%d millicores are recommended: the numbers served give %d", cpu, cpus)
	}
	if !slices.Contains(memories, memory) || memory < held*115/100 || memory > held*5/4*115/100 {
		t.Errorf("%d bytes are recommended for %d held: the numbers served give %d", memory, held, memories)
	}
}

// recommended is the recommendation that follows if the percentile of the samples is value: the
// upper end of its bucket, and 15% more. Each bucket of the recommender's histograms is 5% wider
// than the one before; first is the width of the first. The result is in units of 1/scale, and
// truncated.
func recommended(value, first, scale float64) int64 {
	const ratio = 1.05
	bucket := 0.0
	if value >= first {
		bucket = math.Floor(math.Log(value*(ratio-1)/first+1) / math.Log(ratio))
	}
	end := int64(first * (math.Pow(ratio, bucket+1) - 1) / (ratio - 1) * scale)
	return end + int64(float64(end)*0.15)
}

// sample is one usage of a container, rounded up as clients read it.
type sample struct{ millicores, bytes int64 }

// servedSamples are the different usages that a server served, in their order.
type servedSamples struct {
	mu   sync.Mutex
	list []sample
}

func (s *servedSamples) all() []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// recordServed reads the one container of a namespace through the API server five times a second
// until the test ends, and returns what it reads.
func (w *testCluster) recordServed(t *testing.T, namespace string) *servedSamples {
	t.Helper()
	served := &servedSamples{}
	background(t, 200*time.Millisecond, func() bool {
		pods, err := w.aggregated.MetricsV1beta1().PodMetricses(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return true // the recommender may have the same error, and then no number
		}
		served.mu.Lock()
		defer served.mu.Unlock()
		for _, p := range pods.Items {
			for _, c := range p.Containers {
				s := sample{c.Usage.Cpu().MilliValue(), c.Usage.Memory().Value()}
				if len(served.list) == 0 || served.list[len(served.list)-1] != s {
					served.list = append(served.list, s)
				}
			}
		}
		return true
	})
	return served
}

// startRecommender applies the manifests of the recommender's release and starts it on the node, with
// the rights of its service account. It reads metrics every five seconds and recommends no minimum.
func (w *testCluster) startRecommender(t *testing.T) {
	t.Helper()
	const name = "vpa-recommender"
	program, err := harness.BuildRecommender(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "k8s.io/autoscaler/vertical-pod-autoscaler")
	download.Dir = filepath.Join(root, "test", "cluster", "vertical-pod-autoscaler")
	out, err := download.Output()
	if err != nil {
		t.Fatalf("find the recommender's manifests: %v\n%s", err, out)
	}
	var release struct{ Dir string }
	if err := json.Unmarshal(out, &release); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"vpa-v1-crd-gen.yaml", "vpa-rbac.yaml"} {
		manifests := filepath.Join(release.Dir, "deploy", file)
		w.kubectl(t, "apply", "-f", manifests)
		t.Cleanup(func() {
			if _, stderr, err := w.Kubectl(context.Background(), "delete", "-f", manifests, "--ignore-not-found"); err != nil {
				t.Errorf("delete %s: %v: %s", file, err, stderr)
			}
		})
	}
	w.kubectl(t, "wait", "crd", "verticalpodautoscalers.autoscaling.k8s.io", "--for=condition=Established", "--timeout=60s")

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := w.WriteKubeconfig(kubeconfig, "system:serviceaccount:kube-system:"+name); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("%s:8942", w.NodeIP())
	err = w.StartProcess(t.Context(), name, program, []string{
		"--kubeconfig=" + kubeconfig, "--address=" + address, "--recommender-interval=5s",
		"--pod-recommendation-min-cpu-millicores=0", "--pod-recommendation-min-memory-mb=0",
	}, "http://"+address+"/health-check")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.StopProcess(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
}

// verticalTarget returns the recommendation of a VerticalPodAutoscaler for a container, in millicores
// and bytes.
func (w *testCluster) verticalTarget(ctx context.Context, namespace, name, container string) (cpu, memory int64, err error) {
	u, err := w.dynamic.Resource(verticalPodAutoscalers).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, 0, err
	}
	status, _, err := unstructured.NestedMap(u.Object, "status")
	if err != nil {
		return 0, 0, err
	}
	var s struct {
		Recommendation struct {
			ContainerRecommendations []struct {
				ContainerName string            `json:"containerName"`
				Target        map[string]string `json:"target"`
			} `json:"containerRecommendations"`
		} `json:"recommendation"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &s); err != nil {
		return 0, 0, err
	}
	for _, c := range s.Recommendation.ContainerRecommendations {
		if c.ContainerName != container {
			continue
		}
		millicores, err := resource.ParseQuantity(c.Target["cpu"])
		if err != nil {
			return 0, 0, err
		}
		bytes, err := resource.ParseQuantity(c.Target["memory"])
		return millicores.MilliValue(), bytes.Value(), err
	}
	return 0, 0, fmt.Errorf("its status has %v", status)
}
