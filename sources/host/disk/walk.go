//go:build linux

package disk

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// diskUse is what files take.
type diskUse struct{ bytes, inodes uint64 }

func (u *diskUse) add(v diskUse) {
	u.bytes += v.bytes
	u.inodes += v.inodes
}

const (
	// maxDepth bounds how many directories are open at once.
	maxDepth = 1000
	// maxLinks bounds what is remembered of files with several names: some 40 MB.
	maxLinks = 1 << 20
	// blockSize is the unit of st_blocks, whatever the file system's.
	blockSize = 512
)

// walker counts what one tree takes. Pods write while it walks, and may mean to mislead it: every
// name is looked up in a directory that is open, and none is followed that is a link.
type walker struct {
	pace  *pace
	dev   uint64
	links map[uint64]struct{} // inodes seen that have several names
	at    []*openLevel        // by depth
	use   diskUse
}

// openLevel is what a directory is listed with.
type openLevel struct {
	buf   []byte
	names []string
}

// countTree counts the directory or file at top, whose parents are trusted. It is what du -x says. Files
// that vanish meanwhile are left out.
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

// count counts one entry, and says whether it is a directory to enter.
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

// enter counts what is in the directory name of the open directory at, which was st.
func (w *walker) enter(ctx context.Context, at int, name string, st *unix.Stat_t, depth int) error {
	if depth == maxDepth {
		return fmt.Errorf("directories lie more than %d deep", maxDepth)
	}
	fd, err := retryInterrupted(func() (int, error) {
		return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), isGone(err):
		return nil // another took its place
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
		n, err := retryInterrupted(func() (int, error) { return unix.ReadDirent(fd, l.buf) })
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
		return fmt.Errorf("look at %s: %w", name, err)
	}
	if w.count(&st) {
		return w.enter(ctx, fd, name, &st, depth+1)
	}
	if len(w.links) > maxLinks {
		return fmt.Errorf("more than %d files have several names", maxLinks)
	}
	return nil
}

// isGone says that err is of looking at what is no more.
func isGone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE) }

// retryInterrupted calls f until no signal interrupts it.
func retryInterrupted(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// pace holds a scan to its share of time: after each stretch of work it rests as long as the
// share asks.
type pace struct {
	share float64
	steps int64
	since time.Time // when the stretch began
}

const (
	// stepsPerCheck is after how many steps the clock is read.
	stepsPerCheck = 256
	// minWork is the least work between two rests.
	minWork = 5 * time.Millisecond
)

func newPace(share float64) *pace { return &pace{share: share, since: time.Now()} }

// step is one more file, and returns an error once ctx has ended.
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
	rest := time.NewTimer(time.Duration(float64(worked) * (1/p.share - 1)))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-rest.C:
	}
	p.since = time.Now()
	return nil
}
