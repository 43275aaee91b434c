//go:build linux

package vitals

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/disk"
	"github.com/weir-metrics/weir/test/transcript"
)

// versions are the versions of cgroups that a fixture can have.
var versions = [...]*cgroupfs.Version{cgroupfs.V1, cgroupfs.V2}

// fixture is a machine of plain files, with one version of cgroups.
type fixture struct {
	t      *testing.T
	v      int // the index in versions
	root   string
	known  map[metric.PodUID]PodNames
	disks  disks
	reader *Reader
}

// disks is the disk usage of pods.
type disks map[metric.PodUID]*disk.PodUsage

func (d disks) Pod(uid metric.PodUID) (*disk.PodUsage, bool) {
	p, ok := d[uid]
	return p, ok
}

// newFixture creates a machine with 100 MiB of memory and no pods.
func newFixture(t *testing.T, v int) *fixture {
	f := &fixture{t: t, v: v, root: t.TempDir(), known: map[metric.PodUID]PodNames{}, disks: disks{}}
	f.write("proc/meminfo", "MemTotal: 102400 kB\nMemFree: 1 kB\nBuffers: 1024 kB\nCached: 20480 kB\nInactive(file): 4096 kB\nAnonPages: 10240 kB\n")
	f.write("proc/loadavg", "0.20 0.18 0.12 1/80 11206\n")
	f.write("proc/sys/kernel/pid_max", "32768\n")
	f.write("proc/sys/kernel/threads-max", "1000\n")
	for i, of := range []string{"cpu", "memory", "io"} {
		f.write("proc/pressure/"+of, fmt.Sprintf("some avg10=%d.50 avg60=0.00 avg300=0.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.25 total=3\n", i+1))
	}
	if v == 1 {
		f.write("cgroup/cgroup.controllers", "cpu memory pids\n")
		f.write("cgroup/memory.stat", memoryStatOf(v, 30<<20, 20<<20, 10<<20))
		f.write("cgroup/cgroup.procs", "1\n")
		return f
	}
	for _, controller := range []string{"memory", "cpuacct", "pids"} {
		f.write("cgroup/"+controller+"/cgroup.procs", "1\n")
	}
	f.write("cgroup/memory/memory.usage_in_bytes", fmt.Sprintln(50<<20))
	f.write("cgroup/memory/memory.stat", memoryStatOf(v, 30<<20, 20<<20, 10<<20))
	return f
}

func memoryStatOf(v int, anonymous, file, inactive uint64) string {
	if v == 1 {
		return fmt.Sprintf("anon %d\nfile %d\nkernel 4096\ninactive_file %d\nactive_file 0\npgfault 10\n", anonymous, file, inactive)
	}
	return fmt.Sprintf("cache 1\nrss 1\ninactive_file 1\nhierarchical_memory_limit 9223372036854771712\ntotal_cache %d\ntotal_rss %d\ntotal_pgpgin 0\ntotal_inactive_file %d\n",
		file, anonymous, inactive)
}

