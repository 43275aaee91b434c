package informer

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/weir-metrics/weir/test/background"
	"github.com/weir-metrics/weir/test/cmptest"
)

// active returns the pods of c, each with its UID and phase.
func active(c *Cluster) []string {
	names := []string{}
	for _, p := range c.NodePods() {
		names = append(names, fmt.Sprintf("%s/%s %s %s", p.Namespace, p.Name, p.UID, p.Status.Phase))
	}
	return names
}

func TestNodePods(t *testing.T) {
	ended := pod("ended", "u3", "n1")
	ended.Status.Phase = v1.PodFailed
	running(t, Options{Node: "n1"}, func(t *testing.T, c *Cluster, client *fake.Clientset) {
		ctx := t.Context()
		pods := client.CoreV1().Pods("shop")
		want := func(what string, names ...string) {
			t.Helper()
			settle()
			cmptest.Equal(t, what, names, active(c))
		}
		want("the first list, without what has ended", "shop/cart u2 Running", "shop/web u1 Running")
		before := c.NodePods()
		if got := before[1].Spec.Containers; len(got) != 1 || got[0].Name != "app" {
			t.Errorf("web has containers %v, want app: the pods are whole", got)
		}
		if c.NodePods()[0] != before[0] || &c.NodePods()[0] != &before[0] {
			t.Error("nothing has changed, and it is another slice")
		}

		must(t, second(pods.Create(ctx, pod("api", "u4", "n1"), metav1.CreateOptions{})))
		want("one more", "shop/api u4 Running", "shop/cart u2 Running", "shop/web u1 Running")
		if len(before) != 2 || before[0].Name != "cart" {
			t.Error("what was handed out earlier has changed")
		}

		done := pod("cart", "u2", "n1")
		done.Status.Phase = v1.PodSucceeded
		must(t, second(pods.Update(ctx, done, metav1.UpdateOptions{})))
		want("one ended", "shop/api u4 Running", "shop/web u1 Running")

		// A change that facts do not contain is kept too.
		limits := pod("api", "u4", "n1")
		limits.Spec.Volumes = []v1.Volume{{Name: "data"}}
		must(t, second(pods.Update(ctx, limits, metav1.UpdateOptions{})))
		settle()
		if got := c.NodePods()[0].Spec.Volumes; len(got) != 1 {
			t.Errorf("api has volumes %v, want data", got)
		}

		must(t, pods.Delete(ctx, "web", metav1.DeleteOptions{}))
		must(t, second(pods.Create(ctx, pod("web", "u9", "n1"), metav1.CreateOptions{})))
		want("another of the same name", "shop/api u4 Running", "shop/web u9 Running")
		must(t, pods.Delete(ctx, "api", metav1.DeleteOptions{}))
		must(t, pods.Delete(ctx, "web", metav1.DeleteOptions{}))
		want("none left", []string{}...)
		if c.NodePods() == nil {
			t.Error("no pods are nil, want none: nil is for not knowing")
		}
	}, node("n1"), pod("web", "u1", "n1"), pod("cart", "u2", "n1"), ended)
}

// Pods are known as soon as they are listed, even if nodes are not.
func TestNodePodsAreNilUntilListed(t *testing.T) {
	c := NewForClient(fake.NewClientset(), Options{Node: "n1"})
	if c.NodePods() != nil {
		t.Errorf("before anything was heard: %v, want nil", active(c))
	}
	c.queue.change(time.Unix(1, 0), (*pending).onlyNewNodes)
	c.publish(c.queue.take())
	if c.NodePods() != nil {
		t.Errorf("after the nodes alone: %v, want nil", active(c))
	}
	c.queue.change(time.Unix(2, 0), (*pending).onlyNewPods)
	c.publish(c.queue.take())
	if c.NodePods() == nil {
		t.Error("after the pods: nil, want none")
	}
}

func TestWithoutANodeNoPodIsKeptWhole(t *testing.T) {
	running(t, Options{}, func(t *testing.T, c *Cluster, _ *fake.Clientset) {
		if c.NodePods() != nil {
			t.Errorf("got %v, want nil", active(c))
		}
		if c.Facts().Pods() != 1 {
			t.Errorf("%d pods in the facts, want 1", c.Facts().Pods())
		}
	}, node("n1"), pod("web", "u1", "n1"))
}

// TestOnlyOneNodeIsAskedFor checks that every list and watch is limited to the one node.
func TestOnlyOneNodeIsAskedFor(t *testing.T) {
	for _, test := range []struct {
		node string
		want []string
	}{
		{"n1", []string{"list nodes metadata.name=n1", "list pods spec.nodeName=n1", "watch nodes metadata.name=n1", "watch pods spec.nodeName=n1"}},
		{"", []string{"list nodes ", "list pods ", "watch nodes ", "watch pods "}},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(node("n1"), node("n2"))
			var o Options
			if test.node != "" {
				o.Node = "n1"
			}
			c := NewForClient(client, o)
			stop := background.Run(t, c.Run)
			settle()
			stop()
			var got []string
			for _, a := range client.Actions() {
				got = append(got, a.GetVerb()+" "+a.GetResource().Resource+" "+selected(a).String())
			}
			slices.Sort(got)
			cmptest.Equal(t, fmt.Sprintf("requests with Node %q", test.node), test.want, slices.Compact(got))
		})
	}
}

// selected returns the field selector of a list or watch.
func selected(a ktesting.Action) fields.Selector {
	switch a := a.(type) {
	case ktesting.ListAction:
		return a.GetListRestrictions().Fields
	case ktesting.WatchAction:
		return a.GetWatchRestrictions().Fields
	}
	return fields.Nothing()
}
