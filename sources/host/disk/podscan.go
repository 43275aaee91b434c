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

// volumePlugins are the plugin directories of the volumes with files that the kubelet counts. local
// is true if a volume on disk counts as ephemeral storage. Other volumes (claims, host paths) are
// not read, because a network file system may never answer.
var volumePlugins = []struct {
	plugin string
	local  bool
}{
	{"kubernetes.io~empty-dir", true},
	{"kubernetes.io~configmap", true},
	{"kubernetes.io~secret", false},
	{"kubernetes.io~projected", false},
	{"kubernetes.io~downward-api", false},
}

// nodeScan has what all pods of one scan share. It is read at the start of the scan.
type nodeScan struct {
	opts          *Options
	pace          *pace
	layers        *layers
	pods          []metric.PodUID // the pods with the shortest scans first
	lastDurations map[metric.PodUID]time.Duration
	dirs          map[metric.PodUID]string // the kubelet's directories of pods
	logs          map[metric.PodUID]string // the directories of their logs
}

// podScan is the scan of one pod.
type podScan struct {
	*nodeScan
	ctx   context.Context
	pod   *PodUsage
	total diskUse
	errs  []error // if there are any, the pod has no sum
	// unknown is true if the pod has no sum for a reason that is not an error.
	unknown bool
}

// scanPod returns the usage of a pod, which is never nil. The error joins the reasons for its nil
// fields.
func (n *nodeScan) scanPod(ctx context.Context, uid metric.PodUID) (*PodUsage, error) {
	l := podScan{nodeScan: n, ctx: ctx, pod: &PodUsage{Containers: map[string]ContainerUsage{}}}
	dir := n.dirs[uid]
	l.countVolumes(dir)
	l.countEtcHosts(path.Join(dir, "etc-hosts"))
	l.countContainers(uid, l.countLogs(uid))
	l.pod.At = time.Now()
	if len(l.errs) == 0 && !l.unknown {
		l.pod.Ephemeral = l.fsStats(dir, l.total)
	}
	return l.pod, errors.Join(l.errs...)
}

func (p *podScan) addError(err error) { p.errs = append(p.errs, err) }

func (p *podScan) countVolumes(dir string) {
	var pod unix.Stat_t
	if err := unix.Lstat(dir, &pod); isGone(err) {
		p.unknown = true
		return
	} else if err != nil {
		p.addError(fmt.Errorf("stat the pod's directory: %w", err))
		return
	}
	for _, kind := range volumePlugins {
		plugin := path.Join(dir, "volumes", kind.plugin)
		names, err := listNames(plugin)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.addError(fmt.Errorf("list volumes: %w", err))
		}
		slices.Sort(names)
		for _, name := range names {
			at := path.Join(plugin, name)
			u, err := countTree(p.ctx, at, p.pace)
			if errors.Is(err, fs.ErrNotExist) {
				continue // the pod is being removed
			}
			if err != nil {
				p.addError(err)
				continue
			}
			p.pod.Volumes = append(p.pod.Volumes, stats.VolumeStats{Name: name, FsStats: *p.fsStats(at, u)})
			if kind.local && !inMemory(at, pod.Dev) {
				p.total.add(u)
			}
		}
	}
}

// inMemory reports whether a volume is a separate tmpfs or hugetlbfs. pod is the device of the
// pod's directory, which may be a tmpfs too.
func inMemory(dir string, pod uint64) bool {
	var st unix.Stat_t
	var fs unix.Statfs_t
	return unix.Stat(dir, &st) == nil && st.Dev != pod && unix.Statfs(dir, &fs) == nil &&
		(fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.HUGETLBFS_MAGIC)
}

// countEtcHosts counts the file etc-hosts, which the kubelet creates for most pods.
func (p *podScan) countEtcHosts(file string) {
	u, err := countTree(p.ctx, file, p.pace)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.addError(err)
	}
	p.total.add(u)
}

