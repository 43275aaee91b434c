//go:build linux

package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine describes the machine and the programs of the measurement.
type Machine struct {
	Time     time.Time         `json:"time"`
	CPU      string            `json:"cpu"`
	Cores    int               `json:"cores"`
	MemoryMB int64             `json:"memoryMiB"`
	Kernel   string            `json:"kernel"`
	Go       string            `json:"go"`
	Load     float64           `json:"load"` // load average of the minute before
	Programs map[string]string `json:"programs"`
}

// describeMachine reads the description from /proc. What it cannot read stays
// empty.
func describeMachine() Machine {
	read := func(path string) string {
		b, _ := os.ReadFile(path) // empty after an error
		return strings.TrimSpace(string(b))
	}
	m := Machine{
		Time: time.Now().UTC().Truncate(time.Second), Cores: runtime.NumCPU(), Go: runtime.Version(),
		CPU: cmp.Or(field(read("/proc/cpuinfo"), "model name"), runtime.GOARCH), Kernel: read("/proc/sys/kernel/osrelease"),
	}
	total, _, _ := strings.Cut(field(read("/proc/meminfo"), "MemTotal"), " ")
	kib, _ := strconv.ParseInt(total, 10, 64) // 0 if not known
	m.MemoryMB = kib >> 10
	load, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	m.Load, _ = strconv.ParseFloat(load, 64) // 0 if not known
	return m
}

// field returns the value of the first line "name : value".
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// programVersions returns each program's version and the version of its
// compiler.
func programVersions(programs []program) map[string]string {
	versions := map[string]string{}
	for _, p := range programs {
		versions[p.name] = version(p)
	}
	return versions
}

func version(p program) string {
	info, err := buildinfo.ReadFile(p.path)
	if err != nil {
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) { // a module of this repository pins it
		if m.Path == "sigs.k8s.io/"+p.name {
			return m.Version + ", " + info.GoVersion
		}
	}
	if p.name != weirName {
		return "unknown, " + info.GoVersion
	}
	out, err := exec.Command(p.path, "version").Output()
	if err != nil {
		return info.Main.Version + ", " + info.GoVersion
	}
	first, _, _ := bytes.Cut(out, []byte("\n"))
	return string(bytes.TrimSpace(first)) + ", " + info.GoVersion
}
