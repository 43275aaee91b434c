//go:build e2e

package apis

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The load of these tests: a pod requests 30m and the target is half of that. A
// pod that uses 35m is at 117%, which needs 2.3 replicas. With three replicas
// the mean is 39%, which needs 2.3 again. A fourth replica needs more than
// 49.5m, so the pods have 14m for what they use besides their load: 1.5m each,
// and more on a machine whose processors are shared.
const (
	requested = "30m"
	busy      = 35
	idle      = 0
	many, few = 3, 1
)

// loadable creates a Deployment of one replica with a load that can be changed.
func (w *testCluster) loadable(t *testing.T, namespace, name string) {
	t.Helper()
	app := container("app", "serve", "--listen=:8080")
	app.Resources.Requests[corev1.ResourceCPU] = resource.MustParse(requested)
	w.deployment(t, namespace, name, app)
}

// settle waits until a Deployment has no more pods than it wants. Otherwise the
// load could be on a pod that is about to end.
func (w *testCluster) settle(ctx context.Context, namespace, name string) error {
	return again(ctx, time.Minute, func() error {
		d, err := w.kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := &d.Status; s.ObservedGeneration < d.Generation || s.Replicas > *d.Spec.Replicas {
			return fmt.Errorf("%s has %d pods of %d", name, s.Replicas, *d.Spec.Replicas)
		}
		return nil
	})
}

// load makes one pod of a Deployment use this much CPU, and the others none.
func (w *testCluster) load(ctx context.Context, namespace, name string, millicores int) error {
	pods, err := w.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return err
	}
	loaded := false
	for _, p := range pods.Items {
		if p.DeletionTimestamp != nil || startOf(&p).IsZero() {
			continue
		}
		level := idle
		if !loaded {
			level = millicores
		}
		if err := burn(ctx, p.Status.PodIP, level); err != nil {
			return err
		}
		loaded = true
	}
	if !loaded {
		return fmt.Errorf("no pod of %s runs", name)
	}
	return nil
}

// burn makes a workload's server use this much CPU from now on.
func burn(ctx context.Context, ip string, millicores int) error {
	return setLoad(ctx, ip, fmt.Sprintf("/burn?millicores=%d", millicores))
}

// visit sends a request to a workload's server. The body of the answer is
// ignored.
func visit(t *testing.T, ip, path string) {
	t.Helper()
	if err := setLoad(t.Context(), ip, path); err != nil {
		t.Fatal(err)
	}
}

// setLoad sends a request to a workload's server. A container is ready as soon
// as it runs, a moment before its server listens, so setLoad tries again if
// there is no answer.
func setLoad(ctx context.Context, ip, path string) error {
	return again(ctx, 30*time.Second, func() error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, err := get(ctx, "http://"+ip+":8080"+path)
		return err
	})
}

// change is a change of a Deployment's wanted number of replicas.
type change struct {
	at       time.Time
	replicas int32
}

// scales has the changes of each Deployment of a namespace, with their times.
type scales struct {
	mu      sync.Mutex
	all     map[string][]change
	changed chan struct{} // closed at the next change
	err     error         // why no more changes are seen
}

// watchScales watches the Deployments of a namespace until the test ends.
func (w *testCluster) watchScales(t *testing.T, namespace string) *scales {
	t.Helper()
	s := &scales{all: map[string][]change{}, changed: make(chan struct{})}
	watcher, err := w.kube.AppsV1().Deployments(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			s.see(time.Now(), event.Object)
		}
		s.see(time.Now(), nil)
	}()
	return s
}

// see notes an object from the watch, or nil at its end.
func (s *scales) see(now time.Time, object runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, ok := object.(*appsv1.Deployment); !ok {
		s.err = fmt.Errorf("the watch of Deployments ended with %+v", object)
	} else if seen := s.all[d.Name]; len(seen) > 0 && seen[len(seen)-1].replicas == *d.Spec.Replicas {
		return
	} else {
		s.all[d.Name] = append(seen, change{now, *d.Spec.Replicas})
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// of returns a Deployment's changes since a time, and the last number of
// replicas before it.
func (s *scales) of(name string, since time.Time) (before int32, after []change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.all[name] {
		if !c.at.Before(since) {
			return before, s.all[name][i:len(s.all[name]):len(s.all[name])]
		}
		before = c.replicas
	}
	return before, nil
}

// waitForReplicas waits until a Deployment wants this number of replicas. It
// only counts changes after since. It returns the times of the first change and
// of the change to this number.
func (s *scales) waitForReplicas(ctx context.Context, name string, replicas int32, since time.Time, within time.Duration) (first, final time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		s.mu.Lock()
		changed, err := s.changed, s.err
		s.mu.Unlock()
		_, after := s.of(name, since)
		for _, c := range after {
			if c.replicas == replicas {
				return after[0].at, c.at, nil
			}
		}
		if err != nil {
			return time.Time{}, time.Time{}, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return time.Time{}, time.Time{}, fmt.Errorf("%s is not scaled to %d within %v: %s", name, replicas, within, inWords(after, since))
		}
	}
}

// inWords returns the changes as text, with their time after since.
func inWords(changes []change, since time.Time) string {
	if len(changes) == 0 {
		return "no change"
	}
	var words []string
	for _, c := range changes {
		words = append(words, fmt.Sprintf("%d after %.1fs", c.replicas, c.at.Sub(since).Seconds()))
	}
	return strings.Join(words, ", ")
}
