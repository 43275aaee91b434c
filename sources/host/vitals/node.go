//go:build linux

package vitals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// nodeFiles are the files with the node's figures.
type nodeFiles struct {
	root                                 *cgroup // nil until it was opened
	meminfo, pidMax, threadsMax, loadavg openFile
	pressure                             pressureFiles
}

func newNodeFiles(proc string) nodeFiles {
	in := func(name string) openFile { return openFile{name: path.Join(proc, name)} }
	return nodeFiles{
		meminfo: in("meminfo"), pidMax: in("sys/kernel/pid_max"), threadsMax: in("sys/kernel/threads-max"), loadavg: in("loadavg"),
		pressure: pressureFiles{in("pressure/cpu"), in("pressure/memory"), in("pressure/io")},
	}
}

func (n *nodeFiles) close() {
	if n.root != nil {
		n.root.close()
		n.root = nil
	}
	for _, h := range [...]*openFile{&n.meminfo, &n.pidMax, &n.threadsMax, &n.loadavg} {
		h.close()
	}
	n.pressure.close()
}

func (r *round) readNode(n *stats.NodeStats) {
	r.readNodeMemory(n)
	r.addError("read pressure", r.readPressure(&r.mu.node.pressure, unix.AT_FDCWD, &n.CPU, &n.Memory, &n.IO))
	n.Rlimit = r.readTaskLimit()
	r.readNodeDisks(n)
}

// readProc reads a file outside of any cgroup.
func (r *round) readProc(h *openFile) ([]byte, error) { return r.read(h, unix.AT_FDCWD) }

// readNodeMemory reads the root cgroup, and MemTotal. If the root cgroup has no figures, for
// example without the memory controller, it uses meminfo instead.
func (r *round) readNodeMemory(n *stats.NodeStats) {
	from := &r.mu.node
	var m *stats.MemoryStats
	var err error
	if from.root == nil {
		from.root, err = r.openCgroup(unix.AT_FDCWD, r.memoryDir, "/")
	}
	if err == nil {
		m, err = r.readMemory(from.root)
	}
	data, infoErr := r.readProc(&from.meminfo)
	var info meminfo
	if infoErr == nil {
		info, infoErr = parseMeminfo(data)
	}
	if cgroupfs.IsRemoved(err) && info.complete {
		m, err = &stats.MemoryStats{Time: metav1.Now(), UsageBytes: new(info.Anonymous + info.Cache)}, nil
		addMemoryStat(m, &info.MemoryStat)
	}
	r.addError("read node memory", errors.Join(err, infoErr))
	n.Memory = m
	if m == nil || m.WorkingSetBytes == nil || infoErr != nil {
		return
	}
	if *m.WorkingSetBytes > info.total {
		r.addError("read node memory", fmt.Errorf("a working set of %d bytes is more than the %d there are", *m.WorkingSetBytes, info.total))
		return
	}
	m.AvailableBytes = new(info.total - *m.WorkingSetBytes)
}

// MemoryLeft has figures of /proc/meminfo, in bytes.
type MemoryLeft struct {
	// At is the time of the read.
	At time.Time
	// Available is MemAvailable, of Total: what programs can get without swapping.
	Available, Total uint64
	// SwapFree is the free swap, of SwapTotal, which is zero on a node without swap.
	SwapFree, SwapTotal uint64
	// HugePages is the memory of Total that is set aside for huge pages of all sizes, used or not
	// (Hugetlb). It is zero on kernels before 4.19, which do not report it.
	HugePages uint64
}

// MemoryLeft reads /proc/meminfo.
func (r *Reader) MemoryLeft() (m MemoryLeft, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return m, fmt.Errorf("read meminfo: %w", os.ErrClosed)
	}
	now := &round{Reader: r, fileReader: &r.mu.files, ctx: context.Background()}
	data, err := now.readProc(&r.mu.node.meminfo)
	if err != nil {
		return m, fmt.Errorf("read meminfo: %w", err)
	}
	m.At = time.Now()
	missing := readMeminfo(data, meminfoField{"MemAvailable", &m.Available}, meminfoField{"MemTotal", &m.Total},
		meminfoField{"SwapFree", &m.SwapFree}, meminfoField{"SwapTotal", &m.SwapTotal}, meminfoField{"Hugetlb", &m.HugePages})
	missing = slices.DeleteFunc(missing, func(name string) bool { return name == "Hugetlb" })
	if len(missing) > 0 {
		return m, fmt.Errorf("read meminfo: no number for %s", strings.Join(missing, ", "))
	}
	return m, nil
}

