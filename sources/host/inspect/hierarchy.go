package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Hierarchy is one mounted tree of cgroups.
type Hierarchy struct {
	// Name is what tells it from the others: its controllers ("cpu,cpuacct"),
	// its name where it has none ("name=systemd"), or "unified" for version 2.
	Name string
	// Dir is where it is mounted.
	Dir string
	// Unified says that it is of version 2.
	Unified bool
}

// Version returns "v1", "v2" or, for hierarchies of both, "hybrid".
func Version(hierarchies []Hierarchy) string {
	unified := slices.ContainsFunc(hierarchies, func(h Hierarchy) bool { return h.Unified })
	switch {
	case !unified:
		return "v1"
	case len(hierarchies) == 1:
		return "v2"
	}
	return "hybrid"
}

// findMounts returns the hierarchies that a process's mountinfo names. A
// hierarchy that is mounted several times counts once, where most of it is to be
// seen: inside a container its own part may be mounted beside the whole.
func findMounts(mountinfo []byte) []Hierarchy {
	type mount struct {
		Hierarchy
		depth int // of what is mounted below the hierarchy's root
	}
	best := map[string]mount{} // by device
	var order []string
	for line := range bytes.Lines(mountinfo) {
		before, after, ok := strings.Cut(strings.TrimSpace(string(line)), " - ")
		head, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(head) < 5 || len(tail) < 3 {
			continue
		}
		m := mount{Hierarchy: Hierarchy{Dir: unescape(head[4])}, depth: depth(head[3])}
		switch tail[0] {
		case "cgroup2":
			m.Name, m.Unified = "unified", true
		case "cgroup":
			m.Name = controllersOf(tail[2])
		default:
			continue
		}
		device := head[2]
		old, seen := best[device]
		if !seen {
			order = append(order, device)
		}
		if !seen || m.depth < old.depth {
			best[device] = m
		}
	}
	var found []Hierarchy
	for _, device := range order {
		found = append(found, best[device].Hierarchy)
	}
	return found
}

// depth returns how far a mount's root lies below the hierarchy's; it is
// negative for one above that of our cgroup namespace.
func depth(root string) (n int) {
	for part := range strings.SplitSeq(root, "/") {
		switch part {
		case "":
		case "..":
			n--
		default:
			n++
		}
	}
	return n
}

// controllersOf returns what of a version 1 hierarchy's options tells it from
// others.
func controllersOf(options string) string {
	var names []string
	for o := range strings.SplitSeq(options, ",") {
		switch {
		case o == "rw", o == "ro", o == "xattr", o == "noprefix", o == "clone_children", o == "cpuset_v2_mode":
		case strings.Contains(o, "=") && !strings.HasPrefix(o, "name="):
		default:
			names = append(names, o)
		}
	}
	return strings.Join(names, ",")
}

// unescape undoes what the kernel writes for white space and backslashes in a path.
func unescape(p string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(p)
}

// findBelow returns the hierarchies that are mounted at dir or in its
// directories. Links, as from cpu to cpu,cpuacct, are left out.
func findBelow(dir string) ([]Hierarchy, error) {
	if exists(filepath.Join(dir, "cgroup.controllers")) {
		return []Hierarchy{{Name: "unified", Dir: dir, Unified: true}}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list cgroup hierarchies: %w", err)
	}
	var found []Hierarchy
	for _, e := range entries {
		h := Hierarchy{Name: e.Name(), Dir: filepath.Join(dir, e.Name())}
		h.Unified = exists(filepath.Join(h.Dir, "cgroup.controllers"))
		if e.IsDir() && (h.Unified || exists(filepath.Join(h.Dir, "cgroup.procs"))) {
			found = append(found, h)
		}
	}
	return found, nil
}

// find returns the hierarchies that the options ask for.
func (o *Options) find() ([]Hierarchy, error) {
	var (
		found []Hierarchy
		where = o.Mount
	)
	if where == "" {
		where = path.Join(o.Proc, "self/mountinfo")
		mountinfo, err := os.ReadFile(where)
		if err != nil {
			return nil, fmt.Errorf("find cgroup hierarchies: %w", err)
		}
		found = findMounts(mountinfo)
	} else {
		var err error
		if found, err = findBelow(where); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("find cgroup hierarchies: %w", errNone(where))
	}
	return found, nil
}

func errNone(where string) error {
	return errors.New(where + " has none: name the directory they are mounted in, as /sys/fs/cgroup")
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