// countLogs counts the pod's own logs, and returns those of its containers by name.
func (p *podScan) countLogs(uid metric.PodUID) map[string]diskUse {
	dir, ok := p.logs[uid]
	if !ok {
		p.unknown = true // there are no logs yet, or Options.PodLogs is wrong
		return nil
	}
	files, dirs, err := p.countFiles(dir)
	if err != nil {
		p.addError(err)
	}
	p.total.add(files)
	logs := map[string]diskUse{}
	for _, name := range dirs {
		u, _, err := p.countFiles(path.Join(dir, name))
		if err != nil {
			p.addError(err)
			continue
		}
		logs[name] = u
	}
	return logs
}

// countFiles counts the files in a directory, without the directory itself, and returns the names
// of the directories in it.
func (p *podScan) countFiles(dir string) (u diskUse, dirs []string, err error) {
	names, err := listNames(dir)
	if err != nil {
		return u, nil, fmt.Errorf("list logs: %w", err)
	}
	for _, name := range names {
		if err := p.pace.step(p.ctx); err != nil {
			return u, nil, fmt.Errorf("count %s: %w", dir, err)
		}
		var st unix.Stat_t
		switch err := unix.Lstat(path.Join(dir, name), &st); {
		case isGone(err):
		case err != nil:
			return u, nil, fmt.Errorf("stat %s: %w", path.Join(dir, name), err)
		case st.Mode&unix.S_IFMT == unix.S_IFDIR:
			dirs = append(dirs, name)
		default:
			u.add(diskUse{bytes: uint64(st.Blocks) * blockSize, inodes: 1})
		}
	}
	return u, dirs, nil
}

// countContainers counts the writable layers of the running containers, and adds their logs.
func (p *podScan) countContainers(uid metric.PodUID, logs map[string]diskUse) {
	running, known := p.opts.Containers(uid)
	seen := p.layers.pods[uid]
	p.unknown = p.unknown || !known
	unnamed := 0
	for id := range seen {
		if _, ok := running[string(id)]; !ok {
			unnamed++
		}
	}
	if !known {
		for _, id := range slices.Sorted(maps.Keys(seen)) {
			p.pod.Containers[string(id)] = ContainerUsage{Rootfs: p.countLayer(uid, id)}
		}
		for name, u := range logs {
			p.pod.Containers[name] = ContainerUsage{Logs: p.fsStats(p.logs[uid], u)}
		}
		return
	}
	// One of them is the sandbox. Any other was started so recently that its name is not known yet.
	p.unknown = p.unknown || unnamed > 1
	for _, id := range slices.Sorted(maps.Keys(running)) {
		c := ContainerUsage{Rootfs: p.countLayer(uid, metric.ContainerID(id))}
		if u, ok := logs[running[id]]; ok {
			c.Logs = p.fsStats(p.logs[uid], u)
			p.total.add(u)
		} else {
			p.unknown = true
		}
		p.pod.Containers[running[id]] = c
	}
}

// countLayer counts a writable layer. It returns nil if it cannot be counted.
func (p *podScan) countLayer(uid metric.PodUID, id metric.ContainerID) *stats.FsStats {
	upper, err := p.layers.find(uid, id)
	if errors.Is(err, errEnded) {
		p.unknown = true
		return nil
	}
	if err != nil {
		p.addError(fmt.Errorf("find the writable layer of %s: %w", id, err))
		return nil
	}
	at := p.opts.hostPath(upper)
	u, err := countTree(p.ctx, at, p.pace)
	if err != nil {
		p.addError(err)
		return nil
	}
	p.total.add(u)
	return p.fsStats(at, u)
}

// fsStats converts u, and adds the state of the file system of dir.
func (p *podScan) fsStats(dir string, u diskUse) *stats.FsStats {
	s := &stats.FsStats{Time: metav1.Now(), UsedBytes: &u.bytes, InodesUsed: &u.inodes}
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil {
		block := uint64(fs.Bsize)
		available, capacity := fs.Bavail*block, fs.Blocks*block
		s.AvailableBytes, s.CapacityBytes, s.Inodes, s.InodesFree = &available, &capacity, &fs.Files, &fs.Ffree
	}
	return s
}
