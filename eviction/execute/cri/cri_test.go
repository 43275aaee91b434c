package cri

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/test/background"
)

func connect(t testing.TB, o Options) *Reclaimer {
	t.Helper()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// reclaim calls Reclaim and checks what it freed. The error must contain all words; without words
// there must be no error.
func reclaim(t *testing.T, r *Reclaimer, c eviction.Collection, want execute.Freed, words ...string) {
	t.Helper()
	got, err := r.Reclaim(context.Background(), c)
	if got != want {
		t.Errorf("freed %+v, want %+v", got, want)
	}
	if len(words) == 0 && err != nil {
		t.Error(err)
	}
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("err = %v, want %q in it", err, w)
		}
	}
}

func TestContainers(t *testing.T) {
	f := &fake{containers: []*runtime.Container{
		container("web-3", "web", "app", 3, exited), // the kubelet's only record of the last run
		container("web-1", "web", "app", 1, exited),
		container("web-2", "web", "app", 2, exited),
		container("web-4", "web", "app", 4, running),
		container("init", "web", "init", 1, exited), // without it the kubelet would run the init container again
		container("made", "web", "late", 1, createdState),
		container("lost", "web", "lost", 1, unknownState),
		container("job-1", "job", "app", 1, exited),
		container("job-2", "job", "app", 2, exited),
		container("mine", "", "", 1, exited), // not created by a kubelet
		container("mine-too", "", "", 2, exited),
	}}
	r := connect(t, Options{Socket: f.serve(t), Ended: func(uid types.UID) bool { return uid == "job" }})
	reclaim(t, r, eviction.UnusedContainers, execute.Freed{Items: 4})
	left, _ := f.left()
	if want := []string{"web-3", "web-4", "init", "made", "lost", "mine", "mine-too"}; !slices.Equal(left, want) {
		t.Errorf("left = %v, want %v", left, want)
	}
	reclaim(t, r, eviction.UnusedContainers, execute.Freed{})
}

// TestContainersOfAnUnknownPod checks a new pod that Options.Ended does not know yet: a pod with a
// ready sandbox has not ended.
func TestContainersOfAnUnknownPod(t *testing.T) {
	f := &fake{ready: []string{"new"}, containers: []*runtime.Container{
		container("init", "new", "init", 1, exited), container("job", "job", "app", 1, exited),
	}}
	r := connect(t, Options{Socket: f.serve(t), Ended: func(types.UID) bool { return true }})
	reclaim(t, r, eviction.UnusedContainers, execute.Freed{Items: 1})
	if left, _ := f.left(); !slices.Equal(left, []string{"init"}) {
		t.Errorf("left = %v, want that of the pod that is ready", left)
	}
	f.fail = map[string]error{"sandboxes": errBusy}
	reclaim(t, r, eviction.UnusedContainers, execute.Freed{}, "list pods", "busy")
}

// TestContainersOfPodsUnknown checks that without Options.Ended no pod has ended.
func TestContainersOfPodsUnknown(t *testing.T) {
	f := &fake{containers: []*runtime.Container{
		container("job-1", "job", "app", 1, exited), container("job-2", "job", "app", 2, exited),
	}}
	reclaim(t, connect(t, Options{Socket: f.serve(t)}), eviction.UnusedContainers, execute.Freed{Items: 1})
	if left, _ := f.left(); !slices.Equal(left, []string{"job-2"}) {
		t.Errorf("left = %v, want the newest", left)
	}
}

