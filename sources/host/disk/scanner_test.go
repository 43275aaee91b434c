//go:build linux

package disk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/background"
	"github.com/weir-metrics/weir/test/cmptest"
)

func TestPodIsSummedUpAsTheKubeletDoes(t *testing.T) {
	n := newNode(t)
	n.fill(uid)
	s := newScanner(t, n.options())
	began := time.Now()
	r := s.scanPods(context.Background(), false)
	if r.Problems != nil || r.Pods != 1 || r.Unknown != 0 || r.Inodes == 0 {
		t.Errorf("round = %+v, want one pod, known, without problems", r)
	}
	pod, ok := s.Pod(uid)
	if !ok || pod.At.Before(began) {
		t.Fatalf("Pod = %+v, %v", pod, ok)
	}
	if got, want := used(pod.Ephemeral), n.sum(uid); got != want {
		t.Errorf("ephemeral storage = %+v, want %+v", got, want)
	}
	volumes := map[string]diskUse{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = used(&v.FsStats)
	}
	want := map[string]diskUse{}
	for _, v := range []string{"empty-dir/cache", "empty-dir/scratch", "configmap/config", "secret/token"} {
		want[filepath.Base(v)] = truth(t, n.pod(uid, "volumes/kubernetes.io~"+v))
	}
	cmptest.Equal(t, "volumes", want, volumes, cmp.AllowUnexported(diskUse{}))
	if got := slices.Sorted(maps.Keys(pod.Containers)); !slices.Equal(got, []string{"app", "sidecar"}) {
		t.Errorf("containers = %v", got)
	}
	app := pod.Containers["app"]
	if got, want := used(app.Rootfs), truth(t, n.layer(appID)); got != want {
		t.Errorf("app's writable layer = %+v, want %+v", got, want)
	}
	logs := truth(t, n.logs(uid, "app/0.log"))
	logs.add(truth(t, n.logs(uid, "app/0.log.20261121-101112.gz")))
	if got := used(app.Logs); got != logs {
		t.Errorf("app's logs = %+v, want %+v", got, logs)
	}
	var fs unix.Statfs_t
	must(t, unix.Statfs(n.root, &fs))
	if e := pod.Ephemeral; *e.CapacityBytes != fs.Blocks*uint64(fs.Bsize) || *e.Inodes != fs.Files || *e.AvailableBytes == 0 || *e.InodesFree == 0 {
		t.Errorf("ephemeral storage = %+v, want the file system's capacity, %d bytes and %d inodes", e, fs.Blocks*uint64(fs.Bsize), fs.Files)
	}
}

// scanned scans the pods, and returns one of them. Its ephemeral storage must be want.
func scanned(t *testing.T, n *node, uid metric.PodUID, want diskUse) *PodUsage {
	t.Helper()
	s := newScanner(t, n.options())
	s.scanPods(context.Background(), false)
	pod, _ := s.Pod(uid)
	if got := used(pod.Ephemeral); got != want {
		t.Errorf("ephemeral storage = %+v, want %+v", got, want)
	}
	return pod
}

// TestUnknown checks that a pod without one of its parts has no sum. Each case hides one part; the
// other figures are present.
func TestUnknown(t *testing.T) {
	f := func(name, problem string, hide func(n *node)) {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.fill(uid)
			hide(n)
			s := newScanner(t, n.options())
			r := s.scanPods(context.Background(), false)
			if got := fmt.Sprint(r.Problems); r.Unknown != 1 || (problem == "") != (r.Problems == nil) || !strings.Contains(got, problem) {
				t.Errorf("round = %+v, want one unknown and the problem %q", r, problem)
			}
			pod, _ := s.Pod(uid)
			if pod.Ephemeral != nil {
				t.Errorf("ephemeral storage = %+v, want none", used(pod.Ephemeral))
			}
			if len(pod.Volumes) != 4 {
				t.Errorf("%d volumes, want 4", len(pod.Volumes))
			}
		})
	}
	f("nobody knows the pod", "", func(n *node) { delete(n.running, uid) })
	f("a container just began", "", func(n *node) { n.process(uid, newID, "/var/lib/containerd/snapshots/new/fs") })
	f("a container runs where nobody sees it", "", func(n *node) { n.running[uid][newID] = "vm" })
	f("no logs yet", "", func(n *node) { must(t, os.RemoveAll(n.logs(uid))) })
	f("no logs of a container yet", "", func(n *node) { must(t, os.RemoveAll(n.logs(uid, "app"))) })
	f("logs are elsewhere", "list logs of pods", func(n *node) { must(t, os.RemoveAll(n.path("/var/log/pods"))) })
	f("the layer is gone", "count /", func(n *node) { must(t, os.RemoveAll(n.layer(appID))) })
	f("another snapshotter", "the root of none of its processes is an overlay", func(n *node) {
		n.file("/proc/101/mountinfo", "9 1 0:40 / / rw - btrfs /dev/vda rw\n")
	})
	f("a layer that is not the runtime's", "set ContainerRoot", func(n *node) {
		n.file("/proc/101/mountinfo", "9 1 0:40 / / rw - overlay overlay rw,upperdir=/home\n")
	})
	f("two roots", "have two roots", func(n *node) { n.process(uid, appID, "/var/lib/containerd/snapshots/mine/fs") })
	f("not the host's processes", "mount the host's /proc", func(n *node) {
		for _, dir := range []string{"101", "102", "103"} {
			must(t, os.RemoveAll(n.path("/proc", dir)))
		}
	})
	f("no processes at all", "list processes", func(n *node) { must(t, os.RemoveAll(n.path("/proc"))) })
}

