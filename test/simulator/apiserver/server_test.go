package apiserver

import (
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-metrics/weir/test/background"
	"github.com/weir-metrics/weir/test/simulator"
	"github.com/weir-metrics/weir/test/simulator/seed"
)

// testServer is a fleet, its API server and a clock that the test moves.
type testServer struct {
	fleet  *simulator.Fleet
	server *Server
	url    string

	mu  sync.Mutex
	now time.Time
}

func (w *testServer) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *testServer) advance(d time.Duration) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
	return w.now
}

func newTestServer(t *testing.T, o simulator.Options, server Options, faults ...string) *testServer {
	t.Helper()
	w := &testServer{now: time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)}
	o.Start, o.Seed = w.now, 1
	for _, text := range faults {
		f, err := simulator.Parse(text)
		check(t, err)
		o.Faults = append(o.Faults, f)
	}
	fleet, err := simulator.New(o)
	check(t, err)
	server.Fleet, server.Port, server.Now, server.Tick = fleet, 10250, w.clock, 5*time.Millisecond
	w.fleet, w.server = fleet, New(server)
	web := httptest.NewServer(w.server)
	t.Cleanup(web.Close)
	w.url = web.URL
	background.Run(t, w.server.Run)
	return w
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// config returns a client's configuration, for protobuf or JSON.
func (w *testServer) config(protobuf bool) *rest.Config {
	c := &rest.Config{Host: w.url, QPS: -1}
	if protobuf {
		c.ContentType = "application/vnd.kubernetes.protobuf"
		c.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	return c
}

func (w *testServer) client(t *testing.T, protobuf bool) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(w.config(protobuf))
	check(t, err)
	return client
}

// want returns the objects that the seeder would write at now: every pod that
// is bound, and every node that is listed.
func (w *testServer) want(t *testing.T, now time.Time) (pods map[string]*corev1.Pod, nodes map[string]*corev1.Node) {
	t.Helper()
	pods, nodes = map[string]*corev1.Pod{}, map[string]*corev1.Node{}
	for _, n := range w.fleet.Nodes() {
		if n.Listed(now) {
			object, err := seed.Node(n, 10250, now)
			check(t, err)
			nodes[n.Name] = object
		}
		for _, p := range n.Pods() {
			if p.Bound(now) {
				object, err := seed.Pod(p, now)
				check(t, err)
				pods[p.Namespace+"/"+p.Name] = object
			}
		}
	}
	return pods, nodes
}

// plain removes what the seeder's objects do not have: the version, and the
// kind, which clients drop.
func plain(o *metav1.ObjectMeta, kind *metav1.TypeMeta) {
	o.ResourceVersion = ""
	*kind = metav1.TypeMeta{}
}

// TestListsAreWhatTheSeederWrites compares both encodings with the objects that
// package seed writes to a real API server.
func TestListsAreWhatTheSeederWrites(t *testing.T) {
	w := newTestServer(t, simulator.Options{Nodes: 3, Pods: 12, Containers: 2}, Options{},
		"restart pod=*-store-0-0 at=10s", "replace pod=shop/* at=20s", "finish pod=*-store-1-1 at=5s style=failed",
		"terminate pod=*-store-0-1 at=50s for=30s", "pending pod=*-store-0-2 at=30s", "notready node=node-0002 at=10s", "unlisted node=node-0003 at=40s")
	for _, protobuf := range []bool{false, true} {
		client := w.client(t, protobuf)
		for range 3 {
			now := w.advance(15 * time.Second)
			pods, nodes := w.want(t, now)
			for _, p := range pods {
				plain(&p.ObjectMeta, &p.TypeMeta)
			}
			for _, n := range nodes {
				plain(&n.ObjectMeta, &n.TypeMeta)
			}
			gotPods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
			check(t, err)
			byName := map[string]*corev1.Pod{}
			for i := range gotPods.Items {
				p := &gotPods.Items[i]
				plain(&p.ObjectMeta, &p.TypeMeta)
				byName[p.Namespace+"/"+p.Name] = p
			}
			if diff := cmp.Diff(pods, byName); diff != "" {
				t.Fatalf("protobuf=%v: pods (-want +got):\n%s", protobuf, diff)
			}
			gotNodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			check(t, err)
			nodesByName := map[string]*corev1.Node{}
			for i := range gotNodes.Items {
				n := &gotNodes.Items[i]
				plain(&n.ObjectMeta, &n.TypeMeta)
				nodesByName[n.Name] = n
			}
			if diff := cmp.Diff(nodes, nodesByName); diff != "" {
				t.Fatalf("protobuf=%v: nodes (-want +got):\n%s", protobuf, diff)
			}
		}
	}
}

func TestSelectors(t *testing.T) {
	w := newTestServer(t, simulator.Options{Nodes: 3, Pods: 10}, Options{})
	client := w.client(t, true)
	f := func(want int, o metav1.ListOptions) {
		t.Helper()
		got, err := client.CoreV1().Pods("").List(t.Context(), o)
		check(t, err)
		if len(got.Items) != want {
			t.Errorf("%q %q: got %d pods, want %d", o.FieldSelector, o.LabelSelector, len(got.Items), want)
		}
	}
	f(30, metav1.ListOptions{})
	f(10, metav1.ListOptions{FieldSelector: "spec.nodeName=node-0002"})
	f(0, metav1.ListOptions{FieldSelector: "spec.nodeName=node-0009"})
	f(3, metav1.ListOptions{LabelSelector: "app=node-agent"})
	f(1, metav1.ListOptions{LabelSelector: "app=node-agent", FieldSelector: "spec.nodeName=node-0001"})
	one, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=node-0003"})
	check(t, err)
	if len(one.Items) != 1 || one.Items[0].Name != "node-0003" {
		t.Errorf("nodes by name: got %d, want node-0003 alone", len(one.Items))
	}
	n, err := client.CoreV1().Nodes().Get(t.Context(), "node-0001", metav1.GetOptions{})
	if err != nil || n.Name != "node-0001" {
		t.Errorf("get node: got %v, %v", n, err)
	}
	if _, err := client.CoreV1().Nodes().Get(t.Context(), "node-0009", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get a node that is not there: got %v, want not found", err)
	}
}