func TestImages(t *testing.T) {
	image := func(id string, size uint64, tags ...string) *runtime.Image {
		return &runtime.Image{Id: id, Size: size, RepoTags: tags}
	}
	ids := []string{"by-id", "by-ref", "by-digest", "by-tag", "mounted", "dead"}
	f := &fake{
		images: []*runtime.Image{
			image("old", 100, "registry.example/library/old:1"), image("dangling", 23),
			{Id: "pause", Pinned: true}, {Size: 5}, // the second one has no ID
			image("by-id", 1), image("by-ref", 1), image("by-tag", 1, "reg/app:1", "reg/app:2"),
			{Id: "by-digest", RepoDigests: []string{"reg/app@sha256:1"}},
			image("mounted", 1, "reg/model:1"), image("dead", 1),
		},
		containers: []*runtime.Container{
			{Id: "1", ImageId: "by-id", ImageRef: "x", Image: &runtime.ImageSpec{Image: "y"}, State: running},
			{Id: "2", ImageRef: "by-ref", State: running},
			{Id: "3", ImageRef: "reg/app@sha256:1", State: running},
			{Id: "4", Image: &runtime.ImageSpec{Image: "z", UserSpecifiedImage: "reg/app:2"}, State: running},
			{Id: "5", ImageId: "by-id", State: running},
			{Id: "6", ImageId: "dead", State: exited},
			{Id: "7", ImageId: "by-id", State: running}, // deleted before its status is read
		},
		mounts: map[string]string{"5": "reg/model:1"},
		fail:   map[string]error{"status 7": status.Error(codes.NotFound, "7")},
	}
	r := connect(t, Options{Socket: f.serve(t)})
	reclaim(t, r, eviction.UnusedImages, execute.Freed{}) // no image is old enough
	f.images = append(f.images, image("fresh", 1))
	r.age()
	reclaim(t, r, eviction.UnusedImages, execute.Freed{Items: 2, Bytes: 123})
	_, left := f.left()
	slices.Sort(left)
	want := append([]string{"", "fresh", "pause"}, ids...)
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left = %v, want %v", left, want)
	}

	// An image that was removed and pulled again counts as new.
	f.images = append(f.images, image("old", 100))
	reclaim(t, r, eviction.UnusedImages, execute.Freed{})
}

// age makes all known images old enough.
func (r *Reclaimer) age() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, first := range r.mu.seen {
		r.mu.seen[id] = first.Add(-r.opts.MinImageAge)
	}
}

func TestMoreBytesThanThereAre(t *testing.T) {
	f := &fake{images: []*runtime.Image{{Id: "a", Size: math.MaxUint64}, {Id: "b", Size: 1}}}
	r := connect(t, Options{Socket: f.serve(t)})
	reclaim(t, r, eviction.UnusedImages, execute.Freed{})
	r.age()
	reclaim(t, r, eviction.UnusedImages, execute.Freed{Items: 2, Bytes: math.MaxInt64})
}

// TestOneFails checks that an object with a removal that fails, or gets no answer, does not stop
// the removal of the others.
func TestOneFails(t *testing.T) {
	f := &fake{
		containers: []*runtime.Container{
			container("1", "job", "a", 1, exited), container("2", "job", "b", 1, exited),
			container("3", "job", "c", 1, exited), container("4", "job", "d", 1, exited),
		},
		images: []*runtime.Image{{Id: "i1", Size: 1, RepoTags: []string{"reg/one:1"}}, {Id: "i2", Size: 1}, {Id: "i3", Size: 1}},
		fail:   map[string]error{"1": errBusy, "i1": errBusy},
		hang:   map[string]bool{"3": true, "i2": true},
	}
	r := connect(t, Options{Socket: f.serve(t), RequestTimeout: 2 * time.Second, Ended: func(types.UID) bool { return true }})
	reclaim(t, r, eviction.UnusedContainers, execute.Freed{Items: 2}, "remove container 1: ", "busy", "remove container 3: ", "DeadlineExceeded")
	f.containers = nil
	reclaim(t, r, eviction.UnusedImages, execute.Freed{})
	r.age()
	reclaim(t, r, eviction.UnusedImages, execute.Freed{Items: 1, Bytes: 1}, "remove image reg/one:1: ", "busy", "remove image i2: ", "DeadlineExceeded")
}

func TestManyFail(t *testing.T) {
	f := &fake{fail: map[string]error{}}
	for i := range maxFailures + 3 {
		id := fmt.Sprint("c", i)
		f.containers = append(f.containers, container(id, "job", id, 1, exited))
		f.fail[id] = errBusy
	}
	r := connect(t, Options{Socket: f.serve(t), Ended: func(types.UID) bool { return true }})
	reclaim(t, r, eviction.UnusedContainers, execute.Freed{}, "remove container c9: ", "and 3 more")
}

