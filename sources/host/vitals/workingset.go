//go:build linux

package vitals

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// WorkingSets reads the memory in use, of the node or of all pods, and nothing else: one or two
// reads of open files, which cost about 20 µs. It does not wait for a Read. Its methods may be called
// concurrently.
type WorkingSets struct {
	version *cgroupfs.Version
	mount   string
	find    func() (mount string, pods metric.CgroupPath)

	mu struct {
		sync.Mutex
		files       fileReader
		closed      bool
		meminfo     openFile
		usage, stat openFile // of the pods' cgroup; without a name until it was found
	}
}

// WorkingSets returns a reader of working sets. The caller must close it.
func (r *Reader) WorkingSets() *WorkingSets {
	w := &WorkingSets{version: r.version, mount: r.memoryDir, find: r.Cgroups}
	w.mu.files.buffer = make([]byte, initialBuffer)
	w.mu.meminfo.name = path.Join(r.options.Proc, "meminfo")
	return w
}

// Node returns the working set of the node in bytes, from /proc/meminfo. It is equal to that of a
// Read except for pages that a processor has not yet added to the node's counters: at most 125 for
// each counter and processor (vm_stat_threshold), for a second. A Read uses memory.stat of the root
// cgroup, for which the kernel adds up the counters of all cgroups. On a large node that takes
// milliseconds.
func (w *WorkingSets) Node() (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	data, err := w.read(&w.mu.meminfo)
	if err != nil {
		return 0, fmt.Errorf("read the node's working set: %w", err)
	}
	m, err := parseMeminfo(data)
	if err == nil && !m.complete {
		err = errors.New("no number for AnonPages, Cached, Buffers or Inactive(file)")
	}
	if err != nil {
		return 0, fmt.Errorf("read the node's working set: %s: %w", w.mu.meminfo.name, err)
	}
	usage := m.Anonymous + m.Cache
	return int64(usage - min(m.InactiveFile, usage)), nil
}

// Unavailable returns MemTotal - MemAvailable of /proc/meminfo, in bytes.
func (w *WorkingSets) Unavailable() (int64, error) { return w.meminfoUse("MemTotal", "MemAvailable") }

// Swap returns the swap in use, SwapTotal - SwapFree of /proc/meminfo, in bytes.
func (w *WorkingSets) Swap() (int64, error) { return w.meminfoUse("SwapTotal", "SwapFree") }

// meminfoUse returns one number of /proc/meminfo minus another.
func (w *WorkingSets) meminfoUse(total, left string) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	data, err := w.read(&w.mu.meminfo)
	if err != nil {
		return 0, fmt.Errorf("read the use of %s: %w", total, err)
	}
	var all, free uint64
	if missing := readMeminfo(data, meminfoField{total, &all}, meminfoField{left, &free}); len(missing) > 0 {
		return 0, fmt.Errorf("read the use of %s: %s: no number for %s", total, w.mu.meminfo.name, strings.Join(missing, " and "))
	}
	return int64(all - free), nil
}

// Pods returns the working set of all pods in bytes, from the kubepods cgroup. It is equal to that
// of a Read.
func (w *WorkingSets) Pods() (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	usage, inactive, err := w.readPods()
	if w.mu.usage.name != "" && cgroupfs.IsRemoved(err) { // it may have been created again, also elsewhere
		w.closePods()
		usage, inactive, err = w.readPods()
	}
	if err != nil {
		w.closePods()
		return 0, fmt.Errorf("read the pods' working set: %w", err)
	}
	return int64(usage - min(inactive, usage)), nil
}

func (w *WorkingSets) readPods() (usage, inactive uint64, err error) {
	if w.mu.usage.name == "" {
		_, pods := w.find()
		if pods == "" {
			return 0, 0, errors.New("there is no kubepods cgroup, or several could be it (see weir inspect cgroups)")
		}
		dir := path.Join(w.mount, string(pods))
		w.mu.usage.name, w.mu.stat.name = path.Join(dir, w.version.MemoryUsage), path.Join(dir, "memory.stat")
	}
	data, err := w.read(&w.mu.usage)
	if err != nil {
		return 0, 0, err
	}
	if usage, err = cgroupfs.ParseUint(data); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", w.mu.usage.name, err)
	}
	if data, err = w.read(&w.mu.stat); err != nil {
		return 0, 0, err
	}
	s, err := w.version.ParseMemoryStat(data)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", w.mu.stat.name, err)
	}
	return usage, s.InactiveFile, nil
}

func (w *WorkingSets) read(h *openFile) ([]byte, error) {
	if w.mu.closed {
		return nil, os.ErrClosed
	}
	return w.mu.files.read(h, unix.AT_FDCWD)
}

func (w *WorkingSets) closePods() {
	w.mu.usage.close()
	w.mu.stat.close()
	w.mu.usage.name, w.mu.stat.name = "", ""
}

// Close closes all files. Later reads return an error.
func (w *WorkingSets) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.closed = true
	w.mu.meminfo.close()
	w.closePods()
	return nil
}
