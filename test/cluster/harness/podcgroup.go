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
// hierarchy. It need not exist: a test may make one where the kubelet would not.
type PodCgroup struct{ group cgroup }

// PodCgroup returns the cgroup that a pod of that class has.
func (c *Cluster) PodCgroup(class corev1.PodQOSClass, uid types.UID) PodCgroup {
	g := cgroup(c.state.Cgroup).child("kubepods")
	if class != corev1.PodQOSGuaranteed { // which have no folder of their class
		g = g.child(strings.ToLower(string(class)))
	}
	return PodCgroup{g.child("pod" + string(uid))}
}

// Container returns the cgroup of a container of the pod, by its ID with or
// without the runtime's name.
func (g PodCgroup) Container(id string) PodCgroup {
	if _, bare, ok := strings.Cut(id, "://"); ok {
		id = bare
	}
	return PodCgroup{g.group.child(id)}
}

// String returns its path below each hierarchy's root.
func (g PodCgroup) String() string { return string(g.group) }

// Make makes it, and what lies above it. With parent it may have children, but
// no processes of its own.
func (g PodCgroup) Make(parent bool) error { return g.group.make(parent) }

// Remove removes it and those below it, from which every process must have gone.
func (g PodCgroup) Remove(ctx context.Context) error { return g.group.remove(ctx) }

// Processes returns the processes in it and below it.
func (g PodCgroup) Processes() ([]int, error) { return g.group.processes() }

// Kill thaws it and ends every process in it and below it.
func (g PodCgroup) Kill(ctx context.Context) error { return g.group.kill(ctx) }

// Freeze holds every process in it and below it still, as one is that hangs in
// the kernel: it does not even die.
func (g PodCgroup) Freeze() error { return g.freeze("FROZEN", "1") }

// Thaw undoes Freeze.
func (g PodCgroup) Thaw() error { return g.freeze("THAWED", "0") }

// freeze writes the wanted state where the freezer of either version is.
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

// Use is what the kernel itself counts of a cgroup.
type Use struct {
	CPU        time.Duration // since the cgroup was made
	WorkingSet int64         // bytes in use, less the inactive page cache
}

// Use reads it. The error is fs.ErrNotExist once the cgroup is gone.
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

// MachineUse reads the same of this whole machine, which is the node's own use.
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

// readUse finds the counters in whichever of a cgroup's folders has them.
func readUse(dirs []string) (u Use, err error) {
	var cpu, memory bool
	for _, d := range dirs {
		// Version 1 keeps CPU time in nanoseconds in a file of its own.
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

// StartIn starts the test workload on the node and moves it into a pod's cgroup,
// whose use of CPU and memory it then is: a process that outlived its container.
// What tells the kubelet and the runtime whom to end stays its own. StopProcess
// or Down ends it.
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
