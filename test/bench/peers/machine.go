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

// Machine says where and of what was measured.
type Machine struct {
	Time     time.Time         `json:"time"`
	CPU      string            `json:"cpu"`
	Cores    int               `json:"cores"`
	MemoryMB int64             `json:"memoryMiB"`
	Kernel   string            `json:"kernel"`
	Go       string            `json:"go"`
	Load     float64           `json:"load"` // average of the minute before
	Programs map[string]string `json:"programs"`
}

// describeMachine reads what /proc tells; what it does not is left out.
func describeMachine() Machine {
	read := func(path string) string {
		b, _ := os.ReadFile(path) // left out
		return strings.TrimSpace(string(b))
	}
	m := Machine{
		Time: time.Now().UTC().Truncate(time.Second), Cores: runtime.NumCPU(), Go: runtime.Version(),
		CPU: cmp.Or(field(read("/proc/cpuinfo"), "model name"), runtime.GOARCH), Kernel: read("/proc/sys/kernel/osrelease"),
	}
	total, _, _ := strings.Cut(field(read("/proc/meminfo"), "MemTotal"), " ")
	kib, _ := strconv.ParseInt(total, 10, 64) // 0: not known
	m.MemoryMB = kib >> 10
	load, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	m.Load, _ = strconv.ParseFloat(load, 64) // 0: not known
	return m
}

// field returns what follows the first "name :" of a file of such lines.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// programVersions returns each program's version and what compiled it.
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
	for _, m := range append(info.Deps, &info.Main) { // a module of ours pins it
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
