//go:build e2e

package apis

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	model "github.com/weir-metrics/weir/metric/run"
)

// use is the usage of a container.
type use struct{ millicores, bytes float64 }

// answer is the answer to one LIST of pods: a claim for each container, by
// "pod/container".
type answer map[string]claim

// list lists the metrics of a namespace's pods from one server.
func list(ctx context.Context, c *metricsclient.Clientset, namespace string) (answer, error) {
	pods, err := c.MetricsV1beta1().PodMetricses(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	a := answer{}
	for _, p := range pods.Items {
		for _, c := range p.Containers {
			a[p.Name+"/"+c.Name] = claimOf(&p, &c)
		}
	}
	return a, nil
}

// serves waits until a server serves exactly these containers of a namespace.
// It returns how long that took.
func serves(t *testing.T, who string, c *metricsclient.Clientset, namespace string, want ...string) time.Duration {
	t.Helper()
	slices.Sort(want)
	return eventually(t, fmt.Sprintf("%s serves %d containers of %s", who, len(want), namespace), 2*time.Minute, func() error {
		a, err := list(t.Context(), c, namespace)
		if err != nil {
			return err
		}
		if got := slices.Sorted(maps.Keys(a)); !slices.Equal(got, want) {
			return fmt.Errorf("served are %v, want %v", got, want)
		}
		return nil
	})
}

const mebi = 1 << 20

// steady are the containers of the pods on which the two servers are compared,
// with their known usage.
var steady = map[string]use{
	"idle/app":      {1, 64 * mebi},
	"small/app":     {5, 64 * mebi},
	"medium/app":    {40, 96 * mebi},
	"large/app":     {150, 128 * mebi},
	"two/app":       {30, 64 * mebi},
	"two/helper":    {10, 80 * mebi},
	"init/app":      {20, 64 * mebi},
	"sidecar/app":   {20, 64 * mebi},
	"sidecar/proxy": {10, 64 * mebi},
}

// steadyPods returns the pods of steady. One has an init container that ends,
// which is not counted. Another has a restartable init container, which is
// counted.
func steadyPods() []*corev1.Pod {
	consumer := func(key string) corev1.Container {
		u := steady[key]
		_, name, _ := strings.Cut(key, "/")
		return container(name, "use", fmt.Sprintf("--millicores=%v", u.millicores), fmt.Sprintf("--bytes=%v", int64(u.bytes)))
	}
	var pods []*corev1.Pod
	for _, name := range []string{"idle", "small", "medium", "large"} {
		pods = append(pods, pod(name, consumer(name+"/app")))
	}
	pods = append(pods, pod("two", consumer("two/app"), consumer("two/helper")))

	withInit := pod("init", consumer("init/app"))
	withInit.Spec.InitContainers = []corev1.Container{container("setup", "exit", "--after=1s")}
	pods = append(pods, withInit)

	withSidecar := pod("sidecar", consumer("sidecar/app"))
	proxy, always := consumer("sidecar/proxy"), corev1.ContainerRestartPolicyAlways
	proxy.RestartPolicy = &always
	withSidecar.Spec.InitContainers = []corev1.Container{proxy}
	return append(pods, withSidecar)
}

// TestAgrees compares what weir and metrics-server report about the same steady
// pods at the same time, in consecutive rounds. If the machine is short of CPU,
// even a steady pod does not get what it wants, and the two servers use
// different windows. So each number is compared with what the kernel counted
// over its own window, and a kubelet may read a counter a moment after the time
// that it gives it. No round is left out. A pod of several containers has one
// window in the API, but each container was measured over its own. So a number
// that differs from the kernel's count must be the rate between two counts of
// that container that the kubelet reported, to a thousandth.
func TestAgrees(t *testing.T) {
	t.Parallel()
	const (
		rounds     = 24
		resolution = 15 * time.Second
	)
	w := sharedCluster
	namespace := w.namespace(t, "steady")
	for _, p := range steadyPods() {
		w.create(t, namespace, p)
	}
	names := slices.Sorted(maps.Keys(steady))
	t.Logf("weir serves all after %v", serves(t, "weir", w.weir, namespace, names...).Round(100*time.Millisecond))
	serves(t, "metrics-server", w.peer, namespace, names...)
	truths, counts := w.kernels(t, namespace), w.counts(t, namespace, names)
	// A rate over the start, or from before the first reading of the kernel's
	// counters, cannot be judged. After three more rounds there are no such rates.
	wait(t, 4*resolution)

	var ours, theirs [rounds]answer
	for round := range rounds {
		if round > 0 {
			wait(t, resolution)
		}
		var err error
		if ours[round], err = list(t.Context(), w.weir, namespace); err != nil {
			t.Fatal(err)
		}
		if theirs[round], err = list(t.Context(), w.peer, namespace); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, 2*time.Second) // the last window may end within a second

	worst, worstOff, rates := map[string]use{}, 0.0, 0
	for round := range rounds {
		for _, name := range names {
			our, okOur := ours[round][name]
			their, okTheir := theirs[round][name]
			if !okOur || !okTheir {
				t.Errorf("round %d: %s: served by weir: %v, by metrics-server: %v; want both", round, name, okOur, okTheir)
				continue
			}
			is, _, err := truths[name].judge(our, model.CounterLag)
			if err != nil {
				t.Errorf("round %d: %s: weir says %.2fm at %v over %v: %v", round, name, our.millicores, our.at, our.window, err)
				continue
			}
			was, _, err := truths[name].judge(their, model.CounterLag)
			if err != nil {
				t.Errorf("round %d: %s: metrics-server says %.2fm at %v over %v: %v", round, name, their.millicores, their.at, their.window, err)
				continue
			}
			off := math.Abs(our.millicores - is.millicores)
			worstOff = max(worstOff, off)
			ourRate, theirRate := counts.has(name, our), counts.has(name, their)
			if off > max(1, 0.03*is.millicores) && !ourRate {
				t.Errorf("round %d: %s: CPU %.2fm by weir, %.2fm by the kernel", round, name, our.millicores, is.millicores)
			}
			cpu := math.Abs(our.millicores - their.millicores - (is.millicores - was.millicores))
			if cpu > max(2, 0.03*their.millicores) && !(ourRate && theirRate) {
				t.Errorf("round %d: %s: CPU %.2fm by weir, %.2fm by metrics-server; by the kernel %.2fm and %.2fm; between counts of the kubelet's: %v and %v",
					round, name, our.millicores, their.millicores, is.millicores, was.millicores, ourRate, theirRate)
			}
			if ourRate {
				rates++
			}
			memory := math.Abs(our.bytes-their.bytes) / their.bytes
			if memory > 0.02 {
				t.Errorf("round %d: %s: memory %.1f Mi by weir, %.1f Mi by metrics-server", round, name, our.bytes/mebi, their.bytes/mebi)
			}
			worst[name] = use{max(worst[name].millicores, cpu), max(worst[name].bytes, memory)}
			if known := steady[name]; our.bytes < known.bytes || our.bytes > known.bytes+16*mebi {
				t.Errorf("round %d: %s: memory %.1f Mi, its consumer holds %.0f Mi", round, name, our.bytes/mebi, known.bytes/mebi)
			}
		}
	}
	t.Logf("%d rounds, CPU at most %.2fm off what the kernel counted, and %d of %d numbers the rate between two counts of the kubelet's; largest differences between the two servers:",
		rounds, worstOff, rates, rounds*len(names))
	if rates < rounds*len(names)*9/10 { // the kubelet may have been read here a moment after weir read it
		t.Errorf("%d of %d numbers are the rate between two counts that the kubelet told of that container", rates, rounds*len(names))
	}
	for _, name := range names {
		t.Logf("  %-14s %5.2fm  %.2f%% of memory", name, worst[name].millicores, 100*worst[name].bytes)
	}
}

// kernels starts to read the kernel's counters of each running container of a
// namespace, by "pod/container".
func (w *testCluster) kernels(t *testing.T, namespace string) map[string]*kernel {
	t.Helper()
	pods, err := w.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*kernel{}
	for i := range pods.Items {
		p := &pods.Items[i]
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if s.State.Running != nil {
				g := w.PodCgroup(p.Status.QOSClass, p.UID).Container(s.ContainerID)
				all[p.Name+"/"+s.Name] = count(t, g, s.State.Running.StartedAt.Time)
			}
		}
	}
	return all
}

// wait waits for d, or until the test ends.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}
