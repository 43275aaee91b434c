//go:build linux

package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodCgroup is the cgroup of a pod or of one of its containers, in every
// hierarchy. It does not have to exist: a test may create one where the kubelet
// would not.
type PodCgroup struct{ group cgroup }

// PodCgroup returns the cgroup of a pod with that QoS class and UID.
func (c *Cluster) PodCgroup(class corev1.PodQOSClass, uid types.UID) PodCgroup {
	g := cgroup(c.state.Cgroup).child("kubepods")
	if class != corev1.PodQOSGuaranteed { // guaranteed pods have no folder of their class
		g = g.child(strings.ToLower(string(class)))
	}
	return PodCgroup{g.child("pod" + string(uid))}
}

// Container returns the cgroup of a container of the pod. id is the container's
// ID, with or without the runtime's name.
func (g PodCgroup) Container(id string) PodCgroup {
	if _, bare, ok := strings.Cut(id, "://"); ok {
		id = bare
	}
	return PodCgroup{g.group.child(id)}
}

// String returns the path below each hierarchy's root.
func (g PodCgroup) String() string { return string(g.group) }

// Make creates the cgroup and its parents. With parent, the cgroup may have
// children, but no processes of its own.
func (g PodCgroup) Make(parent bool) error { return g.group.make(parent) }

// Remove removes the cgroup and all below it. All their processes must have
// ended.
func (g PodCgroup) Remove(ctx context.Context) error { return g.group.remove(ctx) }

// Processes returns the IDs of the processes in the cgroup and below it.
func (g PodCgroup) Processes() ([]int, error) { return g.group.processes() }

// Kill thaws the cgroup and ends every process in it and below it.
func (g PodCgroup) Kill(ctx context.Context) error { return g.group.kill(ctx) }

// Freeze stops every process in the cgroup and below it, as if it waited in the
// kernel: it cannot even end.
func (g PodCgroup) Freeze() error { return g.freeze("FROZEN", "1") }

// Thaw undoes Freeze.
func (g PodCgroup) Thaw() error { return g.freeze("THAWED", "0") }

// freeze writes the state to the freezer's file of version 1 or 2.
func (g PodCgroup) freeze(v1, v2 string) error {
	dirs, err := g.group.dirs()
	if err != nil {
		return err
	}
	for _, d := range dirs {
		for file, state := range map[string]string{"freezer.state": v1, "cgroup.freeze": v2} {
			path := filepath.Join(d, file)
			if !exists(path) {
				continue
			}
			if err := os.WriteFile(path, []byte(state), 0o644); err != nil {
				return fmt.Errorf("freeze or thaw %s: %w", g, err)
			}
		}
	}
	return nil
}

// Use is the kernel's count of a cgroup's usage.
type Use struct {
	CPU        time.Duration // since the cgroup was created
	WorkingSet int64         // bytes in use, less the inactive page cache
}

// Use reads the counters. The error is fs.ErrNotExist if the cgroup is gone.
func (g PodCgroup) Use() (Use, error) {
	dirs, err := g.group.dirs()
	if err != nil {
		return Use{}, err
	}
	u, err := readUse(dirs)
	if err != nil {
		return Use{}, fmt.Errorf("read use of %s: %w", g, err)
	}
	return u, nil
}

// MachineUse reads the usage of this whole machine, which is also the node's.
func MachineUse() (Use, error) {
	roots, err := hierarchies()
	if err != nil {
		return Use{}, err
	}
	u, err := readUse(roots)
	if err != nil {
		return Use{}, fmt.Errorf("read use of the root cgroup (version 2 counts no memory there): %w", err)
	}
	return u, nil
}

// readUse reads the counters from those of the cgroup's folders that have them.
func readUse(dirs []string) (u Use, err error) {
	var cpu, memory bool
	for _, d := range dirs {
		// Version 1 has CPU time in nanoseconds in a file of its own.
		if v, err := readNumber(filepath.Join(d, "cpuacct.usage")); err == nil {
			u.CPU, cpu = time.Duration(v), true
		} else if v, err := readField(filepath.Join(d, "cpu.stat"), "usage_usec"); err == nil && !cpu {
			u.CPU, cpu = time.Duration(v)*time.Microsecond, true
		}
		for _, v := range []struct{ usage, inactive string }{
			{"memory.usage_in_bytes", "total_inactive_file"}, {"memory.current", "inactive_file"},
		} {
			used, err := readNumber(filepath.Join(d, v.usage))
			if err != nil {
				continue
			}
			inactive, err := readField(filepath.Join(d, "memory.stat"), v.inactive)
			if err != nil {
				continue
			}
			u.WorkingSet, memory = max(0, used-inactive), true
		}
	}
	if !cpu || !memory {
		return Use{}, fs.ErrNotExist
	}
	return u, nil
}

func readNumber(path string) (int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

// readField returns the number after a name in a file of lines "name number".
func readField(path, name string) (int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		if f := strings.Fields(s.Text()); len(f) == 2 && f[0] == name {
			return strconv.ParseInt(f[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("no %s in %s", name, path)
}

// StartIn starts the test workload on the node and moves it into a pod's
// cgroup, like a process that has outlived its container. Its CPU and memory
// count there, but the kubelet and the runtime do not see it as a process of
// the pod. StopProcess or Down ends it.
func (c *Cluster) StartIn(ctx context.Context, g PodCgroup, name string, args ...string) error {
	if err := c.StartProcess(ctx, name, filepath.Join(c.dir, "workload"), args, ""); err != nil {
		return err
	}
	p, _ := c.process(name)
	dirs, err := g.group.dirs()
	if err != nil {
		return err
	}
	moved := 0
	for _, d := range dirs {
		if !exists(filepath.Join(d, "cpuacct.usage")) && !exists(filepath.Join(d, "memory.stat")) && !exists(filepath.Join(d, "cpu.shares")) {
			continue
		}
		if err := os.WriteFile(filepath.Join(d, "cgroup.procs"), []byte(strconv.Itoa(p.PID)), 0o644); err != nil {
			return errors.Join(fmt.Errorf("move %s into %s: %w", name, g, err), c.StopProcess(ctx, name))
		}
		moved++
	}
	if moved == 0 {
		return errors.Join(fmt.Errorf("move %s: there is no cgroup %s", name, g), c.StopProcess(ctx, name))
	}
	return nil
}
