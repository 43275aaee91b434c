package execute

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecycle "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-metrics/weir/eviction"
)

// requesting returns an Executor of mode request, and its API server.
func requesting(t *testing.T, p *corev1.Pod) (*Executor, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(p)
	x, err := New(Options{Mode: Request, Client: client, Node: node, Self: "uid-weir"})
	if err != nil {
		t.Fatal(err)
	}
	return x, client
}

// requests returns the EvictionRequests in the API server.
func requests(t *testing.T, c *fake.Clientset) []lifecycle.EvictionRequest {
	t.Helper()
	list, err := c.LifecycleV1alpha1().EvictionRequests("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// TestARequestIsFollowed checks the EvictionRequest, and that it is withdrawn when the pod is gone.
func TestARequestIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, c := requesting(t, pod("app"))
		go func() { // the cluster's controllers
			time.Sleep(10500 * time.Millisecond)
			list := requests(t, c)
			if len(list) != 1 {
				t.Errorf("got %d requests, want 1", len(list))
				return
			}
			diff(t, "the request", lifecycle.EvictionRequestSpec{
				Target:    lifecycle.EvictionRequestTarget{Pod: &lifecycle.EvictionRequestPodReference{Name: "app", UID: "uid-app"}},
				Requester: "weir.dev/agent", Intent: lifecycle.EvictionRequestIntentEviction,
			}, list[0].Spec)
			diff(t, "its owner", []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "app", UID: "uid-app"}}, list[0].OwnerReferences)
			if err := c.CoreV1().Pods("web").Delete(t.Context(), "app", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}()
		o := only(t, x.Execute(t.Context(), decision(0, killOf("app", 1))))
		diff(t, "outcome", ActionOutcome{
			At: began, Result: Requested, Mode: Request, Hard: true, Signal: "memory.available",
			Pod: eviction.PodIdentity{Namespace: "web", Name: "app", UID: "uid-app"}, Removed: true, Waited: 11 * time.Second,
			Message: "requested the eviction of pod web/app by EvictionRequest weir-uid-app, for memory.available; it was gone after 11s",
		}, o)
		if list := requests(t, c); len(list) > 0 {
			t.Errorf("%d requests stay", len(list))
		}
		for _, a := range c.Actions() {
			if a.GetSubresource() == "eviction" || a.GetVerb() == "patch" {
				t.Errorf("the executor itself did %s %s/%s", a.GetVerb(), a.GetResource().Resource, a.GetSubresource())
			}
		}
	})
}

// TestARequestThatNobodyFollowsIsWithdrawn checks that the executor gives up after a while, when the
// request has failed, and when the wait is interrupted, and that it then withdraws the request.
func TestARequestThatNobodyFollowsIsWithdrawn(t *testing.T) {
	f := func(what string, change func(*testing.T, *fake.Clientset, context.CancelFunc), waited time.Duration, words string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			x, c := requesting(t, pod("app"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				time.Sleep(10500 * time.Millisecond)
				change(t, c, cancel)
			}()
			o := only(t, x.Execute(ctx, decision(0, killOf("app", 1))))
			if o.Result != Requested || o.Removed || o.Waited != waited || !strings.Contains(o.Message, words) {
				t.Errorf("%s: got %+v, want a wait of %s and %q", what, o, waited, words)
			}
			if list := requests(t, c); len(list) > 0 {
				t.Errorf("%s: %d requests stay", what, len(list))
			}
		})
	}
	status := func(t *testing.T, c *fake.Clientset, s lifecycle.EvictionRequestStatus) {
		list := requests(t, c)
		list[0].Status = s
		if _, err := c.LifecycleV1alpha1().EvictionRequests("web").UpdateStatus(t.Context(), &list[0], metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
	f("no controller", func(*testing.T, *fake.Clientset, context.CancelFunc) {}, 2*time.Minute, "no controller has taken up its EvictionRequest")
	f("a slow responder", func(t *testing.T, c *fake.Clientset, _ context.CancelFunc) {
		status(t, c, lifecycle.EvictionRequestStatus{ObservedGeneration: new(int64(1))})
	}, 2*time.Minute, "after 2m0s it was still in the API: stopped waiting for it")
	f("failed", func(t *testing.T, c *fake.Clientset, _ context.CancelFunc) {
		status(t, c, lifecycle.EvictionRequestStatus{ObservedGeneration: new(int64(1)), Conditions: []metav1.Condition{
			{Type: "Failed", Status: metav1.ConditionTrue, Reason: "NoFurtherResponder", Message: "nobody responds"},
		}})
	}, 11*time.Second, "its EvictionRequest has failed (NoFurtherResponder: nobody responds)")
	f("interrupted", func(_ *testing.T, _ *fake.Clientset, cancel context.CancelFunc) { cancel() }, 10500*time.Millisecond, "stopped waiting for it")
}

// TestRequestsThatAreNotMade checks pods and answers for which no request stays.
func TestRequestsThatAreNotMade(t *testing.T) {
	f := func(what string, p *corev1.Pod, answer error, want Result, words string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			x, c := requesting(t, p)
			c.PrependReactor("create", "evictionrequests", func(clienttesting.Action) (bool, runtime.Object, error) { return answer != nil, nil, answer })
			o := only(t, x.Execute(t.Context(), decision(0, killOf("app", 1))))
			if o.Result != want || !strings.Contains(o.Message, words) {
				t.Errorf("%s: got %s: %s, want %s: %q", what, o.Result, o.Message, want, words)
			}
			if list := requests(t, c); len(list) > 0 {
				t.Errorf("%s: %d requests stay", what, len(list))
			}
		})
	}
	f("of a PodGroup", pod("app", func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{} }), nil, Refused, "part of a PodGroup")
	f("of another node", pod("app", func(p *corev1.Pod) { p.Spec.NodeName = "n2" }), nil, Refused, `on node "n2"`)
	f("replaced", pod("app", func(p *corev1.Pod) { p.UID = "uid-other" }), nil, Gone, "another")
	f("no such API", pod("app"), apierrors.NewNotFound(lifecycle.Resource("evictionrequests"), ""), Failed, ErrNoRequests.Error())
	f("forbidden", pod("app"), apierrors.NewForbidden(lifecycle.Resource("evictionrequests"), "", errors.New("no")), Failed, "lacks this right")
}

// TestCheckRequests checks what a cluster says of its resources.
func TestCheckRequests(t *testing.T) {
	c := fake.NewClientset()
	if err := CheckRequests(t.Context(), c.Discovery()); !errors.Is(err, ErrNoRequests) {
		t.Errorf("without the group: %v", err)
	}
	c.Resources = slices.Concat(c.Resources, []*metav1.APIResourceList{{GroupVersion: "lifecycle.k8s.io/v1alpha1", APIResources: []metav1.APIResource{{Name: "evictions"}}}})
	if err := CheckRequests(t.Context(), c.Discovery()); !errors.Is(err, ErrNoRequests) {
		t.Errorf("without the resource: %v", err)
	}
	c.Resources[0].APIResources = append(c.Resources[0].APIResources, metav1.APIResource{Name: "evictionrequests"})
	if err := CheckRequests(t.Context(), c.Discovery()); err != nil {
		t.Errorf("with it: %v", err)
	}
}