// readTaskLimit reads the limit and the number of tasks. A task is a thread; each task has a
// process ID.
func (r *round) readTaskLimit() *stats.RlimitStats {
	from := &r.mu.node
	l := &stats.RlimitStats{}
	for _, h := range [...]*openFile{&from.pidMax, &from.threadsMax} {
		limit, err := r.readNumber(h, unix.AT_FDCWD)
		if err == nil && limit > math.MaxInt32 {
			err = fmt.Errorf("%s: %d is not a number of tasks", h.name, limit)
		}
		if err != nil {
			r.addError("read limit of tasks", err)
			continue
		}
		if v := int64(limit); l.MaxPID == nil || v < *l.MaxPID {
			l.MaxPID = &v
		}
	}
	data, err := r.readProc(&from.loadavg)
	l.Time = metav1.Now()
	if err == nil {
		var n int64
		if n, err = cgroupfs.ParseThreads(data); err == nil {
			l.NumOfRunningProcesses = &n
		}
	}
	r.addError("count tasks", err)
	return l
}

// diskRoots are directories on the file systems of the node.
type diskRoots struct{ kubelet, images, layers string }

// overlaySnapshots is the directory that containerd reports for images and containers.
const overlaySnapshots = "io.containerd.snapshotter.v1.overlayfs"

func findDiskRoots(o *Options) diskRoots {
	orRoot := func(option, usual string) string {
		switch {
		case option != "":
			return option
		case exists(usual):
			return usual
		}
		return "/"
	}
	d := diskRoots{kubelet: orRoot(o.KubeletRoot, "/var/lib/kubelet"), images: orRoot(o.ContainerRoot, "/var/lib/containerd")}
	if dir := filepath.Join(d.images, overlaySnapshots); exists(dir) {
		d.images = dir
	}
	d.layers = cmp.Or(o.LayerRoot, d.images)
	return d
}

// Layout compares the devices of the file systems. images is true if images are on another device
// than nodefs. containers is true if writable layers are on another device than images; images is
// then true, too, as in the kubelet. Separately mounted btrfs subvolumes count as separate devices.
func (r *Reader) Layout(ctx context.Context) (images, containers bool, err error) {
	var devices [3]uint64
	var errs []error
	for i, dir := range [...]string{r.disks.kubelet, r.disks.images, r.disks.layers} {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			errs = append(errs, fmt.Errorf("find the file system of %s: %w", dir, err))
		}
		devices[i] = st.Dev
	}
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return false, false, err
	}
	containers = devices[1] != devices[2]
	return containers || devices[0] != devices[1], containers, nil
}

func (r *round) readNodeDisks(n *stats.NodeStats) {
	n.Fs = r.readFileSystem(r.disks.kubelet)
	images := r.readFileSystem(r.disks.images)
	layers := images
	if r.disks.layers != r.disks.images {
		layers = r.readFileSystem(r.disks.layers)
	}
	// Other programs may use these file systems, too, so their usage is not that of images and layers.
	for _, fs := range [...]*stats.FsStats{images, layers} {
		if fs != nil {
			fs.UsedBytes, fs.InodesUsed = nil, nil
		}
	}
	if images != nil || layers != nil {
		n.Runtime = &stats.RuntimeStats{ImageFs: images, ContainerFs: layers}
	}
}

// readFileSystem reads the file system of a directory. It returns nil if that fails.
func (r *round) readFileSystem(dir string) *stats.FsStats {
	var st unix.Statfs_t
	_, err := cgroupfs.RetryInterrupted(func() (int, error) { return 0, unix.Statfs(dir, &st) })
	if err == nil && st.Blocks == 0 {
		err = errors.New("it has no blocks")
	}
	if err != nil {
		r.addError("read the file system of "+dir, err)
		return nil
	}
	return fileSystemStats(&st, metav1.Now())
}

// fileSystemStats converts the result of statfs(2). Inodes are nil if the file system does not
// count them.
func fileSystemStats(st *unix.Statfs_t, at metav1.Time) *stats.FsStats {
	block := uint64(cmp.Or(st.Frsize, st.Bsize))
	fs := &stats.FsStats{
		Time: at, CapacityBytes: new(st.Blocks * block), AvailableBytes: new(st.Bavail * block),
		UsedBytes: new((st.Blocks - min(st.Bfree, st.Blocks)) * block),
	}
	if st.Files > 0 {
		fs.Inodes, fs.InodesFree, fs.InodesUsed = new(st.Files), new(st.Ffree), new(st.Files-min(st.Ffree, st.Files))
	}
	return fs
}
