package notify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// followStep returns how much the page cache must change before a figure is registered again. The
// kernel compares only after every 128 pages (THRESHOLDS_EVENTS_TARGET in mm/memcontrol-v1.c), so a
// smaller step is useless. A registration takes milliseconds, because the kernel waits until all
// processors have left the old list (synchronize_rcu), and no other watch is read during that time.
// On a large node the page cache changes all the time, so the step is there a thousandth of the
// figure.
func followStep(figure int64) int64 { return max(int64(128*os.Getpagesize()), figure/1024) }

// maxRechecks is the number of rechecks, which take 100 ms in total. A crossing that is missed
// after that is found at the next update of the figures.
const maxRechecks = 20

// activeThreshold is an active UsageThreshold.
type activeThreshold struct {
	kernel *kernel
	want   UsageThreshold
	usage  *kernelFile
	stat   *kernelFile // nil if the figure is fixed
	event  int         // the eventfd, -1 before there is one
	token  int32       // the token of event
	figure int64       // the figure that is registered with the kernel
	above  bool        // whether the usage was above the figure at the last read
	// rechecks is how often the usage must be read again soon. Pages that a processor keeps in stock
	// for the cgroup count as used, and the usage falls when it returns them. Right after a notice the
	// usage may therefore be back on the old side of the figure. When it then crosses the figure for
	// good, the kernel gives no second notice.
	rechecks int
}

func openThreshold(k *kernel, want UsageThreshold) (*activeThreshold, error) {
	if isCgroupV2(want.Path) {
		return nil, unsupported("a cgroup of version 2 gives no notice of its usage")
	}
	if want.Bytes <= 0 || want.WorkingSet < 0 {
		return nil, fmt.Errorf("no usage can cross %d bytes: the threshold asks for more than there is", min(want.Bytes, want.WorkingSet))
	}
	usage, err := openFile(filepath.Join(want.Path, want.Attribute), unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	t := &activeThreshold{kernel: k, usage: usage, event: -1}
	if err := t.update(want); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// update registers the new figure if it differs from the last.
func (t *activeThreshold) update(w Watch) error {
	t.want = w.(UsageThreshold)
	source, changed, err := t.registerAndRead()
	if changed {
		t.kernel.report(time.Now(), source)
	}
	return err
}

// registerAndRead registers the figure and checks whether it is already crossed.
func (t *activeThreshold) registerAndRead() (NoticeSource, bool, error) {
	source := NoticeSource{Watch: t.want}
	figure, err := t.wantedFigure()
	if err != nil {
		return source, false, err
	}
	if figure != t.figure {
		if err := t.register(figure); err != nil {
			return source, false, err
		}
	}
	// The usage is read after the registration, because from then on the kernel gives notice.
	was := t.above
	crossing, err := t.readUsage()
	if err != nil || t.above == was {
		return source, false, err
	}
	crossing.Read = true
	source.Crossing = crossing
	return source, true, nil
}

// wantedFigure returns the figure for the current page cache.
func (t *activeThreshold) wantedFigure() (int64, error) {
	figure := t.want.Bytes
	if t.want.WorkingSet > 0 {
		cache, err := t.readInactiveFile()
		if err != nil {
			return 0, err
		}
		figure = t.want.WorkingSet + cache
		if d, s := figure-t.figure, followStep(figure); t.figure > 0 && -s < d && d < s {
			return t.figure, nil
		}
	}
	// The kernel rounds down to whole pages.
	return max(figure-figure%int64(os.Getpagesize()), int64(os.Getpagesize())), nil
}

// readInactiveFile reads the page cache that the kernel can drop.
func (t *activeThreshold) readInactiveFile() (int64, error) {
	if t.stat == nil {
		f, err := openFile(filepath.Join(t.want.Path, "memory.stat"), unix.O_RDONLY)
		if err != nil {
			return 0, err
		}
		t.stat = f
	}
	b, err := t.stat.read()
	if err != nil {
		return 0, err
	}
	return parseInactiveFile(b)
}

// register asks the kernel for a notice at a figure. The old figure stays registered until the new
// one is.
func (t *activeThreshold) register(figure int64) error {
	control, err := openFile(filepath.Join(t.want.Path, "cgroup.event_control"), unix.O_WRONLY)
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			return fmt.Errorf("%w: only root may ask a memory cgroup for notice", err)
		}
		return err
	}
	defer control.close()
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("create eventfd: %w", err)
	}
	err = control.write(fmt.Appendf(nil, "%d %d %d", event, t.usage.fd, figure))
	switch {
	case errors.Is(err, unix.EINVAL):
		err = unsupported(t.want.Attribute + " gives no notice in this kernel")
	case errors.Is(err, unix.EOPNOTSUPP):
		err = unsupported("a real-time kernel gives no notice of usage")
	}
	var token int32
	if err == nil {
		token, err = t.kernel.add(event, unix.EPOLLIN, t)
	}
	if err != nil {
		_ = unix.Close(event)
		return err
	}
	t.closeEvent()
	t.event, t.token, t.figure = event, token, figure
	return nil
}

// readUsage reads the usage.
func (t *activeThreshold) readUsage() (*Crossing, error) {
	usage, err := t.usage.readBytes()
	if err != nil {
		return nil, err
	}
	c := &Crossing{Usage: usage, Figure: t.figure}
	t.above = c.Above()
	return c, nil
}

func (t *activeThreshold) readNotice() (NoticeSource, bool, error) {
	source := NoticeSource{Watch: t.want}
	if !drainEventfd(t.event) {
		return source, false, nil // no event
	}
	// The kernel also gives notice when the cgroup is removed. In that case the read fails.
	was := t.above
	crossing, err := t.readUsage()
	if err != nil {
		return source, false, err
	}
	t.rechecks = 0
	if t.above == was {
		t.rechecks = maxRechecks
	}
	source.Crossing = crossing
	return source, true, nil
}

func (t *activeThreshold) closeEvent() {
	if t.event >= 0 {
		_ = unix.Close(t.event)
		t.kernel.removeToken(t.token)
		t.event = -1
	}
}

func (t *activeThreshold) close() {
	t.closeEvent()
	t.usage.close()
	t.stat.close()
}