// TestTimeIsUp checks that removals before the end of the context are counted, and that nothing is
// removed after it.
func TestTimeIsUp(t *testing.T) {
	f := &fake{containers: []*runtime.Container{
		container("1", "job", "a", 1, exited), container("2", "job", "b", 1, exited), container("3", "job", "c", 1, exited),
	}}
	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	r := connect(t, Options{Socket: f.serve(t), Ended: func(types.UID) bool { return true }})
	f.removed = func(id string) {
		if id == "2" {
			cancel(enough)
		}
	}
	freed, err := r.Reclaim(ctx, eviction.UnusedContainers)
	if !errors.Is(err, enough) || !strings.Contains(err.Error(), "leave 1 containers") {
		t.Errorf("err = %v, want that one is left", err)
	}
	// It depends on timing whether the answer to the second removal still arrives.
	if left, _ := f.left(); !slices.Equal(left, []string{"3"}) || freed.Items < 1 || freed.Items > 2 {
		t.Errorf("left = %v, freed %+v, want 3 to be left", left, freed)
	}
}

// TestInUseIsUnknown checks that no image is removed if the images in use are not known.
func TestInUseIsUnknown(t *testing.T) {
	f := func(about, want string) {
		t.Helper()
		s := &fake{
			containers: []*runtime.Container{container("1", "web", "app", 1, running)},
			images:     []*runtime.Image{{Id: "i", Size: 1}},
			fail:       map[string]error{},
		}
		r := connect(t, Options{Socket: s.serve(t)})
		reclaim(t, r, eviction.UnusedImages, execute.Freed{})
		r.age()
		s.fail[about] = errBusy
		reclaim(t, r, eviction.UnusedImages, execute.Freed{}, want, "busy")
	}
	f("images", "list images: ")
	f("containers", "find images in use: list containers: ")
	f("status 1", "find images in use: ask for container 1: ")
}

func TestNoRuntime(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "none.sock")
	r := connect(t, Options{Socket: "unix://" + socket})
	reclaim(t, r, eviction.UnusedContainers, execute.Freed{}, "list containers: ", socket)
	reclaim(t, r, eviction.UnusedImages, execute.Freed{}, "list images: ", socket)
	reclaim(t, r, "volume", execute.Freed{}, `collect "volume"`)

	for _, bad := range []string{"", "run/containerd.sock", "tcp://127.0.0.1:1"} {
		if _, err := New(Options{Socket: bad}); err == nil || !strings.Contains(err.Error(), "absolute path") {
			t.Errorf("New with socket %q: %v, want that it must be an absolute path", bad, err)
		}
	}
}

// TestRun checks that Run lists images before a Reclaim needs them.
func TestRun(t *testing.T) {
	f := &fake{images: []*runtime.Image{{Id: "i", Size: 7}}, fail: map[string]error{"images": errBusy}}
	r := connect(t, Options{Socket: f.serve(t), WatchPeriod: time.Millisecond, MinImageAge: time.Nanosecond})
	stop := background.Run(t, r.Run)
	await := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !ok(); {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not in 10s", what)
			}
			time.Sleep(time.Millisecond)
		}
	}
	await("asks again after an error", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.listed > 2 })
	f.mu.Lock()
	f.fail = nil
	f.mu.Unlock()
	await("sees the image", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return !r.mu.seen["i"].IsZero() })
	stop()
	reclaim(t, r, eviction.UnusedImages, execute.Freed{Items: 1, Bytes: 7})
}

func TestStopPod(t *testing.T) {
	f := &fake{containers: []*runtime.Container{
		container("web-1", "web", "app", 1, exited),
		container("web-2", "web", "app", 2, running),
		container("web-3", "web", "sidecar", 2, running),
		container("db-1", "db", "app", 1, running),
		container("stuck-1", "stuck", "app", 1, running),
		container("stuck-2", "stuck", "sidecar", 1, running),
	}, fail: map[string]error{"stuck-1": errBusy}}
	r := connect(t, Options{Socket: f.serve(t)})
	stop := func(uid types.UID, words string, want ...string) {
		t.Helper()
		stopped, err := r.StopPod(t.Context(), uid)
		if stopped != (want != nil) {
			t.Errorf("pod %s: stopped %v, want %v", uid, stopped, want != nil)
		}
		if (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("pod %s: error %v, want %q in it", uid, err, words)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		slices.Sort(f.stopped)
		if !slices.Equal(f.stopped, want) {
			t.Errorf("pod %s: stopped %v, want %v", uid, f.stopped, want)
		}
		f.stopped = nil
	}
	stop("web", "", "web-2", "web-3")
	stop("stuck", "stop containers: rpc error: code = FailedPrecondition desc = busy", "stuck-2")
	stop("other", "the container runtime runs no container of pod other")
}
