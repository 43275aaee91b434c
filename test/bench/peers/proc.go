//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// userHZ is the unit of times in /proc: 100 per second on every architecture
// that Go supports.
const userHZ = 100

// cpuTime returns the user and system time of all threads of a process, also of
// those that have ended, in steps of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return parseCPUTime(b)
}

func parseCPUTime(stat []byte) (time.Duration, error) {
	// The name in parentheses may itself contain spaces and parentheses.
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, fmt.Errorf("read CPU time: no name in %q", stat)
	}
	fields := strings.Fields(string(stat[end+1:])) // from field 3, the state
	if len(fields) < 13 {
		return 0, fmt.Errorf("read CPU time: too few fields in %q", stat)
	}
	var ticks uint64
	for _, f := range fields[11:13] { // fields 14 and 15: utime, stime
		n, err := strconv.ParseUint(f, 10, 53)
		if err != nil {
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / userHZ), nil
}

// resident is the resident memory of a process, in bytes.
type resident struct {
	now  int64 // VmRSS
	most int64 // VmHWM, the maximum since its start
}

func memory(pid int) (resident, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return resident{}, fmt.Errorf("read memory: %w", err)
	}
	return parseMemory(b)
}

func parseMemory(status []byte) (resident, error) {
	var r resident
	for _, f := range []struct {
		name string
		to   *int64
	}{{"VmRSS:", &r.now}, {"VmHWM:", &r.most}} {
		_, rest, found := bytes.Cut(status, []byte("\n"+f.name))
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		words := strings.Fields(string(line))
		if !found || len(words) != 2 || words[1] != "kB" {
			return resident{}, fmt.Errorf("read memory: no %s in kB", f.name)
		}
		n, err := strconv.ParseInt(words[0], 10, 53)
		if err != nil {
			return resident{}, fmt.Errorf("read memory: %s %w", f.name, err)
		}
		*f.to = n << 10
	}
	return r, nil
}
