//go:build linux

package host

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
	"github.com/weir-metrics/weir/test/cmptest"
)

// registry is a containerd with the given containers.
type registry struct {
	containers.UnimplementedContainersServer
	containers map[string]*containers.Container
	asked      int
}

func (r *registry) Get(ctx context.Context, q *containers.GetContainerRequest) (*containers.GetContainerResponse, error) {
	r.asked++
	if md, _ := metadata.FromIncomingContext(ctx); strings.Join(md.Get("containerd-namespace"), "") != "k8s.io" {
		return nil, status.Error(codes.FailedPrecondition, "namespace is required")
	}
	c, ok := r.containers[q.ID]
	if !ok {
		return nil, status.Error(codes.NotFound, q.ID)
	}
	return &containers.GetContainerResponse{Container: c}, nil
}

func serve(t *testing.T, socket string, r *registry) (stop func()) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	containers.RegisterContainersServer(s, r)
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	return func() { s.Stop(); <-done }
}

func TestContainerd(t *testing.T) {
	const app, pause, gone = "app", "pause", "gone"
	labels := func(name, kind string) map[string]string {
		return map[string]string{labelPod: "web", labelNamespace: "shop", labelUID: "U_1", labelName: name, labelKind: kind}
	}
	r := &registry{containers: map[string]*containers.Container{
		app:   {ID: app, Labels: labels("app", "container"), CreatedAt: timestamppb.New(time.Unix(1e9, 5))},
		pause: {ID: pause, Labels: labels("", "sandbox")},
	}}
	socket := filepath.Join(t.TempDir(), "c.sock")
	c := newContainerd(socket, "k8s.io", false)
	defer func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}()
	ids := map[metric.ContainerID]bool{app: true, pause: true, gone: true}
	now := time.Unix(2e9, 0)
	learn := func(wantAsked int, wantGap string) {
		t.Helper()
		c.learnNames(context.Background(), ids, now)
		if r.asked != wantAsked || !strings.HasPrefix(c.gap, wantGap) || (wantGap == "") != (c.gap == "") {
			t.Errorf("asked %d times, gap %q, want %d, %q", r.asked, c.gap, wantAsked, wantGap)
		}
	}

	learn(0, "containerd: there is no socket at "+socket)
	stop := serve(t, socket, r)
	learn(0, "containerd: there is no socket at ") // it is too soon for a second request
	now = now.Add(namesRetry)
	learn(3, "")
	want := map[metric.ContainerID]containerNames{
		app:   {Namespace: "shop", Pod: "web", UID: "u-1", Name: "app", Created: time.Unix(1e9, 5)},
		pause: {Namespace: "shop", Pod: "web", UID: "u-1", Sandbox: true},
	}
	cmptest.Equal(t, "known", want, c.known)
	learn(3, "") // no request for known containers, or those that containerd did not know
	r.containers[gone] = &containers.Container{ID: gone}
	now = now.Add(namesRetry)
	learn(4, "")

	delete(ids, app)
	learn(4, "")
	if _, ok := c.known[app]; ok {
		t.Error("a container that is gone is remembered")
	}
	stop()
	ids["new"] = true
	learn(4, "containerd: it does not answer at "+socket)
	if _, ok := c.known[pause]; !ok {
		t.Error("what was known is forgotten when containerd is away")
	}
}

