//go:build linux

package vitals

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// diskRoots are directories on the file systems of the node.
type diskRoots struct{ kubelet, images, layers string }

// snapshots is where containerd says that images and containers are.
const snapshots = "io.containerd.snapshotter.v1.overlayfs"

func findDiskRoots(o *Options) diskRoots {
	orRoot := func(named, usual string) string {
		switch {
		case named != "":
			return named
		case exists(usual):
			return usual
		}
		return "/"
	}
	d := diskRoots{kubelet: orRoot(o.KubeletRoot, "/var/lib/kubelet"), images: orRoot(o.ContainerRoot, "/var/lib/containerd")}
	if dir := filepath.Join(d.images, snapshots); exists(dir) {
		d.images = dir
	}
	if d.layers = o.LayerRoot; d.layers == "" {
		d.layers = d.images
	}
	return d
}

// Layout says by device whether images have a file system other than nodefs, and containers one
// other than images (a split, which counts as images of their own too: so the kubelet has it).
// Subvolumes of btrfs that are mounted on their own count as devices of their own.
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

func (r *round) nodeDisks(n *stats.NodeStats) {
	n.Fs = r.fileSystem(r.disks.kubelet)
	images := r.fileSystem(r.disks.images)
	layers := images
	if r.disks.layers != r.disks.images {
		layers = r.fileSystem(r.disks.layers)
	}
	// What is used of these is not what images and layers use of them.
	for _, fs := range [...]*stats.FsStats{images, layers} {
		if fs != nil {
			fs.UsedBytes, fs.InodesUsed = nil, nil
		}
	}
	if images != nil || layers != nil {
		n.Runtime = &stats.RuntimeStats{ImageFs: images, ContainerFs: layers}
	}
}

// fileSystem reads the file system a directory lies on; nil if it cannot be.
func (r *round) fileSystem(dir string) *stats.FsStats {
	var st unix.Statfs_t
	_, err := again(func() (int, error) { return 0, unix.Statfs(dir, &st) })
	if err == nil && st.Blocks == 0 {
		err = errors.New("it has no blocks")
	}
	if err != nil {
		r.problem("read the file system of "+dir, err)
		return nil
	}
	return fileSystem(&st, metav1.Now())
}

// fileSystem is what statfs(2) says in the kubelet's words. A file system without a number of inodes has
// none, which is not zero.
func fileSystem(st *unix.Statfs_t, at metav1.Time) *stats.FsStats {
	block := uint64(st.Frsize)
	if block == 0 {
		block = uint64(st.Bsize)
	}
	capacity, available, used := st.Blocks*block, st.Bavail*block, (st.Blocks-min(st.Bfree, st.Blocks))*block
	fs := &stats.FsStats{Time: at, CapacityBytes: &capacity, AvailableBytes: &available, UsedBytes: &used}
	if st.Files > 0 {
		inodes, free, usedInodes := st.Files, st.Ffree, st.Files-min(st.Ffree, st.Files)
		fs.Inodes, fs.InodesFree, fs.InodesUsed = &inodes, &free, &usedInodes
	}
	return fs
}