// TestLayerOfTheHost checks that the host's mount table takes precedence over a container's
// processes, and that no process is needed.
func TestLayerOfTheHost(t *testing.T) {
	n := newNode(t)
	n.fill(uid)
	n.mount("50 27 0:40 / /run/containerd/io.containerd.runtime.v2.task/k8s.io/" + appID +
		"/rootfs rw - overlay overlay rw,lowerdir=/l,upperdir=/var/lib/containerd/snapshots/" + appID + "/fs,workdir=/w")
	n.file("/proc/101/mountinfo", "9 1 0:40 / / rw - overlay overlay rw,upperdir=/var/lib/containerd/snapshots/lie/fs\n")
	s := newScanner(t, n.options())
	if r := s.scanPods(context.Background(), false); r.Problems != nil {
		t.Error(r.Problems)
	}
	pod, _ := s.Pod(uid)
	if got, want := used(pod.Ephemeral), n.sum(uid); got != want {
		t.Errorf("ephemeral storage = %+v, want %+v", got, want)
	}
}

// TestOwnPod checks that the agent's own pod has a sum. In a cgroup namespace of version 2, the
// cgroups of its processes do not name the pod.
func TestOwnPod(t *testing.T) {
	n := newNode(t)
	n.fill(uid)
	for _, id := range []string{appID, sidecarID} {
		n.mount("50 27 0:40 / /run/containerd/io.containerd.runtime.v2.task/k8s.io/" + id +
			"/rootfs rw - overlay overlay rw,lowerdir=/l,upperdir=/var/lib/containerd/snapshots/" + id + "/fs,workdir=/w")
	}
	n.file("/proc/101/cgroup", "0::/\n")
	n.file("/proc/102/cgroup", "0::/../cri-containerd-"+sidecarID+".scope\n")
	n.file("/proc/103/cgroup", "0::/../cri-containerd-"+pauseID+".scope\n")
	scanned(t, n, uid, n.sum(uid))
}

// TestOtherProcessesOfAContainer checks that a process with another root, or one that has ended, is
// ignored.
func TestOtherProcessesOfAContainer(t *testing.T) {
	n := newNode(t)
	n.fill(uid)
	dir := n.process(uid, appID, "/")
	n.file(strings.TrimPrefix(dir, n.root)+"/mountinfo", "9 1 254:0 /var/chroot / rw - ext4 /dev/vda rw\n")
	must(t, os.Remove(filepath.Join(n.process(uid, appID, "/"), "mountinfo")))
	must(t, os.Remove(filepath.Join(n.process(uid, appID, "/"), "cgroup")))
	scanned(t, n, uid, n.sum(uid))
}

// TestPodHasEnded checks that a pod without running containers still has its files on disk.
func TestPodHasEnded(t *testing.T) {
	n := newNode(t)
	write(t, 10_000, n.pod(other, "volumes/kubernetes.io~empty-dir/cache/file"))
	write(t, 10_000, n.logs(other, "init", "0.log"))
	n.running[other] = map[string]string{}
	scanned(t, n, other, truth(t, n.pod(other, "volumes/kubernetes.io~empty-dir/cache")))
}

func TestNobodyKnowsThePod(t *testing.T) {
	n := newNode(t)
	n.fill(uid)
	n.running = nil
	s := newScanner(t, n.options())
	s.scanPods(context.Background(), false)
	pod, _ := s.Pod(uid)
	got := map[string][2]diskUse{}
	for name, c := range pod.Containers {
		got[name] = [2]diskUse{used(c.Rootfs), used(c.Logs)}
	}
	logs := truth(t, n.logs(uid, "app/0.log"))
	logs.add(truth(t, n.logs(uid, "app/0.log.20261121-101112.gz")))
	want := map[string][2]diskUse{
		appID: {truth(t, n.layer(appID))}, sidecarID: {truth(t, n.layer(sidecarID))}, pauseID: {truth(t, n.layer(pauseID))},
		"app": {1: logs}, "sidecar": {1: truth(t, n.logs(uid, "sidecar/0.log"))}, "init": {1: truth(t, n.logs(uid, "init/0.log"))},
	}
	cmptest.Equal(t, "containers", want, got, cmp.AllowUnexported(diskUse{}))
}