// TestInformersFollowChurn runs real informers, with and without watch-lists,
// in both encodings, while pods are replaced. At the end they must have what
// the seeder would write.
func TestInformersFollowChurn(t *testing.T) {
	for _, test := range []struct {
		name                       string
		protobuf, withoutWatchList bool
	}{{"protobuf", true, false}, {"json", false, false}, {"protobuf, listed", true, true}, {"json, listed", false, true}} {
		t.Run(test.name, func(t *testing.T) {
			w := newTestServer(t, simulator.Options{Nodes: 4, Pods: 20, Churn: 0.5}, Options{WithoutWatchList: test.withoutWatchList, Bookmark: 20 * time.Millisecond})
			client := w.client(t, test.protobuf)
			lw := cache.ToListWatcherWithWatchListSemantics(cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", "", fields.Everything()), client)
			store, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: lw, ObjectType: &corev1.Pod{}, Handler: cache.ResourceEventHandlerFuncs{}})
			stop := make(chan struct{})
			var running sync.WaitGroup
			running.Go(func() { informer.Run(stop) })
			defer running.Wait()
			defer close(stop)
			eventually(t, func() string {
				if !informer.HasSynced() {
					return "the informer has not synced"
				}
				return ""
			})
			first := len(store.ListKeys())
			if first != 80 {
				t.Errorf("first list: got %d pods, want 80", first)
			}
			for range 30 {
				w.advance(5 * time.Second)
			}
			now := w.clock()
			eventually(t, func() string {
				pods, _ := w.want(t, now)
				got := map[string]*corev1.Pod{}
				for _, o := range store.List() {
					p := o.(*corev1.Pod).DeepCopy()
					plain(&p.ObjectMeta, &p.TypeMeta)
					got[p.Namespace+"/"+p.Name] = p
				}
				for _, p := range pods {
					plain(&p.ObjectMeta, &p.TypeMeta)
				}
				return cmp.Diff(pods, got)
			})
		})
	}
}

// TestTooOld checks that a watch from before the history gets 410 Gone, and
// that a client then lists again.
func TestTooOld(t *testing.T) {
	w := newTestServer(t, simulator.Options{Nodes: 4, Pods: 20, Churn: 1}, Options{History: 10})
	client := w.client(t, true)
	list, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	check(t, err)
	w.advance(3 * time.Minute)
	eventually(t, func() string {
		watch, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err == nil {
			watch.Stop()
		}
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return "a watch from before the history: want expired"
		}
		return ""
	})
}

func TestMetadata(t *testing.T) {
	w := newTestServer(t, simulator.Options{Nodes: 2, Pods: 5}, Options{})
	for _, protobuf := range []bool{false, true} {
		config := w.config(protobuf)
		if !protobuf {
			config = metadata.ConfigFor(config)
		}
		client, err := metadata.NewForConfig(config)
		check(t, err)
		got, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).List(t.Context(), metav1.ListOptions{})
		check(t, err)
		pods, _ := w.want(t, w.clock())
		if len(got.Items) != 10 {
			t.Fatalf("got %d, want 10", len(got.Items))
		}
		for _, o := range got.Items {
			p := pods[o.Namespace+"/"+o.Name]
			if p == nil || p.UID != o.UID || !cmp.Equal(p.Labels, o.Labels) || o.ResourceVersion == "" {
				t.Errorf("got %+v, want the metadata of a pod", o)
			}
		}
	}
}

func TestLeases(t *testing.T) {
	w := newTestServer(t, simulator.Options{}, Options{})
	for _, protobuf := range []bool{false, true} {
		leases := w.client(t, protobuf).CoordinationV1().Leases("weir")
		name := map[bool]string{false: "json", true: "protobuf"}[protobuf]
		if _, err := leases.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: get before it is made: %v, want not found", name, err)
		}
		holder := "me"
		made, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}, metav1.CreateOptions{})
		check(t, err)
		if _, err := leases.Create(t.Context(), made, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			t.Errorf("%s: create again: %v, want already exists", name, err)
		}
		other := "another"
		next := made.DeepCopy()
		next.Spec.HolderIdentity = &other
		_, err = leases.Update(t.Context(), next, metav1.UpdateOptions{})
		check(t, err)
		if _, err := leases.Update(t.Context(), next, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("%s: update of an old version: %v, want a conflict", name, err)
		}
		got, err := leases.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || *got.Spec.HolderIdentity != other {
			t.Errorf("%s: got %v, %v; want it held by another", name, got, err)
		}
	}
	list, err := w.client(t, true).CoordinationV1().Leases("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("list: got %v, %v; want 2 leases", list, err)
	}
}

// eventually waits until wrong returns "".
func eventually(t *testing.T, wrong func() string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		what := wrong()
		if what == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatal(what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
