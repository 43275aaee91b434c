//go:build linux

package disk

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// diskUse is the disk usage of files.
type diskUse struct{ bytes, inodes uint64 }

func (u *diskUse) add(v diskUse) {
	u.bytes += v.bytes
	u.inodes += v.inodes
}

const (
	// maxDepth limits the number of directories that are open at once.
	maxDepth = 1000
	// maxLinks limits the inodes in walker.links, to about 40 MB.
	maxLinks = 1 << 20
	// blockSize is the unit of st_blocks in bytes. It is the same for every file system.
	blockSize = 512
)

// walker counts the disk usage of one tree. Pods may write at the same time, and may be malicious.
// The walker therefore looks every name up in an open directory and follows no link.
type walker struct {
	pace  *pace
	dev   uint64
	links map[uint64]struct{} // counted inodes with several names
	at    []*openLevel        // the open directories, by depth
	use   diskUse
}

// openLevel has the buffers for the list of one directory.
type openLevel struct {
	buf   []byte
	names []string
}

// countTree counts the directory or file at top, as du -x does. It trusts the parents of top. Files
// that are removed in the meantime do not count.
func countTree(ctx context.Context, top string, p *pace) (diskUse, error) {
	var st unix.Stat_t
	if err := unix.Lstat(top, &st); err != nil {
		return diskUse{}, fmt.Errorf("count %s: %w", top, err)
	}
	w := walker{pace: p, dev: st.Dev, links: map[uint64]struct{}{}}
	if !w.count(&st) {
		return w.use, nil
	}
	if err := w.enter(ctx, unix.AT_FDCWD, top, &st, 0); err != nil {
		return diskUse{}, fmt.Errorf("count %s: %w", top, err)
	}
	return w.use, nil
}

// count counts one entry, and reports whether it is a directory to enter.
func (w *walker) count(st *unix.Stat_t) bool {
	if st.Dev != w.dev {
		return false
	}
	dir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if !dir && st.Nlink > 1 {
		if _, ok := w.links[st.Ino]; ok {
			return false
		}
		w.links[st.Ino] = struct{}{}
	}
	w.use.add(diskUse{bytes: uint64(st.Blocks) * blockSize, inodes: 1})
	return dir
}

// enter counts the content of the directory name in the open directory at. st is its state
// before it was opened.
func (w *walker) enter(ctx context.Context, at int, name string, st *unix.Stat_t, depth int) error {
	if depth == maxDepth {
		return fmt.Errorf("directories are nested more than %d deep", maxDepth)
	}
	fd, err := cgroupfs.RetryInterrupted(func() (int, error) {
		return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), isGone(err):
		return nil // it was removed or replaced
	case err != nil:
		return fmt.Errorf("open %s: %w", path.Base(name), err)
	}
	defer func() { _ = unix.Close(fd) }()
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil || now.Dev != st.Dev || now.Ino != st.Ino {
		return err
	}
	if depth == len(w.at) {
		w.at = append(w.at, &openLevel{buf: make([]byte, 8<<10)})
	}
	l := w.at[depth]
	for {
		n, err := cgroupfs.RetryInterrupted(func() (int, error) { return unix.ReadDirent(fd, l.buf) })
		if isGone(err) || err == nil && n <= 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", path.Base(name), err)
		}
		_, _, l.names = unix.ParseDirent(l.buf[:n], -1, l.names[:0])
		for _, child := range l.names {
			if err := w.child(ctx, fd, child, depth); err != nil {
				return err
			}
		}
	}
}

func (w *walker) child(ctx context.Context, fd int, name string, depth int) error {
	if err := w.pace.step(ctx); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); isGone(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("stat %s: %w", name, err)
	}
	if w.count(&st) {
		return w.enter(ctx, fd, name, &st, depth+1)
	}
	if len(w.links) > maxLinks {
		return fmt.Errorf("more than %d files have several names", maxLinks)
	}
	return nil
}

// isGone reports whether err means that a file was removed.
func isGone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE) }

// pace limits a scan to its share of time: after some work it pauses for as long as the share
// requires.
type pace struct {
	share float64
	steps int64
	since time.Time // the end of the last pause
}

const (
	// stepsPerCheck is the number of steps between two readings of the clock.
	stepsPerCheck = 256
	// minWork is the minimum time of work between two pauses.
	minWork = 5 * time.Millisecond
)

func newPace(share float64) *pace { return &pace{share: share, since: time.Now()} }

// step counts one more file. It returns an error if ctx has ended.
func (p *pace) step(ctx context.Context) error {
	if p.steps++; p.steps%stepsPerCheck != 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	worked := time.Since(p.since)
	if worked < minWork || p.share >= 1 {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Duration(float64(worked) * (1/p.share - 1))):
	}
	p.since = time.Now()
	return nil
}