func (f *fixture) write(name, text string) {
	f.t.Helper()
	name = filepath.Join(f.root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// path returns the path of a cgroup's file. On version 1 it is in the hierarchy of its controller.
func (f *fixture) path(controller, cgroup, file string) string {
	if f.v == 1 {
		controller = ""
	}
	return filepath.Join("cgroup", controller, expand(cgroup), file)
}

// cgroup creates a cgroup from a line:
//
//	PATH [usage=10Mi] [anon=4Mi] [inactive=1Mi] [limit=20Mi] [procs=1,2] [cpu=5s] [tasks=3]
//
// Without anon it has no memory.stat; without limit it has no limit. A file name as a word sets the
// content of the file.
func (f *fixture) cgroup(line string) {
	f.t.Helper()
	words := strings.Fields(line)
	name, stat := words[0], map[string]uint64{}
	version := versions[f.v]
	none := "9223372036854771712\n"
	if f.v == 1 {
		none = "max\n"
	}
	f.write(f.path("memory", name, "cgroup.procs"), "")
	f.write(f.path("memory", name, version.MemoryLimit), none)
	for _, word := range words[1:] {
		key, text, _ := strings.Cut(word, "=")
		switch key {
		case "usage":
			f.write(f.path("memory", name, version.MemoryUsage), fmt.Sprintln(f.bytes(text)))
		case "limit":
			f.write(f.path("memory", name, version.MemoryLimit), fmt.Sprintln(f.bytes(text)))
		case "anon", "inactive":
			stat[key] = f.bytes(text)
		case "procs":
			f.write(f.path("memory", name, "cgroup.procs"), strings.ReplaceAll(text, ",", "\n")+"\n")
		case "tasks":
			f.write(f.path("pids", name, "pids.current"), text+"\n")
		default:
			f.write(f.path("memory", name, key), strings.ReplaceAll(text, ";", "\n")+"\n")
		}
	}
	if _, ok := stat["anon"]; ok {
		f.write(f.path("memory", name, "memory.stat"), memoryStatOf(f.v, stat["anon"], stat["inactive"], stat["inactive"]))
	}
}

func (f *fixture) bytes(text string) uint64 {
	f.t.Helper()
	n, err := transcript.Bytes(text)
	if err != nil {
		f.t.Fatal(err)
	}
	return uint64(n)
}

// pod adds a pod from a line: {A} shop/web [uid={B}] [1=app].
func (f *fixture) pod(line string) {
	words := strings.Fields(expand(line))
	namespace, name, _ := strings.Cut(words[1], "/")
	p := PodNames{Namespace: namespace, Name: name, Containers: map[string]string{}}
	for _, word := range words[2:] {
		key, text, _ := strings.Cut(word, "=")
		if key == "uid" {
			p.UID = metric.PodUID(text)
		} else {
			p.Containers[id(key)] = text
		}
	}
	f.known[metric.PodUID(words[0])] = p
}

// disk adds the disk usage of a pod from a line: {A} volume=5Mi ephemeral=7Mi app=1Mi.
func (f *fixture) disk(line string) {
	words := strings.Fields(expand(line))
	p := &disk.PodUsage{Containers: map[string]disk.ContainerUsage{}}
	for _, word := range words[1:] {
		key, text, _ := strings.Cut(word, "=")
		used := f.bytes(text)
		fs := &stats.FsStats{UsedBytes: &used}
		switch key {
		case "volume":
			p.Volumes = append(p.Volumes, stats.VolumeStats{Name: "scratch", FsStats: *fs})
		case "ephemeral":
			p.Ephemeral = fs
		default:
			p.Containers[key] = disk.ContainerUsage{Rootfs: fs}
		}
	}
	f.disks[metric.PodUID(words[0])] = p
}

// open returns the Reader. It is the same one for all reads.
func (f *fixture) open() *Reader {
	f.t.Helper()
	if f.reader == nil {
		o := Options{
			Node: "n1", Mount: filepath.Join(f.root, "cgroup"), Proc: filepath.Join(f.root, "proc"), Disks: f.disks,
			Pod: func(uid metric.PodUID) (PodNames, bool) { p, ok := f.known[uid]; return p, ok },
		}
		r, err := New(o)
		if err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(func() { r.Close() })
		f.reader = r
	}
	return f.reader
}

var short = regexp.MustCompile(`\{([A-Z])(_?)\}|<([0-9a-f])>`)

// expand replaces short forms: {A} is the UID of a pod, {A_} the same for systemd, <1> the ID of a
// container.
func expand(s string) string {
	return short.ReplaceAllStringFunc(s, func(m string) string {
		if m[0] == '<' {
			return id(m[1:2])
		}
		uid := strings.Repeat(strings.ToLower(m[1:2]), 8) + "-0000-0000-0000-000000000000"
		if uid[0] > 'f' {
			panic("UIDs are hexadecimal")
		}
		if strings.Contains(m, "_") {
			uid = strings.ReplaceAll(uid, "-", "_")
		}
		return uid
	})
}

var (
	longUID = regexp.MustCompile(`([a-f])[a-f]{7}([-_])0000[-_]0000[-_]0000[-_]000000000000`)
	longID  = regexp.MustCompile(`([0-9a-f])[0-9a-f]{63}`)
)

// shorten is the inverse of expand, and hides the directory and the version of the machine.
func (f *fixture) shorten(s string) string {
	s = longUID.ReplaceAllStringFunc(s, func(m string) string {
		if m[8] == '_' {
			return "{" + strings.ToUpper(m[:1]) + "_}"
		}
		return "{" + strings.ToUpper(m[:1]) + "}"
	})
	s = longID.ReplaceAllString(s, "<$1>")
	s = strings.ReplaceAll(s, f.root+"/cgroup/memory", "CGROUPS")
	s = strings.ReplaceAll(s, f.root+"/cgroup", "CGROUPS")
	s = strings.ReplaceAll(s, f.root, "")
	v := versions[f.v]
	return strings.NewReplacer(v.MemoryUsage, "USAGE", v.MemoryLimit, "LIMIT", v.InactiveFile+",", "INACTIVE,", v.Anonymous+" or", "ANON or", v.Cache+"\n", "FILE\n").Replace(s)
}

// describe writes a summary without absent figures. It includes the node if node is set.
func describe(w io.Writer, s *stats.Summary, node bool) {
	memory := func(m *stats.MemoryStats) (out string) {
		if m == nil {
			return ""
		}
		for _, one := range []struct {
			name string
			n    *uint64
		}{{"usage", m.UsageBytes}, {"working", m.WorkingSetBytes}, {"rss", m.RSSBytes}, {"available", m.AvailableBytes}} {
			if one.n != nil {
				out += fmt.Sprintf(" %s=%s", one.name, mebibytes(*one.n))
			}
		}
		if m.Time.IsZero() {
			out += " without a time"
		}
		return out
	}
	if node {
		describeNode(w, &s.Node, memory(s.Node.Memory))
	}
	for _, c := range s.Node.SystemContainers {
		fmt.Fprintf(w, "%s%s\n", c.Name, memory(c.Memory))
	}
	for _, p := range s.Pods {
		fmt.Fprintf(w, "%s %s%s", strings.Trim(p.PodRef.Namespace+"/"+p.PodRef.Name, "/"), p.PodRef.UID, memory(p.Memory))
		if p.ProcessStats != nil {
			fmt.Fprintf(w, " processes=%s", value(p.ProcessStats.ProcessCount))
		}
		if p.CPU != nil && p.CPU.UsageCoreNanoSeconds != nil {
			fmt.Fprintf(w, " cpu=%ss", strconv.FormatFloat(float64(*p.CPU.UsageCoreNanoSeconds)/1e9, 'f', -1, 64))
		}
		for _, v := range p.VolumeStats {
			fmt.Fprintf(w, " volume %s=%s", v.Name, mebibytes(*v.UsedBytes))
		}
		if p.EphemeralStorage != nil {
			fmt.Fprintf(w, " ephemeral=%s", mebibytes(*p.EphemeralStorage.UsedBytes))
		}
		fmt.Fprintln(w)
		describePressure(w, p.CPU, p.Memory, p.IO)
		for _, c := range p.Containers {
			fmt.Fprintf(w, "  %s%s", c.Name, memory(c.Memory))
			if c.Rootfs != nil {
				fmt.Fprintf(w, " rootfs=%s", mebibytes(*c.Rootfs.UsedBytes))
			}
			fmt.Fprintln(w)
			describePressure(w, c.CPU, c.Memory, c.IO)
		}
	}
}

func describeNode(w io.Writer, n *stats.NodeStats, memory string) {
	fmt.Fprintf(w, "node%s\n", memory)
	describePressure(w, n.CPU, n.Memory, n.IO)
	fmt.Fprintf(w, "  tasks %s of %s\n", value(n.Rlimit.NumOfRunningProcesses), value(n.Rlimit.MaxPID))
}

func describePressure(w io.Writer, cpu *stats.CPUStats, memory *stats.MemoryStats, disk *stats.IOStats) {
	stall := func(name string, p *stats.PSIStats) {
		if p != nil {
			fmt.Fprintf(w, "  %s some %v/%v/%v %d full %v/%v/%v %d\n", name, p.Some.Avg10, p.Some.Avg60, p.Some.Avg300, p.Some.Total,
				p.Full.Avg10, p.Full.Avg60, p.Full.Avg300, p.Full.Total)
		}
	}
	if cpu != nil {
		stall("cpu", cpu.PSI)
	}
	if memory != nil {
		stall("memory", memory.PSI)
	}
	if disk != nil {
		stall("io", disk.PSI)
	}
}

func mebibytes(n uint64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', -1, 64) + "Mi" }
