package inspect

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/procfs"

	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// Process is a process, as /proc/PID/stat describes it.
type Process struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	State   string    `json:"state"` // one letter, as in ps: R, S, D, T, Z
	Started time.Time `json:"started"`
}

// ticksPerSecond is the kernel's USER_HZ, on every architecture that Kubernetes runs on.
const ticksPerSecond = 100

// processTable reads processes. It reads each at most once, because a process is in many cgroups.
type processTable struct {
	proc procfs.FS
	boot time.Time        // zero if it could not be read
	seen map[int]*Process // nil for a process that has ended
}

// newProcessTable reads the boot time. It always returns a table. If there is an error, find
// returns no process.
func newProcessTable(dir string) (*processTable, error) {
	p := &processTable{seen: map[int]*Process{}}
	proc, err := procfs.NewFS(dir)
	if err != nil {
		return p, fmt.Errorf("read processes: %w", err)
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return p, fmt.Errorf("read the boot time, from which the ages of processes follow: %w", err)
	}
	seconds, ok := cgroupfs.Number(stat, "btime")
	if !ok {
		return p, fmt.Errorf("read the boot time, from which the ages of processes follow: no btime in %s/stat", dir)
	}
	p.proc, p.boot = proc, time.Unix(int64(seconds), 0)
	return p, nil
}

// find returns a process, or nil if it has ended.
func (p *processTable) find(pid int) *Process {
	if p.boot.IsZero() {
		return nil
	}
	if _, known := p.seen[pid]; !known {
		p.seen[pid] = p.read(pid)
	}
	return p.seen[pid]
}

func (p *processTable) read(pid int) *Process {
	proc, err := p.proc.Proc(pid)
	if err != nil {
		return nil
	}
	stat, err := proc.Stat()
	if err != nil {
		return nil
	}
	started := p.boot.Add(time.Duration(stat.Starttime) * (time.Second / ticksPerSecond))
	return &Process{PID: pid, Command: stat.Comm, State: stat.State, Started: started}
}
