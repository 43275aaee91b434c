package notify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// slack is how far the page cache moves before a figure follows. The kernel compares every
// 128 pages only (THRESHOLDS_EVENTS_TARGET in mm/memcontrol-v1.c), so less makes no sense. And
// to register takes milliseconds, in which no other watch is heard: the kernel waits for all
// processors to be done with the old list (synchronize_rcu). So on a large node, whose cache
// never rests, only a thousandth of the figure is worth it.
func slack(figure int64) int64 { return max(int64(128*os.Getpagesize()), figure/1024) }

// doubts is how often a doubtful threshold is looked at: for 100 ms. After that, and for
// whatever else the kernel forgot to tell, it is looked at as often as figures follow.
const doubts = 20

// threshold is a Threshold in force.
type threshold struct {
	kernel *kernel
	want   Threshold
	usage  *file
	stat   *file // nil if the figure does not follow
	event  int   // the eventfd, -1 before there is one
	token  int32 // of event
	figure int64 // what the kernel was asked for
	above  bool  // where the usage was when we last looked or told
	// doubt is how many times to look again soon. Pages that a processor keeps in stock
	// for the cgroup count as used, and when it gives them back the usage falls. So when
	// the kernel says that the figure was crossed, we may find the usage on its old side
	// still; and it will not say so again when the figure is crossed for good.
	doubt int
}

func openThreshold(k *kernel, want Threshold) (*threshold, error) {
	if unified(want.Path) {
		return nil, unsupported("a cgroup of version 2 gives no notice of its usage")
	}
	usage, err := openFile(filepath.Join(want.Path, want.Attribute), unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	t := &threshold{kernel: k, usage: usage, event: -1}
	if err := t.move(want); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// move registers the figure wanted now, if it is another than the last.
func (t *threshold) move(w Watch) error {
	t.want = w.(Threshold)
	source, tell, err := t.set()
	if tell {
		t.kernel.put(time.Now(), source)
	}
	return err
}

// set registers the figure and looks whether it is crossed already.
func (t *threshold) set() (Source, bool, error) {
	source := Source{Watch: t.want}
	figure, err := t.wanted()
	if err != nil {
		return source, false, err
	}
	if figure != t.figure {
		if err := t.register(figure); err != nil {
			return source, false, err
		}
	}
	// Only now: what is crossed from here on the kernel tells.
	was := t.above
	crossing, err := t.look()
	if err != nil || t.above == was {
		return source, false, err
	}
	crossing.Read = true
	source.Crossing = crossing
	return source, true, nil
}

// wanted is the figure as things are now.
func (t *threshold) wanted() (int64, error) {
	figure := t.want.Bytes
	if t.want.WorkingSet > 0 {
		cache, err := t.cache()
		if err != nil {
			return 0, err
		}
		figure = t.want.WorkingSet + cache
		if d, s := figure-t.figure, slack(figure); t.figure > 0 && -s < d && d < s {
			return t.figure, nil
		}
	}
	// The kernel drops what is less than a page.
	return max(figure-figure%int64(os.Getpagesize()), int64(os.Getpagesize())), nil
}

// cache reads the page cache that the kernel could drop.
func (t *threshold) cache() (int64, error) {
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
	return inactiveFile(b)
}

// register asks the kernel for notice of a figure. The old figure holds until the new one
// does.
func (t *threshold) register(figure int64) error {
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

// look reads the usage.
func (t *threshold) look() (*Crossing, error) {
	usage, err := t.usage.readBytes()
	if err != nil {
		return nil, err
	}
	c := &Crossing{Usage: usage, Figure: t.figure}
	t.above = c.Above()
	return c, nil
}

func (t *threshold) woken() (Source, bool, error) {
	source := Source{Watch: t.want}
	if !drain(t.event) {
		return source, false, nil // woken for nothing
	}
	// The kernel also gives notice when the cgroup is removed: then this fails.
	was := t.above
	crossing, err := t.look()
	if err != nil {
		return source, false, err
	}
	t.doubt = 0
	if t.above == was {
		t.doubt = doubts
	}
	source.Crossing = crossing
	return source, true, nil
}

func (t *threshold) closeEvent() {
	if t.event >= 0 {
		_ = unix.Close(t.event)
		t.kernel.forget(t.token)
		t.event = -1
	}
}

func (t *threshold) close() {
	t.closeEvent()
	t.usage.close()
	t.stat.close()
}
