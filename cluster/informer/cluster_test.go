package informer

import (
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/background"
)

func node(name string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func pod(name, uid, on string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid)},
		Spec:       v1.PodSpec{NodeName: on, Containers: []v1.Container{{Name: "app"}}},
		Status:     v1.PodStatus{Phase: v1.PodRunning},
	}
}

// running runs a Cluster with client in its own bubble of time, in which only do acts, and waits
// for its end.
func running(t *testing.T, o Options, do func(t *testing.T, c *Cluster, client *fake.Clientset), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects...)
		c := NewForClient(client, o)
		background.Run(t, c.Run)
		settle()
		do(t, c, client)
	})
}

// settle waits until all goroutines are idle and a debounce has passed.
func settle() {
	synctest.Wait()
	time.Sleep(time.Second) // in the time of the bubble
	synctest.Wait()
}

func signalled(c *Cluster) bool {
	select {
	case <-c.Changed():
		return true
	default:
		return false
	}
}

func web(f *cluster.Facts, name metric.PodName) *cluster.Pod {
	return f.Pod(metric.PodRef{Namespace: "shop", Name: name})
}

func TestFactsFollowTheCluster(t *testing.T) {
	running(t, Options{}, func(t *testing.T, c *Cluster, client *fake.Clientset) {
		f := c.Facts()
		if !f.Synced || f.Nodes() != 1 || web(f, "web") == nil {
			t.Fatalf("after the first lists: synced=%v nodes=%d web=%v, want all of it", f.Synced, f.Nodes(), web(f, "web"))
		}
		if !signalled(c) {
			t.Error("the first lists were not signalled")
		}
		firstKnown := web(f, "web").KnownAt

		ctx := t.Context()
		must(t, second(client.CoreV1().Nodes().Create(ctx, node("n2"), metav1.CreateOptions{})))
		settle()
		if c.Facts().Node("n2") == nil || !signalled(c) {
			t.Error("a new node is not known, or not signalled")
		}
		if f.Node("n2") != nil {
			t.Error("facts handed out earlier have changed")
		}

		// An update that changes nothing that weir keeps is not a change.
		same := pod("web", "u1", "n1")
		same.Spec.Volumes = []v1.Volume{{Name: "data"}}
		must(t, second(client.CoreV1().Pods("shop").Update(ctx, same, metav1.UpdateOptions{})))
		settle()
		if signalled(c) {
			t.Error("an update that weir does not care for was signalled")
		}

		// Readiness is a change: autoscalers depend on it.
		ready := pod("web", "u1", "n1")
		since := metav1.NewTime(time.Now().Truncate(time.Second))
		ready.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: since}}
		must(t, second(client.CoreV1().Pods("shop").Update(ctx, ready, metav1.UpdateOptions{})))
		settle()
		if got := web(c.Facts(), "web"); !signalled(c) || got.Ready != cluster.ReadyTrue || !got.ReadySince.Equal(since.Time) {
			t.Errorf("a pod that became ready: got %v since %v, want true since %v, and a signal", got.Ready, got.ReadySince, since)
		}

		// An update of the same pod keeps the time when it was first known.
		moved := pod("web", "u1", "n1")
		moved.Status.Phase = v1.PodSucceeded
		must(t, second(client.CoreV1().Pods("shop").Update(ctx, moved, metav1.UpdateOptions{})))
		settle()
		if got := web(c.Facts(), "web"); got.Phase != cluster.Succeeded || !got.KnownAt.Equal(firstKnown) {
			t.Errorf("updated pod: phase %v known at %v, want Succeeded, %v", got.Phase, got.KnownAt, firstKnown)
		}

		// A pod that is deleted and created again under the same name within one debounce is a new
		// pod.
		must(t, client.CoreV1().Pods("shop").Delete(ctx, "web", metav1.DeleteOptions{}))
		must(t, second(client.CoreV1().Pods("shop").Create(ctx, pod("web", "u2", "n2"), metav1.CreateOptions{})))
		settle()
		f = c.Facts()
		if got := web(f, "web"); got == nil || got.UID != "u2" || !got.KnownAt.After(firstKnown) {
			t.Errorf("pod created again: %+v, want u2, known later than %v", got, firstKnown)
		}
		if len(f.PodsOn("n1")) != 0 || len(f.PodsOn("n2")) != 1 {
			t.Errorf("pods on n1, n2: %d, %d, want 0, 1", len(f.PodsOn("n1")), len(f.PodsOn("n2")))
		}

		must(t, client.CoreV1().Pods("shop").Delete(ctx, "web", metav1.DeleteOptions{}))
		must(t, client.CoreV1().Nodes().Delete(ctx, "n1", metav1.DeleteOptions{}))
		settle()
		if f := c.Facts(); web(f, "web") != nil || f.Node("n1") != nil || f.Nodes() != 1 {
			t.Errorf("after deletion: web %v, n1 %v, %d nodes, want nil, nil, 1", web(f, "web"), f.Node("n1"), f.Nodes())
		}
	}, node("n1"), pod("web", "u1", "n1"))
}

func TestSyncedOnlyAfterBothLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(node("n1"))
		var broken atomic.Bool
		broken.Store(true)
		client.PrependReactor("list", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
			return broken.Load(), nil, errors.New("forbidden")
		})
		logs, seen := observer.New(zap.InfoLevel)
		c := NewForClient(client, Options{Logger: zap.New(logs)})
		background.Run(t, c.Run)
		settle()
		if f := c.Facts(); f.Synced || f.Nodes() != 1 {
			t.Errorf("pods cannot be listed: synced %v with %d nodes, want false, 1", f.Synced, f.Nodes())
		}
		settle()
		if got := seen.FilterMessageSnippet("cannot be read").Len(); got != 1 {
			t.Errorf("%d lines about it, want 1:\n%v", got, seen.All())
		}

		broken.Store(false)
		time.Sleep(2 * time.Minute) // longer than any back-off
		synctest.Wait()
		if f := c.Facts(); !f.Synced {
			t.Error("pods have been listed and facts are not synced")
		}
		if got := seen.FilterMessageSnippet("answers again").Len(); got != 1 {
			t.Errorf("%d lines about the recovery, want 1:\n%v", got, seen.All())
		}
	})
}

// While the API server sends nothing, the facts and their time stay unchanged.
func TestSilence(t *testing.T) {
	logs, seen := observer.New(zap.WarnLevel)
	running(t, Options{Logger: zap.New(logs)}, func(t *testing.T, c *Cluster, client *fake.Clientset) {
		before := c.Facts()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if after := c.Facts(); after != before {
			t.Errorf("facts of %v became those of %v without a word from the API server", before.At, after.At)
		}
		if got := seen.FilterMessageSnippet("has sent nothing about pods").Len(); got != 1 {
			t.Errorf("%d lines about the silence, want 1", got)
		}
	}, node("n1"), pod("web", "u1", "n1"))
}

// The time of the facts is that of the pods: news of nodes do not show what happened to pods.
func TestOnlyPodsMoveTheTime(t *testing.T) {
	logs, seen := observer.New(zap.WarnLevel)
	running(t, Options{Logger: zap.New(logs)}, func(t *testing.T, c *Cluster, client *fake.Clientset) {
		before := c.Facts().At
		for i := range 6 {
			time.Sleep(time.Minute)
			changed := node("n1")
			changed.Labels = map[string]string{"round": strconv.Itoa(i)}
			must(t, second(client.CoreV1().Nodes().Update(t.Context(), changed, metav1.UpdateOptions{})))
			settle()
		}
		if f := c.Facts(); !f.At.Equal(before) || f.Node("n1").Labels["round"] != "5" {
			t.Errorf("facts are of %v, node has round %s; want %v, 5", f.At, f.Node("n1").Labels["round"], before)
		}
		if got := seen.FilterMessageSnippet("has sent nothing about pods").Len(); got != 1 {
			t.Errorf("%d lines about the silence, want 1", got)
		}
		must(t, second(client.CoreV1().Pods("shop").Update(t.Context(), pod("web", "u1", "n2"), metav1.UpdateOptions{})))
		settle()
		if at := c.Facts().At; !at.After(before) {
			t.Errorf("facts are of %v after an event of a pod, want later than %v", at, before)
		}
	}, node("n1"), pod("web", "u1", "n1"))
}

