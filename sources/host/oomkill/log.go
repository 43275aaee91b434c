//go:build linux

package oomkill

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// The bounds of the log. A kill takes about 130 records, and one more for each process that the kernel could choose: those
// of the cgroup whose limit was reached or, if the node has no memory left, all of the node. The kernel logs at most ten kills in five seconds in full. A record takes 2 µs to read (BenchmarkLog), so
// that a flood costs 1% of a processor; the kernel then overwrites records before they are read.
const (
	recordsPerRead = 1000
	maxRecords     = 8000 // in one read after others with few
	maxVictims     = 256
)

// Log reads the kernel's log. Its methods must not be called concurrently.
type Log struct {
	file   *os.File
	conn   syscall.RawConn
	buffer []byte
	left   int // how many records may be read
}

// OpenLog opens /dev/kmsg, or a file like it, at its end. With kernel.dmesg_restrict=1 that needs
// CAP_SYSLOG, and in a container the device must be allowed.
func OpenLog(name string) (*Log, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open the kernel's log: %w: reading it needs CAP_SYSLOG and, in a container, the device: see docs/death.md", err)
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(fmt.Errorf("go to the end of the kernel's log: %w", err), file.Close())
	}
	return NewLog(file)
}

// NewLog returns a Log that reads a file from where it is, and closes it. The file must not block, and each
// read of it must return one record.
func NewLog(file *os.File) (*Log, error) {
	conn, err := file.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the kernel's log: %w", err), file.Close())
	}
	return &Log{file: file, conn: conn, buffer: make([]byte, 8<<10)}, nil
}

// Read calls take with records that are new: recordsPerRead of them, and those that earlier calls left.
func (l *Log) Read(take func(record []byte)) (err error) {
	l.left = min(l.left+recordsPerRead, maxRecords)
	failed := l.conn.Read(func(fd uintptr) bool {
		for ; l.left > 0; l.left-- {
			var n int
			n, err = unix.Read(int(fd), l.buffer)
			switch {
			case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EINTR):
				continue // overwritten before it was read, or longer than the buffer: the next read returns the next one
			case err != nil || n == 0:
				return true
			}
			take(l.buffer[:n])
		}
		err = nil
		return true
	})
	if err = errors.Join(failed, err); err != nil && !errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("read the kernel's log: %w", err)
	}
	return nil
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

// victim is a process of a pod that the kernel logged, until a kill that the counters show takes it, or others displace it.
type victim struct {
	podcgroup.Ref
	Record
	at time.Time // when it was read
}

// readLog reads what is new in the log.
func (w *Watcher) readLog(now time.Time) error {
	if w.opts.Log == nil {
		return nil
	}
	return w.opts.Log.Read(func(record []byte) {
		if r, ok := ParseRecord(record); ok {
			w.addRecord(&r, now)
		}
	})
}

func (w *Watcher) addRecord(r *Record, now time.Time) {
	if r.Cgroup == "" {
		for i := range w.victims {
			if v := &w.victims[i]; v.PID == r.PID && v.RSS == 0 {
				v.RSS = r.RSS
			}
		}
		return
	}
	ref := podcgroup.Parse(r.Cgroup)
	if ref.UID == "" {
		return
	}
	if len(w.victims) == maxVictims {
		w.victims = slices.Delete(w.victims, 0, 1)
	}
	w.victims = append(w.victims, victim{ref, *r, now})
}

// completeFromLog adds to k what the log has about it. If that is several processes of a container, the largest is named.
// The counters show that the node has no memory left only by what they lack, so that the log's limit replaces it.
func (w *Watcher) completeFromLog(k *endlog.Kill) {
	killed := map[metric.ContainerID]uint64{}
	w.victims = slices.DeleteFunc(w.victims, func(v victim) bool {
		if !w.isVictimOf(&v, k) {
			return false
		}
		if k.Process == nil || v.RSS > k.Process.RSS {
			k.Process = &v.Process
		}
		if !k.Logged && (k.Limit == "" || k.Limit == endlog.InNode || k.Doubt != "") {
			v.setLimitOf(k)
		}
		k.Inner = k.Inner || k.Limit == endlog.InContainer && v.isInner()
		killed[v.ID]++
		return true
	})
	for id, n := range killed {
		switch {
		case len(killed) > 1:
			k.Process = nil // it is not that of all containers
		case n == k.New:
			k.ContainerID = id
		}
	}
}

// isVictimOf reports whether k killed v: k is of v's container. If k's container is not known, k is of v's pod, and no
// kill in v's container is undecided.
func (w *Watcher) isVictimOf(v *victim, k *endlog.Kill) bool {
	if v.UID != k.UID || v.at.Before(k.After) {
		return false
	}
	return v.ID == k.ContainerID || k.ContainerID == "" && !w.isUndecided(v)
}

// addEnded finds the kills that only the log has: version 1 does not count those of a container that ended.
func (w *Watcher) addEnded(now time.Time) {
	if w.opts.Unified {
		return
	}
	for _, v := range slices.Clone(w.victims) {
		if now.Sub(v.at) <= minScan || w.isUndecided(&v) {
			continue // its container may go on, and then a scan finds the kill
		}
		k := endlog.Kill{UID: v.UID, ContainerID: v.ID, Scope: endlog.InContainer, After: v.at.Add(-Interval), At: v.at}
		left := len(w.victims)
		w.completeFromLog(&k)
		if n := uint64(left - len(w.victims)); n > 0 { // an earlier one did not take it
			k.Processes, k.New = n, n
			w.found = append(w.found, k)
		}
	}
}

// isUndecided reports whether it is not known yet if the victim's container goes on.
func (w *Watcher) isUndecided(v *victim) bool {
	for _, p := range w.pods {
		if p.UID != v.UID {
			continue
		}
		for name, c := range p.containers {
			if c.undecided != nil && podcgroup.Parse(name).ID == v.ID {
				return true
			}
		}
	}
	return false
}

// setLimitOf sets whose limit was reached for k.
func (v *victim) setLimitOf(k *endlog.Kill) {
	k.Logged, k.Doubt, k.NUMA, k.Inner = true, "", v.NUMA, v.isInner()
	switch kind := podcgroup.Parse(v.Limit).Kind; {
	case v.Limit == "":
		k.SetLimit(endlog.InNode, "")
	case kind == podcgroup.Container, kind == podcgroup.Inside:
		k.SetLimit(endlog.InContainer, "")
	case kind == podcgroup.Pod:
		k.SetLimit(endlog.InPod, "")
	default:
		k.SetLimit(endlog.InSlice, v.Limit)
	}
}

// isInner reports whether the limit is that of a cgroup in a container, and not the container's.
func (v *victim) isInner() bool {
	outer, found := strings.CutSuffix(string(v.Limit), "/"+subgroup)
	return podcgroup.Parse(v.Limit).Kind == podcgroup.Inside && !(found && podcgroup.Parse(metric.CgroupPath(outer)).Kind == podcgroup.Container)
}
