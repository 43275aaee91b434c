//go:build linux

package process

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// Usage is what a process has used.
type Usage struct {
	// CPU is the user and system time of all threads, also of those that have
	// ended, in steps of 10 ms.
	CPU      time.Duration
	Resident int64 // memory in bytes
	Peak     int64 // the maximum of Resident since the start
	Files    int   // open files
}

// Usage returns what p has used.
func (p *Process) Usage() (Usage, error) { return usage(p.PID) }

func usage(pid int) (Usage, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("read the usage of process %d: %w", pid, err)
	}
	stat, statErr := proc.Stat()
	status, statusErr := proc.NewStatus()
	files, filesErr := proc.FileDescriptorsLen()
	if err := errors.Join(statErr, statusErr, filesErr); err != nil {
		return Usage{}, fmt.Errorf("read the usage of process %d: %w", pid, err)
	}
	cpu := time.Duration(stat.CPUTime() * float64(time.Second)).Round(time.Millisecond)
	return Usage{cpu, int64(status.VmRSS), int64(status.VmHWM), files}, nil
}