// A second list shows which pods have gone. The others keep the time when they were first known.
func TestListedAgain(t *testing.T) {
	at := time.Unix(1000, 0)
	facts := func(name, uid string, known time.Time) *cluster.Pod {
		return podFacts(pod(name, uid, "n1"), known, newPool())
	}
	q := newQueue()
	list := func(at time.Time, pods ...*cluster.Pod) {
		q.change(at, func(p *pending) {
			p.onlyNewNodes()
			p.nodes["n1"] = nodeFacts(node("n1"))
			p.onlyNewPods()
			for _, f := range pods {
				p.pods[f.PodRef] = f
			}
		})
	}
	list(at, facts("web", "u1", at), facts("gone", "u2", at))
	p := q.take()
	first, _ := p.apply(nil)

	later := at.Add(time.Hour)
	list(later, facts("web", "u1", later), facts("new", "u3", later))
	p = q.take()
	second, changed := p.apply(first)
	if !changed || !second.Synced || !second.At.Equal(later) || second.Nodes() != 1 {
		t.Errorf("changed=%v synced=%v at=%v nodes=%d, want true, true, %v, 1", changed, second.Synced, second.At, second.Nodes(), later)
	}
	if got := web(second, "web"); got == nil || !got.KnownAt.Equal(at) {
		t.Errorf("web: %+v, want it known at %v", got, at)
	}
	if web(second, "gone") != nil || web(second, "new") == nil || len(second.PodsOn("n1")) != 2 {
		t.Errorf("gone: %v, new: %v, %d pods on n1; want nil, a pod, 2", web(second, "gone"), web(second, "new"), len(second.PodsOn("n1")))
	}

	q.change(later.Add(time.Minute), nil) // a bookmark
	p = q.take()
	third, changed := p.apply(second)
	if changed || !third.At.Equal(later.Add(time.Minute)) || web(third, "web") != web(second, "web") {
		t.Errorf("after a bookmark: changed=%v at=%v, want false and a minute later", changed, third.At)
	}
}

// A reflector that streams its first list collects the result of Transformer.
func TestTransformer(t *testing.T) {
	c := NewForClient(fake.NewClientset(), Options{})
	s := &store[*v1.Pod, podView]{
		now: time.Now, queue: c.queue, all: (*pending).onlyNewPods,
		convert: func(p *v1.Pod) podView { return podView{facts: podFacts(p, time.Time{}, newPool())} },
		set:     (*pending).setPod,
	}
	transform := s.Transformer()
	small, err := transform(pod("web", "u1", "n1"))
	must(t, err)
	if again, err := transform(small); err != nil || again != small {
		t.Errorf("transformed twice: %v, %v, want the same", again, err)
	}
	if o, ok := small.(metav1.Object); !ok || o.GetName() != "web" || o.GetNamespace() != "shop" {
		t.Errorf("transformed to %T, which has no name", small)
	}
	must(t, s.Replace([]any{small}, "1"))
	if p := c.queue.take(); len(p.pods) != 1 || !p.listedPods {
		t.Errorf("%d pods taken, listed %v; want 1, true", len(p.pods), p.listedPods)
	}
	if err := s.Add(node("n1")); err == nil {
		t.Error("a node was taken for a pod")
	}
}

func TestNewNeedsACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := New(Options{}); err == nil {
		t.Error("outside a cluster and without a kubeconfig, New succeeded")
	}
	if _, err := New(Options{Kubeconfig: "testdata/no-such-file"}); err == nil {
		t.Error("without the named kubeconfig, New succeeded")
	}
	if _, err := New(Options{Master: "https://127.0.0.1:1"}); err != nil {
		t.Errorf("with a server's URL: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
