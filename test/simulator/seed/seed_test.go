package seed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-metrics/weir/test/simulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)

func newFleet(t *testing.T, faults ...string) *simulator.Fleet {
	t.Helper()
	o := simulator.Options{Nodes: 3, Pods: 6, Start: start}
	for _, text := range faults {
		f, err := simulator.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Faults = append(o.Faults, f)
	}
	f, err := simulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestObjectsAreTheAPIsOwn checks that the simulator's JSON has no member that
// the API's types do not have.
func TestObjectsAreTheAPIsOwn(t *testing.T) {
	f := newFleet(t, "restart pod=*-store-0-0 at=5s")
	strict := func(doc []byte, into any) {
		t.Helper()
		d := json.NewDecoder(bytes.NewReader(doc))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("%v in %s", err, doc)
		}
	}
	for _, n := range f.Nodes() {
		var node corev1.Node
		strict(n.AppendObject(nil, 10250, start), &node)
		if got := node.Status.DaemonEndpoints.KubeletEndpoint.Port; got != 10250 {
			t.Errorf("%s: kubelet's port is %d, want 10250", n.Name, got)
		}
		if got := node.Status.Capacity.Cpu().MilliValue(); got != int64(n.Cores)*1000 {
			t.Errorf("%s: capacity is %dm, want %d cores", n.Name, got, n.Cores)
		}
		for _, p := range n.Pods() {
			var pod corev1.Pod
			strict(p.AppendObject(nil, start.Add(20*time.Second)), &pod)
			if pod.Spec.NodeName != n.Name || len(pod.Status.ContainerStatuses) != 2 || string(pod.UID) != p.UID() {
				t.Errorf("pod %s: got node %s, %d statuses, UID %s", p.Name, pod.Spec.NodeName, len(pod.Status.ContainerStatuses), pod.UID)
			}
		}
		var list corev1.PodList
		strict(f.Append(nil, n, simulator.PodList, start), &list)
	}
}

// newClient returns a client of an API server in memory that gives UIDs, as a
// real one does.
func newClient() *fake.Clientset {
	c := fake.NewClientset()
	var last atomic.Int64
	c.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		object := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		object.UID = types.UID(fmt.Sprintf("given-%d", last.Add(1)))
		return false, nil, nil
	})
	return c
}

func TestSyncFollowsTheFleet(t *testing.T) {
	f := newFleet(t, "restart pod=*-store-0-0 container=app at=10s for=1s", "replace pod=*-store-0-1 at=10s for=2s")
	client, now := newClient(), start
	s := New(Options{Client: client, Fleet: f, Port: 10250, Now: func() time.Time { return now }, Workers: 1})
	ctx := context.Background()
	sync := func(after time.Duration) map[string]corev1.Pod {
		t.Helper()
		now = start.Add(after)
		if err := s.Sync(ctx); err != nil {
			t.Fatalf("Sync after %v: %v", after, err)
		}
		list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pods := map[string]corev1.Pod{}
		for _, p := range list.Items {
			pods[p.Name] = p
		}
		return pods
	}
	restarted, replaced := f.Nodes()[0].Pods()[4], f.Nodes()[1].Pods()[4]
	again := f.Nodes()[1].Pods()[6]

	pods := sync(0)
	if len(pods) != 18 {
		t.Errorf("got %d pods, want 18", len(pods))
	}
	for _, n := range f.Nodes() {
		for _, p := range n.Pods()[:6] {
			got := pods[p.Name]
			if string(got.UID) != p.UID() {
				t.Errorf("pod %s has UID %s, the fleet says %s", p.Name, got.UID, p.UID())
			}
			if got.Status.Phase != corev1.PodRunning || got.Status.ContainerStatuses[0].ContainerID != "containerd://"+p.Containers[0].ID(now) {
				t.Errorf("pod %s has status %+v", p.Name, got.Status)
			}
			if len(got.OwnerReferences) != 0 {
				t.Errorf("pod %s has owners that do not exist: %+v", p.Name, got.OwnerReferences)
			}
		}
		node, err := client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil || node.Status.Addresses[0].Address != n.Address.String() {
			t.Errorf("node %s: %v, %v", n.Name, node, err)
		}
	}
	before := replaced.UID()

	pods = sync(11 * time.Second)
	if _, there := pods[replaced.Name]; there {
		t.Errorf("%s is still there between two lives", replaced.Name)
	}
	if got := f.Payload(f.Nodes()[1].Name, simulator.Summary, now); bytes.Contains(got, []byte(before)) {
		t.Error("the kubelet still reports the replaced pod")
	}

	pods = sync(20 * time.Second)
	if got := pods[restarted.Name].Status.ContainerStatuses[0]; got.RestartCount != 1 || got.ContainerID != "containerd://"+restarted.Containers[0].ID(now) {
		t.Errorf("restarted container: got %+v, want one restart and the new ID", got)
	}
	if got := pods[replaced.Name].UID; string(got) != again.UID() || again.UID() == before {
		t.Errorf("replaced pod has UID %s, the fleet says %s, before it was %s", got, again.UID(), before)
	}
	if got := f.Payload(f.Nodes()[1].Name, simulator.Summary, now); !bytes.Contains(got, []byte(again.UID())) {
		t.Error("the kubelet does not report the UID that the API server gave")
	}

	// Nothing has changed, so nothing is written.
	client.ClearActions()
	sync(21 * time.Second)
	for _, a := range client.Actions() {
		if a.GetVerb() != "list" {
			t.Errorf("a second Sync did %s %s", a.GetVerb(), a.GetResource().Resource)
		}
	}
}

