package notify

import (
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// activeEvents is an active EventCounters.
type activeEvents struct {
	kernel   *kernel
	token    int32
	want     EventCounters
	file     *kernelFile
	counters map[string]uint64
}

func openEvents(k *kernel, want EventCounters) (*activeEvents, error) {
	f, err := openFile(want.Path, unix.O_RDONLY)
	if fileMissing(want.Path, err) {
		dir := filepath.Dir(want.Path)
		if !isCgroupV2(dir) {
			return nil, unsupported(dir + " is no cgroup of version 2")
		}
		return nil, unsupported(dir + " has no " + filepath.Base(want.Path) + ": it is the root, or its controller is not switched on there (cgroup.subtree_control of its parent), or is of version 1")
	}
	if err != nil {
		return nil, err
	}
	e := &activeEvents{kernel: k, want: want, file: f}
	// For the kernel a read acknowledges all changes so far.
	if _, err = e.readChanges(); err == nil {
		e.token, err = k.add(f.fd, unix.EPOLLPRI, e)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// readChanges reads the counters and returns those that changed.
func (e *activeEvents) readChanges() ([]CounterChange, error) {
	b, err := e.file.read()
	if err != nil {
		return nil, err
	}
	is, err := parseCounters(b)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", e.want.Path, err)
	}
	changed := changedCounters(e.counters, is)
	e.counters = is
	return changed, nil
}

// update checks whether the cgroup still exists. For the kernel the read acknowledges changes, so
// update reports them.
func (e *activeEvents) update(Watch) error {
	changed, err := e.readChanges()
	if len(changed) > 0 {
		e.kernel.report(time.Now(), NoticeSource{Watch: e.want, Changes: changed})
	}
	return err
}

func (e *activeEvents) readNotice() (NoticeSource, bool, error) {
	changed, err := e.readChanges()
	return NoticeSource{Watch: e.want, Changes: changed}, len(changed) > 0, err
}

func (e *activeEvents) close() {
	e.file.close()
	e.kernel.removeToken(e.token)
}
