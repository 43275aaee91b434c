package cgroupfs

import (
	"slices"
	"testing"
)

func TestParseHierarchies(t *testing.T) {
	f := func(mountinfo string, want ...Hierarchy) {
		t.Helper()
		if got := parseHierarchies([]byte(mountinfo)); !slices.Equal(got, want) {
			t.Errorf("parseHierarchies(%q)\n got %v\nwant %v", mountinfo, got, want)
		}
	}
	f("")
	f("not a line\n1 2 - \n")
	f("30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
		Hierarchy{Name: "unified", Dir: "/sys/fs/cgroup", Unified: true})
	f("31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"+
		"32 30 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,release_agent=/lib/agent,name=systemd\n"+
		"33 30 0:29 / /a\\040b\\134040 rw - cgroup2 none rw\n"+
		"34 30 0:30 / /proc rw - proc proc rw\n",
		Hierarchy{Name: "cpu,cpuacct", Dir: "/sys/fs/cgroup/cpu,cpuacct"},
		Hierarchy{Name: "name=systemd", Dir: "/sys/fs/cgroup/systemd"},
		Hierarchy{Name: "unified", Dir: "/a b\\040", Unified: true})
	// These are the mounts in a container: its own part, and the whole tree of the host with a root
	// above that of the container's namespace.
	f("1 2 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n1 2 0:26 /../../.. /host/sys/fs/cgroup ro - cgroup2 cgroup rw\n",
		Hierarchy{Name: "unified", Dir: "/host/sys/fs/cgroup", Unified: true})
	f("1 2 0:26 / /host rw - cgroup2 cgroup rw\n1 2 0:26 /kubepods/podx /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
		Hierarchy{Name: "unified", Dir: "/host", Unified: true})
}

func TestMode(t *testing.T) {
	v1, v2 := Hierarchy{Name: "cpu"}, Hierarchy{Name: "unified", Dir: "/u", Unified: true}
	for want, hierarchies := range map[string]Hierarchies{"v1": {v1, v1}, "v2": {v2}, "hybrid": {v1, v2}} {
		if got := hierarchies.Mode(); got != want {
			t.Errorf("%v.Mode() = %s, want %s", hierarchies, got, want)
		}
	}
}

func TestUnescapePath(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := UnescapePath(in); got != want {
			t.Errorf("UnescapePath(%q) = %q, want %q", in, got, want)
		}
	}
	f(`plain`, "plain")
	f(`a\040b\011c\012d\134e\043`, "a b\tc\nd\\e#")
	f(`\400 \08 \04`, `\400 \08 \04`) // not an escape of the kernel
	f(`\`, `\`)
}

func TestControllerDir(t *testing.T) {
	all := Hierarchies{{Name: "cpu,cpuacct", Dir: "/c"}, {Name: "unified", Dir: "/u", Unified: true}, {Name: "memory", Dir: "/m"}}
	for controller, want := range map[string]string{"cpuacct": "/c", "memory": "/m", "pids": "", "unified": ""} {
		if got := all.ControllerDir(controller); got != want {
			t.Errorf("ControllerDir(%q) = %q, want %q", controller, got, want)
		}
	}
	if got := all.UnifiedDir(); got != "/u" {
		t.Errorf("UnifiedDir() = %q, want /u", got)
	}
}
