//go:build linux

package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
)

const (
	uid   = metric.PodUID("73296cad-fda8-4a1c-bff9-cb1de73626a6")
	other = metric.PodUID("11111111-1111-4111-8111-111111111111")
)

var (
	appID     = strings.Repeat("a", 64)
	sidecarID = strings.Repeat("b", 64)
	pauseID   = strings.Repeat("c", 64)
	newID     = strings.Repeat("d", 64)
)

// node is the file system of a node below a directory.
type node struct {
	t      testing.TB
	root   string
	pid    int
	mounts string
	// running has the containers in the status of each pod.
	running map[metric.PodUID]map[string]string
}

func newNode(t testing.TB) *node {
	n := &node{t: t, root: t.TempDir(), running: map[metric.PodUID]map[string]string{}}
	n.mount("27 1 254:0 / / rw - ext4 /dev/vda rw")
	return n
}

func (n *node) options() Options {
	return Options{
		RootFS: n.root, Proc: n.path("/proc"),
		Containers: func(uid metric.PodUID) (map[string]string, bool) {
			names, ok := n.running[uid]
			return names, ok
		},
	}
}

func (n *node) path(parts ...string) string {
	return filepath.Join(append([]string{n.root}, parts...)...)
}

func (n *node) pod(uid metric.PodUID, parts ...string) string {
	return n.path(append([]string{"/var/lib/kubelet/pods", string(uid)}, parts...)...)
}

func (n *node) logs(uid metric.PodUID, parts ...string) string {
	return n.path(append([]string{"/var/log/pods/shop_web_" + string(uid)}, parts...)...)
}

func (n *node) layer(id string) string {
	return n.path("/var/lib/containerd/snapshots", id, "fs")
}

// mount adds a line to the host's mount table.
func (n *node) mount(line string) {
	n.mounts += line + "\n"
	n.file("/proc/1/mountinfo", n.mounts)
}

func (n *node) file(at, content string) {
	n.t.Helper()
	must(n.t, os.MkdirAll(filepath.Dir(n.path(at)), 0o755))
	must(n.t, os.WriteFile(n.path(at), []byte(content), 0o644))
}

// process adds a process in a container, with its root in its mountinfo.
func (n *node) process(uid metric.PodUID, id, upper string) (dir string) {
	n.pid++
	dir = fmt.Sprintf("/proc/%d", 100+n.pid)
	n.file(dir+"/cgroup", "0::/kubepods/pod"+string(uid)+"/"+id+"\n")
	n.file(dir+"/mountinfo", "9 1 0:40 / / rw - overlay overlay rw,lowerdir=/l,upperdir="+upper+",workdir=/w\n")
	return n.path(dir)
}

// fill creates a pod with everything that counts. Its containers app and sidecar are running.
func (n *node) fill(uid metric.PodUID) {
	write(n.t, 10_000, n.pod(uid, "volumes/kubernetes.io~empty-dir/cache/a/b"))
	write(n.t, 30_000, n.pod(uid, "volumes/kubernetes.io~empty-dir/scratch/c"))
	write(n.t, 100, n.pod(uid, "volumes/kubernetes.io~configmap/config/..data/key"))
	write(n.t, 5_000_000, n.pod(uid, "volumes/kubernetes.io~secret/token/key"))
	write(n.t, 7_000_000, n.pod(uid, "volumes/kubernetes.io~csi/claim/mount/file"))
	write(n.t, 200, n.pod(uid, "etc-hosts"))
	write(n.t, 9_000_000, n.pod(uid, "containers/app/termination-log"))
	write(n.t, 300, n.logs(uid, "pod.log"))
	for _, c := range []struct {
		name, id string
		logs     int
	}{{"app", appID, 20_000}, {"sidecar", sidecarID, 0}} {
		write(n.t, 40_000, n.layer(c.id), "tmp", c.name)
		write(n.t, c.logs, n.logs(uid, c.name, "0.log"))
		n.process(uid, c.id, strings.TrimPrefix(n.layer(c.id), n.root))
	}
	write(n.t, 60_000, n.logs(uid, "app", "0.log.20261121-101112.gz")) // a rotated log
	write(n.t, 90_000, n.logs(uid, "init", "0.log"))                   // a container that has ended
	write(n.t, 50_000, n.layer(pauseID), "pause")
	n.process(uid, pauseID, strings.TrimPrefix(n.layer(pauseID), n.root))
	n.running[uid] = map[string]string{appID: "app", sidecarID: "sidecar"}
}

// sum returns the usage of a filled pod according to du.
func (n *node) sum(uid metric.PodUID) diskUse {
	var u diskUse
	for _, part := range []string{
		n.pod(uid, "volumes/kubernetes.io~empty-dir/cache"), n.pod(uid, "volumes/kubernetes.io~empty-dir/scratch"),
		n.pod(uid, "volumes/kubernetes.io~configmap/config"), n.pod(uid, "etc-hosts"),
		n.logs(uid, "pod.log"), n.logs(uid, "app/0.log"), n.logs(uid, "app/0.log.20261121-101112.gz"), n.logs(uid, "sidecar/0.log"),
		n.layer(appID), n.layer(sidecarID),
	} {
		u.add(truth(n.t, part))
	}
	return u
}

func newScanner(t testing.TB, o Options) *Scanner {
	t.Helper()
	s, err := New(o)
	must(t, err)
	return s
}

func used(s *stats.FsStats) (u diskUse) {
	if s != nil {
		u = diskUse{*s.UsedBytes, *s.InodesUsed}
	}
	return u
}
