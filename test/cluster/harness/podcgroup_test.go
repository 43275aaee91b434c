//go:build linux

package harness

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestPodCgroupsHaveTheirClass(t *testing.T) {
	c := &Cluster{state: ClusterRecord{Cgroup: "/weir-cluster-a"}}
	f := func(g PodCgroup, want string) {
		t.Helper()
		if g.String() != want {
			t.Errorf("got %s, want %s", g, want)
		}
		if err := g.group.check(); err != nil {
			t.Error(err)
		}
	}
	f(c.PodCgroup(corev1.PodQOSGuaranteed, "u-1"), "/weir-cluster-a/kubepods/podu-1")
	f(c.PodCgroup(corev1.PodQOSBurstable, "u-1"), "/weir-cluster-a/kubepods/burstable/podu-1")
	f(c.PodCgroup(corev1.PodQOSBestEffort, "u-1"), "/weir-cluster-a/kubepods/besteffort/podu-1")
	f(c.PodCgroup(corev1.PodQOSBurstable, "u-1").Container("containerd://abc"), "/weir-cluster-a/kubepods/burstable/podu-1/abc")
	f(c.PodCgroup(corev1.PodQOSBurstable, "u-1").Container("abc"), "/weir-cluster-a/kubepods/burstable/podu-1/abc")
}

func TestReadUse(t *testing.T) {
	folder := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	cpuacct := folder(map[string]string{"cpuacct.usage": "1500000000\n"})
	memory := folder(map[string]string{"memory.usage_in_bytes": "9000\n", "memory.stat": "inactive_file 1\ntotal_inactive_file 1000\n"})
	// Version 2 beside version 1 also counts CPU, in microseconds.
	unified := folder(map[string]string{"cpu.stat": "usage_usec 1499999\nuser_usec 7\n"})
	two := folder(map[string]string{
		"cpu.stat": "usage_usec 2500000\n", "memory.current": "500\n", "memory.stat": "anon 5\ninactive_file 900\n",
	})
	f := func(want Use, dirs ...string) {
		t.Helper()
		got, err := readUse(dirs)
		if err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	f(Use{1500 * time.Millisecond, 8000}, cpuacct, memory, unified)
	f(Use{1500 * time.Millisecond, 8000}, unified, memory, cpuacct)
	f(Use{2500 * time.Millisecond, 0}, two)
	for _, dirs := range [][]string{nil, {cpuacct}, {memory}, {filepath.Join(cpuacct, "gone")}} {
		if got, err := readUse(dirs); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v: got %+v, %v; want %v", dirs, got, err, fs.ErrNotExist)
		}
	}
}
