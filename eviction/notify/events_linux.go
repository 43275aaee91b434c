package notify

import (
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// events is an Events in force.
type events struct {
	kernel   *kernel
	token    int32
	want     Events
	file     *file
	counters []counter
}

func openEvents(k *kernel, want Events) (*events, error) {
	f, err := openFile(want.Path, unix.O_RDONLY)
	if lacks(want.Path, err) {
		dir := filepath.Dir(want.Path)
		if !unified(dir) {
			return nil, unsupported(dir + " is no cgroup of version 2")
		}
		return nil, unsupported(dir + " has no " + filepath.Base(want.Path) + ": it is the root, or its controller is not switched on there (cgroup.subtree_control of its parent), or is of version 1")
	}
	if err != nil {
		return nil, err
	}
	e := &events{kernel: k, want: want, file: f}
	// Reading also tells the kernel which changes we know of.
	if _, err = e.look(); err == nil {
		e.token, err = k.add(f.fd, unix.EPOLLPRI, e)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// look reads the counters and says which changed.
func (e *events) look() ([]Change, error) {
	b, err := e.file.read()
	if err != nil {
		return nil, err
	}
	is, err := parseCounters(b)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", e.want.Path, err)
	}
	changed := changes(e.counters, is)
	e.counters = is
	return changed, nil
}

// move has nothing to move; it looks whether the cgroup is still there. The kernel takes
// that for having heard of the changes, so they are told.
func (e *events) move(Watch) error {
	changed, err := e.look()
	if len(changed) > 0 {
		e.kernel.put(time.Now(), Source{Watch: e.want, Changes: changed})
	}
	return err
}

func (e *events) woken() (Source, bool, error) {
	changed, err := e.look()
	return Source{Watch: e.want, Changes: changed}, len(changed) > 0, err
}

func (e *events) close() {
	e.file.close()
	e.kernel.forget(e.token)
}
