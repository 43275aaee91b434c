//go:build e2e

package apis

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"
)

// sighting is the time at which a server was first seen to serve a sample of a
// pod, and the time of that sample.
type sighting struct{ seen, sample time.Time }

// watcher lists a namespace's pods from one server several times a second and
// remembers each new sample.
type watcher struct {
	mu        sync.Mutex
	sightings map[string][]sighting
	failures  []error
}

func watch(ctx context.Context, c *metricsclient.Clientset, namespace string) *watcher {
	w := &watcher{sightings: map[string][]sighting{}}
	go func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			pods, err := c.MetricsV1beta1().PodMetricses(namespace).List(ctx, metav1.ListOptions{})
			now := time.Now()
			w.mu.Lock()
			if err != nil && ctx.Err() == nil {
				w.failures = append(w.failures, err)
			} else if err == nil {
				for _, p := range pods.Items {
					all := w.sightings[p.Name]
					if len(all) == 0 || !all[len(all)-1].sample.Equal(p.Timestamp.Time) {
						w.sightings[p.Name] = append(all, sighting{now, p.Timestamp.Time})
					}
				}
			}
			w.mu.Unlock()
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return w
}

// first returns the time from a container's start until its pod was first
// served with a sample from after that start.
func (w *watcher) first(pod string, started time.Time) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sightings[pod] {
		if s.sample.After(started) {
			return s.seen.Sub(started), true
		}
	}
	return 0, false
}

// TestFirstMetric measures how soon after its start a container is served by
// weir and by metrics-server, for new pods and for containers that restarted.
func TestFirstMetric(t *testing.T) {
	const (
		pods     = 30
		restarts = 12
		apart    = 1700 * time.Millisecond // it does not divide the resolution
		patience = 90 * time.Second
	)
	w := sharedCluster
	namespace := w.namespace(t, "newcomers")
	ours, theirs := watch(t.Context(), w.weir, namespace), watch(t.Context(), w.peer, namespace)

	name := func(i int) string { return fmt.Sprintf("new-%02d", i) }
	for i := range pods {
		w.create(t, namespace, pod(name(i), container("app", "serve", "--listen=:8080", "--millicores=5")))
		wait(t, apart)
	}
	var our, their []time.Duration
	measure := func(names []string) {
		for _, pod := range names {
			var started time.Time
			eventually(t, pod+" is served by both", patience, func() error {
				status, err := w.kube.CoreV1().Pods(namespace).Get(t.Context(), pod, metav1.GetOptions{})
				if err != nil {
					return err
				}
				if started = startOf(status); started.IsZero() {
					return fmt.Errorf("it does not run")
				}
				a, okA := ours.first(pod, started)
				b, okB := theirs.first(pod, started)
				if !okA || !okB {
					return fmt.Errorf("served by weir: %v, by metrics-server: %v", okA, okB)
				}
				our, their = append(our, a), append(their, b)
				return nil
			})
		}
	}
	var all []string
	for i := range pods {
		all = append(all, name(i))
	}
	measure(all)
	for i := range restarts {
		w.restart(t, namespace, name(i))
		wait(t, apart)
	}
	measure(all[:restarts])

	a50, a95, b50, b95 := quantile(our, 0.5), quantile(our, 0.95), quantile(their, 0.5), quantile(their, 0.95)
	t.Logf("first metric of %d containers (%d of them restarted in place), after their start:\n"+
		"  weir            p50 %5.1fs  p95 %5.1fs\n  metrics-server  p50 %5.1fs  p95 %5.1fs",
		len(our), restarts, a50.Seconds(), a95.Seconds(), b50.Seconds(), b95.Seconds())
	if a50 > b50 || a95 > b95 {
		t.Errorf("weir is later than metrics-server: p50 %v against %v, p95 %v against %v", a50, b50, a95, b95)
	}
	for _, w := range []*watcher{ours, theirs} {
		w.mu.Lock()
		if len(w.failures) > 0 {
			t.Errorf("%d requests failed, the first with: %v", len(w.failures), w.failures[0])
		}
		w.mu.Unlock()
	}
}

// restart makes a pod's container end with an error, and waits until it runs
// again.
func (w *testCluster) restart(t *testing.T, namespace, pod string) {
	t.Helper()
	status, err := w.kube.CoreV1().Pods(namespace).Get(t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before := status.Status.ContainerStatuses[0].RestartCount
	visit(t, status.Status.PodIP, "/exit?code=1")
	eventually(t, pod+" restarts", time.Minute, func() error {
		status, err := w.kube.CoreV1().Pods(namespace).Get(t.Context(), pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := status.Status.ContainerStatuses[0]; s.RestartCount <= before || s.State.Running == nil {
			return fmt.Errorf("restarted %d times", s.RestartCount)
		}
		return nil
	})
}

// startOf returns when the pod's container started, or the zero time if it does
// not run.
func startOf(p *corev1.Pod) time.Time {
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Running != nil {
			return s.State.Running.StartedAt.Time
		}
	}
	return time.Time{}
}

// quantile returns the smallest value in d for which at least a share q of all
// values is not larger.
func quantile(d []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
