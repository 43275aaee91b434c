//go:build e2e

package node

import (
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// A fate says what happened to a pod, and when. A time is zero if it did not
// happen.
type fate struct {
	pod                              string
	target, deletion, gone, finished time.Time
	reason, message                  string // of the condition DisruptionTarget
}

// fates are the fates of a namespace's pods, and the conditions of the node.
type fates struct {
	mu         sync.Mutex
	order      []*fate // in the order in which they became a target or were deleted
	of         map[string]*fate
	conditions map[corev1.NodeConditionType]time.Time // when a condition was first seen as True
}

// fates watches the pods of a namespace until the end of the test. It ignores
// pods that are already a target or being deleted.
func (w *testCluster) fates(t *testing.T, namespace string) *fates {
	t.Helper()
	f := &fates{of: map[string]*fate{}, conditions: map[corev1.NodeConditionType]time.Time{}}
	before, err := w.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range before.Items {
		f.pod(&before.Items[i], false, time.Now())
	}
	f.order = nil
	pods, err := w.kube.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := w.kube.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for e := range pods.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok {
				f.pod(p, e.Type == watch.Deleted, time.Now())
			}
		}
	})
	watching.Go(func() {
		for e := range nodes.ResultChan() {
			if n, ok := e.Object.(*corev1.Node); ok {
				f.node(n, time.Now())
			}
		}
	})
	t.Cleanup(func() { pods.Stop(); nodes.Stop(); watching.Wait() })
	return f
}

func (f *fates) pod(p *corev1.Pod, gone bool, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.of[p.Name]
	if x == nil {
		x = &fate{pod: p.Name}
		f.of[p.Name] = x
	}
	once := func(at *time.Time, is bool) {
		if !is || !at.IsZero() {
			return
		}
		*at = now
	}
	before := *x
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			x.reason, x.message = c.Reason, c.Message
			once(&x.target, true)
		}
	}
	once(&x.deletion, p.DeletionTimestamp != nil)
	once(&x.gone, gone)
	once(&x.finished, p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded)
	if before.target.IsZero() && before.deletion.IsZero() && (!x.target.IsZero() || !x.deletion.IsZero()) {
		f.order = append(f.order, x)
	}
}

func (f *fates) node(n *corev1.Node, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range n.Status.Conditions {
		if _, seen := f.conditions[c.Type]; !seen && c.Status == corev1.ConditionTrue {
			f.conditions[c.Type] = now
		}
	}
}

// evicted returns all fates, in order of time.
func (f *fates) evicted() (all []fate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.order {
		all = append(all, *x)
	}
	return all
}

// condition returns when the node was first seen to have a condition.
func (f *fates) condition(of corev1.NodeConditionType) (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.conditions[of]
	return at, ok
}