func TestSyncTakesOverWhatIsThere(t *testing.T) {
	client := newClient()
	ctx := context.Background()
	now := func() time.Time { return start }
	for range 2 {
		f := newFleet(t)
		if err := New(Options{Client: client, Fleet: f, Now: now, Workers: 1}).Sync(ctx); err != nil {
			t.Fatal(err)
		}
		p := f.Nodes()[0].Pods()[0]
		got, err := client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil || string(got.UID) != p.UID() {
			t.Errorf("the fleet says UID %s, the API server %v, %v", p.UID(), got.UID, err)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	client := newClient()
	s := New(Options{Client: client, Fleet: newFleet(t), Now: func() time.Time { return start }})
	go func() { ended <- s.Run(ctx) }()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestSyncFollowsLivesAndLists checks that a pod that is being deleted gets its
// grace period, that one that has finished stays, and that a node that is not
// listed is deleted and later created again.
func TestSyncFollowsLivesAndLists(t *testing.T) {
	f := newFleet(t, "terminate pod=*-store-0-0 at=10s", "finish pod=*-store-0-1 at=10s style=failed", "unlisted node=node-0003 at=10s for=30s")
	client, now := newClient(), start
	var graces []int64
	client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		graces = append(graces, *a.(clienttesting.DeleteActionImpl).DeleteOptions.GracePeriodSeconds)
		return true, nil, nil // the pod would end when its kubelet says so, and there is none
	})
	s := New(Options{Client: client, Fleet: f, Port: 10250, Now: func() time.Time { return now }, Workers: 1, Heartbeat: time.Second})
	ctx := context.Background()
	nodes := func(after time.Duration) (names []string) {
		t.Helper()
		now = start.Add(after)
		if err := s.Sync(ctx); err != nil {
			t.Fatalf("Sync after %v: %v", after, err)
		}
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list.Items {
			names = append(names, n.Name)
		}
		return names
	}
	for _, step := range []struct {
		after time.Duration
		nodes int
	}{{0, 3}, {15 * time.Second, 2}, {20 * time.Second, 2}, {45 * time.Second, 3}} {
		if got := nodes(step.after); len(got) != step.nodes {
			t.Errorf("after %v: nodes %q, want %d", step.after, got, step.nodes)
		}
	}
	if len(graces) != 1 || graces[0] != 30 {
		t.Errorf("deletions with grace periods %v, want one of 30 s", graces)
	}
	finished := f.Nodes()[1].Pods()[4]
	got, err := client.CoreV1().Pods(finished.Namespace).Get(ctx, finished.Name, metav1.GetOptions{})
	if err != nil || got.Status.Phase != corev1.PodFailed {
		t.Errorf("the pod that has ended: got %s (%v), want Failed", got.Status.Phase, err)
	}
}
