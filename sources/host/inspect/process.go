package inspect

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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

// parseStat parses a process's stat file. The command is in parentheses and may contain
// parentheses itself: the last one ends it.
func parseStat(stat []byte, boot time.Time) (Process, error) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 1 || end < open {
		return Process{}, fmt.Errorf("parse stat: no command in %q", stat)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(stat[:open])))
	if err != nil {
		return Process{}, fmt.Errorf("parse stat: %w", err)
	}
	const start = 19 // the 22nd field, less three: PID, command, and counting from 0
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) <= start {
		return Process{}, fmt.Errorf("parse stat: only %d fields in %q", len(fields)+2, stat)
	}
	n, err := strconv.ParseUint(fields[start], 10, 63)
	if err != nil {
		return Process{}, fmt.Errorf("parse stat: start: %w", err)
	}
	since := time.Duration(n/ticksPerSecond)*time.Second + time.Duration(n%ticksPerSecond)*time.Second/ticksPerSecond
	return Process{PID: pid, Command: string(stat[open+1 : end]), State: fields[0], Started: boot.Add(since)}, nil
}

// parseBoot returns the boot time in /proc/stat.
func parseBoot(stat []byte) (time.Time, error) {
	for name, seconds := range cgroupfs.Pairs(stat) {
		if string(name) == "btime" {
			return time.Unix(int64(seconds), 0), nil
		}
	}
	return time.Time{}, fmt.Errorf("parse boot time: no btime in %d bytes", len(stat))
}

// processTable reads processes, each at most once: one process is in many cgroups.
type processTable struct {
	proc string
	boot time.Time
	seen map[int]*Process // nil for one that has ended
}

// newProcessTable reads the boot time. It always returns a table; after an error, find
// finds no process in it.
func newProcessTable(proc string) (*processTable, error) {
	p := &processTable{proc: proc, seen: map[int]*Process{}}
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err == nil {
		p.boot, err = parseBoot(stat)
	}
	if err != nil {
		return p, fmt.Errorf("read the boot time, from which the ages of processes follow: %w", err)
	}
	return p, nil
}

// find returns a process, or nil if it has ended.
func (p *processTable) find(pid int) *Process {
	if p.boot.IsZero() {
		return nil
	}
	if known, ok := p.seen[pid]; ok {
		return known
	}
	var found *Process
	if stat, err := os.ReadFile(filepath.Join(p.proc, strconv.Itoa(pid), "stat")); err == nil {
		if one, err := parseStat(stat, p.boot); err == nil {
			found = &one
		}
	}
	p.seen[pid] = found
	return found
}
