//go:build linux

package vitals

import (
	"errors"
	"fmt"
	"math"
	"path"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/sources/host/kernel"
)

// node is what the node's figures are read from.
type node struct {
	root                                                  *cgroup // nil until it could be opened
	meminfo, cpu, io, memory, pidMax, threadsMax, loadavg handle
}

func newNode(proc string) node {
	in := func(name string) handle { return handle{name: path.Join(proc, name)} }
	return node{
		meminfo: in("meminfo"), cpu: in("pressure/cpu"), io: in("pressure/io"), memory: in("pressure/memory"),
		pidMax: in("sys/kernel/pid_max"), threadsMax: in("sys/kernel/threads-max"), loadavg: in("loadavg"),
	}
}

func (n *node) close() {
	if n.root != nil {
		n.root.close()
		n.root = nil
	}
	for _, h := range [...]*handle{&n.meminfo, &n.cpu, &n.io, &n.memory, &n.pidMax, &n.threadsMax, &n.loadavg} {
		h.close()
	}
}

func (r *round) readNode(n *stats.NodeStats) {
	r.nodeMemory(n)
	r.nodeStalls(n)
	n.Rlimit = r.rlimit()
	r.nodeDisks(n)
}

// proc reads a file that is in no cgroup.
func (r *round) proc(h *handle) ([]byte, error) { return r.read(h, unix.AT_FDCWD) }

// nodeMemory reads the root cgroup, and MemTotal. Where the root cgroup tells nothing, as without the
// memory controller, meminfo stands for it.
func (r *round) nodeMemory(n *stats.NodeStats) {
	from := &r.mu.node
	m := &memory{}
	var err error
	if from.root == nil {
		from.root, err = r.openCgroup(unix.AT_FDCWD, r.mount, "/")
	}
	if err == nil {
		m, err = r.readRoot(from.root)
	}
	data, infoErr := r.proc(&from.meminfo)
	var info meminfo
	if infoErr == nil {
		info, infoErr = parseMeminfo(data)
	}
	if err != nil && gone(err) && info.complete {
		*m, err = memory{usage: info.anonymous + info.cache}, nil
		m.Time, m.UsageBytes = metav1.Now(), &m.usage
		m.fill(&memoryStat{inactive: info.inactive, anonymous: info.anonymous})
	}
	r.problem("read node memory", errors.Join(err, infoErr))
	if n.Memory = m.orNil(); m.WorkingSetBytes == nil || infoErr != nil {
		return
	}
	if m.workingSet > info.total {
		r.problem("read node memory", fmt.Errorf("a working set of %d bytes is more than the %d there are", m.workingSet, info.total))
		return
	}
	m.available = info.total - m.workingSet
	m.AvailableBytes = &m.available
}

// nodeStalls reads the kernel's stall information, of which some kernels keep none.
func (r *round) nodeStalls(n *stats.NodeStats) {
	from := &r.mu.node
	if psi, at := r.stalls(&from.cpu); psi != nil {
		n.CPU = &stats.CPUStats{Time: at, PSI: psi}
	}
	if psi, at := r.stalls(&from.io); psi != nil {
		n.IO = &stats.IOStats{Time: at, PSI: psi}
	}
	if psi, at := r.stalls(&from.memory); psi != nil {
		if n.Memory == nil {
			n.Memory = &stats.MemoryStats{Time: at}
		}
		n.Memory.PSI = psi
	}
}

func (r *round) stalls(h *handle) (*stats.PSIStats, metav1.Time) {
	data, err := r.proc(h)
	at := metav1.Now()
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, at
	}
	var p kernel.Pressure
	if err == nil {
		if p, err = kernel.ParsePressure(data); err != nil {
			err = fmt.Errorf("%s: %w", h.name, err)
		}
	}
	if err != nil {
		r.problem("read stalls", err)
		return nil, at
	}
	return &stats.PSIStats{Some: asPSI(p.Some), Full: asPSI(p.Full)}, at
}

func asPSI(s kernel.Stall) stats.PSIData {
	return stats.PSIData{Avg10: s.Avg10, Avg60: s.Avg60, Avg300: s.Avg300, Total: s.Total}
}

// rlimit reads how many tasks there may be, and are: threads, each of which takes a process number.
func (r *round) rlimit() *stats.RlimitStats {
	from := &r.mu.node
	l := &stats.RlimitStats{}
	for _, h := range [...]*handle{&from.pidMax, &from.threadsMax} {
		limit, err := r.number(h, unix.AT_FDCWD)
		if err == nil && limit > math.MaxInt32 {
			err = fmt.Errorf("%s: %d is no number of tasks", h.name, limit)
		}
		if err != nil {
			r.problem("read limit of tasks", err)
			continue
		}
		if v := int64(limit); l.MaxPID == nil || v < *l.MaxPID {
			l.MaxPID = &v
		}
	}
	data, err := r.proc(&from.loadavg)
	l.Time = metav1.Now()
	if err == nil {
		var n int64
		if n, err = kernel.ParseThreads(data); err == nil {
			l.NumOfRunningProcesses = &n
		}
	}
	r.problem("count tasks", err)
	return l
}