func TestMemoryVolume(t *testing.T) {
	n := newNode(t)
	n.fill(uid)
	want := n.sum(uid)
	memory := n.pod(uid, "volumes/kubernetes.io~empty-dir/memory")
	mount(t, "tmpfs", memory, "tmpfs", "")
	write(t, 123_456, memory, "file")
	pod := scanned(t, n, uid, want)
	for _, v := range pod.Volumes {
		if v.Name == "memory" {
			if got, want := used(&v.FsStats), truth(t, memory); got != want || got.bytes < 123_456 {
				t.Errorf("the volume = %+v, want %+v", got, want)
			}
			return
		}
	}
	t.Error("the volume is not listed")
}

// TestNodeInMemory checks that emptyDirs count as on disk if the kubelet's directory itself is a
// tmpfs.
func TestNodeInMemory(t *testing.T) {
	n := newNode(t)
	mount(t, "tmpfs", n.path("/var/lib/kubelet"), "tmpfs", "")
	n.fill(uid)
	scanned(t, n, uid, n.sum(uid))
}

func TestPodsComeAndGo(t *testing.T) {
	n := newNode(t)
	n.fill(uid)
	write(t, 1, n.pod(other, "etc-hosts"))
	must(t, os.MkdirAll(n.pod("not a pod"), 0o755))
	s := newScanner(t, n.options())
	has := func(want ...metric.PodUID) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(s.mu.pods)); !slices.Equal(got, want) {
			t.Errorf("pods = %v, want %v", got, want)
		}
	}
	s.scanPods(context.Background(), false)
	has(other, uid)
	must(t, os.RemoveAll(n.pod(uid)))
	s.Refresh(context.Background())
	has(other)
	// If the pods cannot be listed, no result is removed.
	must(t, os.RemoveAll(n.path("/var/lib/kubelet/pods")))
	write(t, 0, n.path("/var/lib/kubelet/pods"))
	if r := s.scanPods(context.Background(), false); r.Problems == nil {
		t.Error("no problem where the pods' directory is a file")
	}
	has(other)
	must(t, os.RemoveAll(n.path("/var/lib/kubelet")))
	if r := s.scanPods(context.Background(), false); r.Problems != nil {
		t.Errorf("on a machine without a kubelet: %v", r.Problems)
	}
	has()
}

func TestOldScanIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScanner(t, Options{})
		s.storeResult(uid, podResult{pod: &PodUsage{At: time.Now()}, began: time.Now()})
		time.Sleep(time.Hour)
		if _, ok := s.Pod(uid); !ok {
			t.Error("nothing is known after an hour")
		}
		time.Sleep(time.Nanosecond)
		if pod, ok := s.Pod(uid); ok || pod != nil {
			t.Errorf("after more than an hour: %+v", pod)
		}
	})
}

// TestListOfAPipe checks that a pipe in place of a directory does not block the scanner.
func TestListOfAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	if names, err := listNames(pipe); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("got %v, %v; want it is no directory", names, err)
	}
}

// TestPodTakesLong checks that a pod with too many files to count in time is counted by the scan of
// slow pods.
func TestPodTakesLong(t *testing.T) {
	n := newNode(t)
	for _, uid := range []metric.PodUID{uid, other} {
		n.running[uid] = map[string]string{}
		write(t, 1, n.pod(uid, "etc-hosts"))
		must(t, os.MkdirAll(n.logs(uid), 0o755))
		n.process(uid, pauseID, "/")
	}
	for i := range stepsPerCheck {
		write(t, 0, n.pod(other, "volumes/kubernetes.io~empty-dir/cache", fmt.Sprint(i)))
	}
	s := newScanner(t, n.options())
	s.podTimeout = time.Nanosecond
	look := func(slow bool, pods, unknown int, problem error) (of *PodUsage) {
		t.Helper()
		r := s.scanPods(context.Background(), slow)
		if r.Pods != pods || r.Unknown != unknown || r.Slow != slow || !errors.Is(r.Problems, problem) {
			t.Errorf("round = %+v, want %d pods, %d unknown, problem %v", r, pods, unknown, problem)
		}
		of, _ = s.Pod(other)
		return of
	}
	look(true, 0, 0, nil) // no pod is slow yet
	if pod := look(false, 2, 1, errSlow); pod.Ephemeral != nil {
		t.Errorf("ephemeral storage = %+v, of a pod not counted to its end", used(pod.Ephemeral))
	}
	look(false, 0, 0, nil) // a nanosecond is too short for both
	counted := look(true, 2, 0, nil)
	if got, want := used(counted.Ephemeral).inodes, uint64(stepsPerCheck+2); got != want {
		t.Errorf("%d inodes, want %d", got, want)
	}

	// A pod that was fast before keeps its last result, and is slow from now on.
	for _, uid := range []metric.PodUID{uid, other} {
		f := s.mu.pods[uid]
		f.duration = 0
		s.mu.pods[uid] = f
	}
	if pod := look(false, 2, 0, nil); pod != counted {
		t.Errorf("the pod is %+v, want what it was, %+v", pod, counted)
	}
	look(true, 2, 0, nil)

	// The scan of slow pods has a timeout, too. A Refresh does not change which pods are slow.
	s.slowTimeout = time.Nanosecond
	look(true, 2, 1, errSlow)
	s.Refresh(context.Background())
	if pod, _ := s.Pod(other); pod.Ephemeral == nil || s.mu.pods[other].duration < s.podTimeout {
		t.Errorf("after a Refresh: %+v, want it to be known and slow", s.mu.pods[other])
	}
}

