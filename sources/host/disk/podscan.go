//go:build linux

package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
)

// kinds are the volumes that the kubelet measures by counting files, by the directory of their
// plugin, and whether they count as ephemeral storage if they lie on disk. Others (claims, host paths)
// are not touched: a network file system may never answer.
var kinds = []struct {
	plugin string
	local  bool
}{
	{"kubernetes.io~empty-dir", true},
	{"kubernetes.io~configmap", true},
	{"kubernetes.io~secret", false},
	{"kubernetes.io~projected", false},
	{"kubernetes.io~downward-api", false},
}

// view is the node as of the start of a scan.
type view struct {
	opts   *Options
	pace   *pace
	layers *layers
	order  []metric.PodUID // quick ones first
	took   map[metric.PodUID]time.Duration
	dirs   map[metric.PodUID]string // the kubelet's directories of pods
	logs   map[metric.PodUID]string // the directories of their logs
}

// look looks at one pod.
type look struct {
	*view
	ctx  context.Context
	pod  *Pod
	sum  use
	errs []error // with any of them there is no sum
	// vague: there is no sum, for a reason that is no error.
	vague bool
}

// look returns what the pod uses, never nil, with the errors of what is nil in it.
func (v *view) look(ctx context.Context, uid metric.PodUID) (*Pod, error) {
	l := look{view: v, ctx: ctx, pod: &Pod{Containers: map[string]Container{}}}
	dir := v.dirs[uid]
	l.volumes(dir)
	l.etcHosts(path.Join(dir, "etc-hosts"))
	l.containers(uid, l.logsOf(uid))
	l.pod.At = time.Now()
	if len(l.errs) == 0 && !l.vague {
		l.pod.Ephemeral = l.stats(dir, l.sum)
	}
	return l.pod, errors.Join(l.errs...)
}

func (l *look) fail(err error) { l.errs = append(l.errs, err) }

func (l *look) volumes(dir string) {
	var pod unix.Stat_t
	if err := unix.Lstat(dir, &pod); vanished(err) {
		l.vague = true
		return
	} else if err != nil {
		l.fail(fmt.Errorf("look at the pod's directory: %w", err))
		return
	}
	for _, kind := range kinds {
		plugin := path.Join(dir, "volumes", kind.plugin)
		names, err := list(plugin)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.fail(fmt.Errorf("list volumes: %w", err))
		}
		slices.Sort(names)
		for _, name := range names {
			at := path.Join(plugin, name)
			u, err := du(l.ctx, at, l.pace)
			if errors.Is(err, fs.ErrNotExist) {
				continue // the pod ends
			}
			if err != nil {
				l.fail(err)
				continue
			}
			l.pod.Volumes = append(l.pod.Volumes, stats.VolumeStats{Name: name, FsStats: *l.stats(at, u)})
			if kind.local && !inMemory(at, pod.Dev) {
				l.sum.add(u)
			}
		}
	}
}

// inMemory says whether a volume is a tmpfs, or huge pages, of its own: the device of its pod's
// directory may be a tmpfs too.
func inMemory(dir string, pod uint64) bool {
	var st unix.Stat_t
	var fs unix.Statfs_t
	return unix.Stat(dir, &st) == nil && st.Dev != pod && unix.Statfs(dir, &fs) == nil &&
		(fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.HUGETLBFS_MAGIC)
}

// etcHosts counts the file that the kubelet makes for most pods.
func (l *look) etcHosts(file string) {
	u, err := du(l.ctx, file, l.pace)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.fail(err)
	}
	l.sum.add(u)
}

// logsOf counts the pod's own logs, and returns those of its containers by their names.
func (l *look) logsOf(uid metric.PodUID) map[string]use {
	dir, ok := l.logs[uid]
	if !ok {
		l.vague = true // it has none yet, or they are not where Options say
		return nil
	}
	files, dirs, err := l.files(dir)
	if err != nil {
		l.fail(err)
	}
	l.sum.add(files)
	logs := map[string]use{}
	for _, name := range dirs {
		u, _, err := l.files(path.Join(dir, name))
		if err != nil {
			l.fail(err)
			continue
		}
		logs[name] = u
	}
	return logs
}

// files counts the files of a directory, without itself, and names the directories in it.
func (l *look) files(dir string) (u use, dirs []string, err error) {
	names, err := list(dir)
	if err != nil {
		return u, nil, fmt.Errorf("list logs: %w", err)
	}
	for _, name := range names {
		if err := l.pace.step(l.ctx); err != nil {
			return u, nil, fmt.Errorf("count %s: %w", dir, err)
		}
		var st unix.Stat_t
		switch err := unix.Lstat(path.Join(dir, name), &st); {
		case vanished(err):
		case err != nil:
			return u, nil, fmt.Errorf("look at %s: %w", path.Join(dir, name), err)
		case st.Mode&unix.S_IFMT == unix.S_IFDIR:
			dirs = append(dirs, name)
		default:
			u.add(use{bytes: uint64(st.Blocks) * blockSize, inodes: 1})
		}
	}
	return u, dirs, nil
}

// containers counts the writable layers of the containers that run, and pairs them with their logs.
func (l *look) containers(uid metric.PodUID, logs map[string]use) {
	running, known := l.opts.Containers(uid)
	seen := l.layers.pods[uid]
	// Processes are how a container's end is told from not seeing it.
	l.vague = l.vague || !known || len(running) > 0 && len(seen) == 0
	unnamed := 0
	for _, id := range slices.Sorted(maps.Keys(seen)) {
		if _, ok := running[string(id)]; !ok {
			unnamed++
		}
	}
	if !known {
		for _, id := range slices.Sorted(maps.Keys(seen)) {
			l.pod.Containers[string(id)] = Container{Rootfs: l.rootfs(uid, id)}
		}
		for name, u := range logs {
			l.pod.Containers[name] = Container{Logs: l.stats(l.logs[uid], u)}
		}
		return
	}
	// One is the sandbox. Another has begun so lately that its name is not known yet.
	l.vague = l.vague || unnamed > 1
	for _, id := range slices.Sorted(maps.Keys(running)) {
		c := Container{Rootfs: l.rootfs(uid, metric.ContainerID(id))}
		if u, ok := logs[running[id]]; ok {
			c.Logs = l.stats(l.logs[uid], u)
			l.sum.add(u)
		} else {
			l.vague = true
		}
		l.pod.Containers[running[id]] = c
	}
}

// rootfs counts a writable layer; nil if that cannot be done.
func (l *look) rootfs(uid metric.PodUID, id metric.ContainerID) *stats.FsStats {
	upper, err := l.layers.find(uid, id)
	if errors.Is(err, errEnded) {
		l.vague = true
		return nil
	}
	if err != nil {
		l.fail(fmt.Errorf("find the writable layer of %s: %w", id, err))
		return nil
	}
	at := l.opts.on(upper)
	u, err := du(l.ctx, at, l.pace)
	if err != nil {
		l.fail(err)
		return nil
	}
	l.sum.add(u)
	return l.stats(at, u)
}

// stats says u in the kubelet's words, with the state of the file system that dir is on.
func (l *look) stats(dir string, u use) *stats.FsStats {
	s := &stats.FsStats{Time: metav1.Now(), UsedBytes: &u.bytes, InodesUsed: &u.inodes}
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil {
		block := uint64(fs.Bsize)
		available, capacity := fs.Bavail*block, fs.Blocks*block
		s.AvailableBytes, s.CapacityBytes, s.Inodes, s.InodesFree = &available, &capacity, &fs.Files, &fs.Ffree
	}
	return s
}
