//go:build linux

package disk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/metric"
)

// TestRealContainer checks the layer of a process that has a real overlay as its root and is in a
// real cgroup.
func TestRealContainer(t *testing.T) {
	n := newNode(t)
	n.fill(uid)
	upper := n.layer(newID)
	write(t, 1, n.path("lower/etc/passwd"))
	write(t, 1, n.path("lower/etc/group"))
	for _, dir := range []string{upper, upper + ".work"} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	merged := n.path("merged")
	mount(t, "overlay", merged, "overlay", fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", n.path("lower"), upper, upper+".work"))
	write(t, 70_000, merged, "srv/data")
	write(t, 500, merged, "etc/passwd")                    // this copies the file up
	must(t, os.Remove(filepath.Join(merged, "etc/group"))) // this makes a whiteout

	joinCgroup(t, startIn(t, merged), fmt.Sprintf("weir-test-%d/kubepods/pod%s/%s", os.Getpid(), uid, newID))

	l, err := findLayers("/proc", n.path("/var/lib/containerd"))
	must(t, err)
	got, err := l.find(uid, metric.ContainerID(newID))
	if err != nil || got != upper {
		t.Fatalf("the writable layer is %q, %v, want %q", got, err, upper)
	}

	n.running[uid] = map[string]string{newID: "app"}
	o := n.options()
	o.RootFS, o.Proc = "/", "/proc"
	o.KubeletRoot, o.PodLogs, o.ContainerRoot = n.path("/var/lib/kubelet"), n.path("/var/log/pods"), n.path("/var/lib/containerd")
	s := newScanner(t, o)
	if r := s.scanPods(context.Background(), false); r.Problems != nil || r.Unknown != 0 {
		t.Errorf("round = %+v, want no problem", r)
	}
	pod, _ := s.Pod(uid)
	if got, want := used(pod.Containers["app"].Rootfs), truth(t, upper); got != want || got.bytes < 70_000 {
		t.Errorf("the writable layer = %+v, want %+v", got, want)
	}
}

// joinCgroup moves a process into a new cgroup of any writable hierarchy.
func joinCgroup(t *testing.T, pid int, name string) {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if unix.Access(root+"/cgroup.procs", unix.W_OK) != nil {
			continue
		}
		at := root
		for _, part := range strings.Split(name, "/") {
			dir := filepath.Join(at, part)
			must(t, os.Mkdir(dir, 0o755))
			t.Cleanup(func() { must(t, os.Remove(dir)) })
			at = dir
		}
		must(t, os.WriteFile(at+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0))
		t.Cleanup(func() { os.WriteFile(root+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0) })
		return
	}
	t.Skip("no writable cgroup hierarchy: it takes root")
}