func TestQuickOnesFirst(t *testing.T) {
	n := newNode(t)
	n.fill(uid)
	n.fill(other)
	s := newScanner(t, n.options())
	f := func(a, b time.Duration, want ...metric.PodUID) {
		t.Helper()
		s.mu.pods[uid], s.mu.pods[other] = podResult{duration: a}, podResult{duration: b}
		if v, _ := s.listPods(newPace(1)); !slices.Equal(v.pods, want) {
			t.Errorf("took %v and %v: order = %v, want %v", a, b, v.pods, want)
		}
	}
	f(1, 2, uid, other)
	f(2, 1, other, uid)
	f(1, 1, other, uid) // sorted by UID
}

func TestRefresh(t *testing.T) {
	n := newNode(t)
	n.fill(uid)
	s := newScanner(t, n.options())
	s.scanPods(context.Background(), false)
	before, _ := s.Pod(uid)
	want := n.sum(uid)

	write(t, 1<<20, n.pod(uid, "volumes/kubernetes.io~empty-dir/cache/new"))
	late, cancel := context.WithCancel(context.Background())
	cancel()
	s.Refresh(late)
	if now, _ := s.Pod(uid); now != before {
		t.Error("a Refresh that had no time changed what was known")
	}
	s.Refresh(context.Background())
	after, _ := s.Pod(uid)
	if got, want := used(after.Ephemeral), n.sum(uid); got != want || after == before {
		t.Errorf("ephemeral storage = %+v, want %+v", got, want)
	}
	if got := used(before.Ephemeral); got != want {
		t.Errorf("what was given out became %+v, want %+v", got, want)
	}

	// The result of a scan that began earlier does not replace a newer one.
	s.storeResult(uid, podResult{pod: before, began: after.At.Add(-time.Hour)})
	if now, _ := s.Pod(uid); now != after {
		t.Error("an older look replaced a newer one")
	}
}

func TestRun(t *testing.T) {
	n := newNode(t)
	n.fill(uid)
	synctest.Test(t, func(t *testing.T) {
		o := n.options()
		var rounds []ScanResult
		var slow []time.Duration
		began := time.Now()
		o.Done = func(r ScanResult) {
			if r.Slow {
				slow = append(slow, r.At.Sub(began))
				return
			}
			rounds = append(rounds, r)
		}
		s := newScanner(t, o)
		stop := background.Run(t, s.Run)
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if len(slow) > 0 {
			t.Errorf("scans of slow pods at %v, and there are none", slow)
		}
		s.storeResult(uid, podResult{pod: &PodUsage{}, began: time.Now(), duration: time.Minute})
		time.Sleep(31 * time.Second)
		synctest.Wait()
		stop()
		var at []time.Duration
		for _, r := range rounds {
			at = append(at, r.At.Sub(began))
		}
		if want := []time.Duration{0, time.Minute, 2 * time.Minute}; !slices.Equal(at, want) {
			t.Errorf("scans at %v, want %v", at, want)
		}
		if want := []time.Duration{2 * time.Minute}; !slices.Equal(slow, want) {
			t.Errorf("scans of slow pods at %v, want %v", slow, want)
		}
	})
}

func TestOptions(t *testing.T) {
	f := func(o Options, want string) {
		t.Helper()
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v, want %q", o, err, want)
		}
	}
	f(Options{KubeletRoot: "var/lib/kubelet"}, `KubeletRoot is "var/lib/kubelet": it must be an absolute path`)
}