func TestNaming(t *testing.T) {
	const uid = "73296cad-fda8-4a1c-bff9-cb1de73626a6"
	id, pause, other := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
	n := newCgroupNamer("n1", map[metric.ContainerID]containerNames{
		metric.ContainerID(id):    {Namespace: "shop", Pod: "web", UID: uid, Name: "app"},
		metric.ContainerID(pause): {Namespace: "shop", Pod: "web", UID: uid, Sandbox: true},
	}, nil)
	f := func(path string, want metric.Entity, hidden bool) {
		t.Helper()
		want.Node = "n1"
		got := n.name(metric.CgroupPath(path), podcgroup.Parse(metric.CgroupPath(path)))
		if want.Kind == metric.System && strings.HasSuffix(path, ".scope") && got.instance != (metric.Instance{}) {
			t.Errorf("%s: instance = %+v, want none: it is no container run", path, got.instance)
		}
		if got.entity != want || got.runtime.Sandbox != hidden {
			t.Errorf("%s: %+v, hidden %v, want %+v, %v", path, got.entity, got.runtime.Sandbox, want, hidden)
		}
	}
	pod := "/kubepods/burstable/pod" + uid
	f("/", metric.Entity{Kind: metric.Node}, false)
	f(pod, metric.Entity{Kind: metric.Pod, Namespace: "shop", Pod: "web"}, false)
	f(pod+"/"+id, metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "web", Name: "app"}, false)
	f(pod+"/"+pause, metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "web", Name: pause}, true)
	// containerd does not know this container yet, but it knows the pod.
	f(pod+"/"+other, metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "web", Name: other}, false)
	f(pod+"/"+id+"/init.scope", metric.Entity{Kind: metric.System, Name: pod + "/" + id + "/init.scope"}, false)
	f("/kubepods/pod11111111-1111-4111-8111-111111111111/"+other,
		metric.Entity{Kind: metric.Container, Pod: "11111111-1111-4111-8111-111111111111", Name: other}, false)
	f("/docker/"+id, metric.Entity{Kind: metric.System, Name: "/docker/" + id}, false)
}

// TestNamingByFacts names cgroups that the runtime does not name.
func TestNamingByFacts(t *testing.T) {
	const uid, static, stranger = "73296cad-fda8-4a1c-bff9-cb1de73626a6", "d41d8cd98f00b204e9800998ecf8427e", "11111111-1111-4111-8111-111111111111"
	hash := metric.PodUID(static)
	app, old, pause := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
	pod := func(name metric.PodName, uid metric.PodUID, hash *metric.PodUID) *cluster.Pod {
		return &cluster.Pod{
			PodRef: metric.PodRef{Namespace: "shop", Name: name}, UID: uid, ConfigHash: hash, Node: "n1",
			Containers: []cluster.Container{{Name: "app", ID: metric.ContainerID(app)}, {Name: "waiting"}},
		}
	}
	var none *cluster.Facts
	facts := none.With(cluster.FactsChange{Synced: true, Pods: []*cluster.Pod{pod("web", uid, nil), pod("proxy", "of-the-mirror-pod", &hash)}})
	n := newCgroupNamer("n1", map[metric.ContainerID]containerNames{
		metric.ContainerID(old): {Namespace: "shop", Pod: "web", UID: uid, Name: "by-the-runtime"},
	}, facts.PodsByUID("n1"))
	f := func(path string, want metric.Entity) {
		t.Helper()
		want.Node = "n1"
		if got := n.name(metric.CgroupPath(path), podcgroup.Parse(metric.CgroupPath(path))); got.entity != want {
			t.Errorf("%s: %+v, want %+v", path, got.entity, want)
		}
	}
	f("/kubepods/pod"+uid, metric.Entity{Kind: metric.Pod, Namespace: "shop", Pod: "web"})
	f("/kubepods/pod"+uid+"/"+app, metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "web", Name: "app"})
	f("/kubepods/pod"+uid+"/"+old, metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "web", Name: "by-the-runtime"})
	// A sandbox, or a container that the API server does not know yet.
	f("/kubepods/pod"+uid+"/"+pause, metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "web", Name: pause})
	f("/kubepods/pod"+static, metric.Entity{Kind: metric.Pod, Namespace: "shop", Pod: "proxy"})
	f("/kubepods/pod"+static+"/"+app, metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "proxy", Name: "app"})
	f("/kubepods/pod"+stranger, metric.Entity{Kind: metric.Pod, Pod: stranger})
}
