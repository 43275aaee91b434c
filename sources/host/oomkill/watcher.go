//go:build linux

package oomkill

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// Interval is the time between two Looks.
const Interval = 250 * time.Millisecond

const (
	rescan  = 10 * time.Second // between two reads of all pods
	minScan = time.Second      // the same, while the kernel kills
	settle  = time.Second      // how long a container that was killed may keep processes
)

// Options have the paths of the kernel's files.
type Options struct {
	// Dir is the mount point of the hierarchy that counts memory. Unified is true for cgroup version 2.
	Dir     string
	Unified bool
	Proc    string
	// Log is the kernel's log, which names the processes; nil if it is not read.
	Log *Log
}

// Watcher watches the pods of this machine. Its methods must not be called concurrently.
type Watcher struct {
	opts    Options
	total   uint64
	calm    time.Time // when total was last the same as before
	scanned time.Time
	roots   []metric.CgroupPath
	levels  map[metric.CgroupPath]uint64 // the local oom of cgroups above pods
	reached metric.CgroupPath            // the one of them whose limit was reached since the last scan
	pods    map[metric.CgroupPath]*pod
	victims []victim // of the log, the oldest first
	found   []endlog.Kill
}

// pod has the counters of a pod's cgroup at the last scan.
type pod struct {
	podcgroup.Ref
	last       counters
	containers map[metric.CgroupPath]*container
	seen       bool
}

// container has the kills of a living container.
type container struct {
	last      counters
	undecided *endlog.Kill // it ends because of this, or goes on
	child     *endlog.Kill // counted up as long as it goes on
}

// counters are those of a cgroup. local is that of the cgroup's own limit.
type counters struct{ kills, groups, oom, local uint64 }

// since returns the differences to earlier ones. A cgroup that was made again counts from 0.
func (c counters) since(e counters) counters {
	if c.kills < e.kills || c.oom < e.oom || c.local < e.local || c.groups < e.groups {
		return c
	}
	return counters{c.kills - e.kills, c.groups - e.groups, c.oom - e.oom, c.local - e.local}
}

// New returns a Watcher. What was killed before its first Look is not found.
func New(o Options) *Watcher {
	return &Watcher{opts: o, levels: map[metric.CgroupPath]uint64{}, pods: map[metric.CgroupPath]*pod{}}
}

// Close closes the log.
func (w *Watcher) Close() error {
	if w.opts.Log == nil {
		return nil
	}
	return w.opts.Log.Close()
}

// Look returns the kills since the last call: those that are new, and those that were counted up. A cgroup that cannot be read does not affect the
// others.
func (w *Watcher) Look(now time.Time) (found []endlog.Kill, err error) {
	w.found = nil
	total, err := w.kills()
	first := w.scanned.IsZero()
	due := first || now.Sub(w.scanned) >= rescan || total != w.total && now.Sub(w.scanned) >= minScan
	if due {
		var errs cgroupfs.ErrorList
		errs.Add(err)
		after := w.scanned
		if w.calm.After(after) {
			after = w.calm
		}
		w.scan(after, now, first, &errs)
		err = errs.Err()
	}
	if due || total == w.total {
		w.total, w.calm = total, now
	}
	err = errors.Join(err, w.readLog(now)) // after the counters, so that it has what they have
	for i := range w.found {
		w.addName(&w.found[i])
	}
	w.decide(now)
	w.addEnded(now)
	return w.found, err
}

// kills returns the number of all kills: of the pods or, on version 1, of the machine.
func (w *Watcher) kills() (uint64, error) {
	name := path.Join(w.opts.Proc, "vmstat")
	if w.opts.Unified {
		if len(w.roots) == 0 {
			return 0, nil // the next scan finds it
		}
		name = w.file(w.roots[0], "memory.events")
	}
	data, err := os.ReadFile(name)
	switch {
	case cgroupfs.IsRemoved(err):
		return w.total, nil
	case err != nil:
		return w.total, fmt.Errorf("count kills: %w", err)
	}
	n, _ := cgroupfs.Number(data, "oom_kill")
	return n, nil
}

func (w *Watcher) file(p metric.CgroupPath, name string) string {
	return path.Join(w.opts.Dir, string(p), name)
}

// read reads the counters of a cgroup; ok is false if it is gone.
func (w *Watcher) read(p metric.CgroupPath, errs *cgroupfs.ErrorList) (c counters, ok bool) {
	name := "memory.oom_control"
	if w.opts.Unified {
		name = "memory.events"
	}
	data, err := os.ReadFile(w.file(p, name))
	if err != nil {
		errs.Add(cgroupfs.IgnoreRemoved(err))
		return c, false
	}
	c.kills, _ = cgroupfs.Number(data, "oom_kill")
	c.groups, _ = cgroupfs.Number(data, "oom_group_kill")
	c.oom, _ = cgroupfs.Number(data, "oom")
	return c, true
}

// readLocal reads the oom of the cgroup's own limit.
func (w *Watcher) readLocal(p metric.CgroupPath) uint64 {
	data, err := os.ReadFile(w.file(p, "memory.events.local"))
	if err != nil {
		return 0
	}
	n, _ := cgroupfs.Number(data, "oom")
	return n
}

// scan reads the cgroups of all pods. The kernel killed between after and now.
func (w *Watcher) scan(after, now time.Time, first bool, errs *cgroupfs.ErrorList) {
	w.scanned, w.reached = now, ""
	if len(w.roots) == 0 || !w.exists(w.roots[0]) {
		var err error
		w.roots, err = cgroupfs.FindPodRoots(w.opts.Dir)
		errs.Add(err)
	}
	for _, p := range w.pods {
		p.seen = false
	}
	var changed []metric.CgroupPath
	for _, root := range w.roots {
		for p := metric.CgroupPath(path.Dir(string(root))); p != "/"; p = metric.CgroupPath(path.Dir(string(p))) {
			w.readLevel(p)
		}
		changed = append(changed, w.visit(root, errs)...)
	}
	for _, p := range changed {
		w.readContainers(p, after, now, first, errs)
	}
	maps.DeleteFunc(w.pods, func(_ metric.CgroupPath, p *pod) bool { return !p.seen && !p.isUndecided() })
}

// readLevel reads a cgroup above pods. Of those whose limit was reached, reached becomes the lowest.
func (w *Watcher) readLevel(p metric.CgroupPath) {
	if !w.opts.Unified {
		return
	}
	n := w.readLocal(p)
	if old, known := w.levels[p]; known && n > old {
		w.reached = p
	}
	w.levels[p] = n
}

// visit reads the cgroups of the pods below p, and returns those in which the kernel killed.
func (w *Watcher) visit(p metric.CgroupPath, errs *cgroupfs.ErrorList) (changed []metric.CgroupPath) {
	w.readLevel(p)
	children, err := cgroupfs.Children(w.opts.Dir, p)
	errs.Add(err)
	for _, child := range children {
		switch ref := podcgroup.Parse(child); ref.Kind {
		case podcgroup.Class:
			changed = append(changed, w.visit(child, errs)...)
		case podcgroup.Pod:
			c, ok := w.read(child, errs)
			if !ok {
				continue
			}
			at := w.pods[child]
			if at == nil {
				at = &pod{Ref: ref, containers: map[metric.CgroupPath]*container{}}
				w.pods[child] = at
			}
			at.seen = true
			// Version 1 counts in the container's cgroup only.
			if !w.opts.Unified || c.kills != at.last.kills {
				changed = append(changed, child)
				continue // its counters are compared there
			}
			if c.oom != at.last.oom {
				c.local = w.readLocal(child)
			} else {
				c.local = at.last.local
			}
			at.last = c
		}
	}
	return changed
}

// readContainers finds which containers of a pod the kernel killed in, and at which limit.
func (w *Watcher) readContainers(p metric.CgroupPath, after, now time.Time, first bool, errs *cgroupfs.ErrorList) {
	at := w.pods[p]
	c, _ := w.read(p, errs)
	c.local = w.readLocal(p)
	d := c.since(at.last)
	at.last = c
	k := endlog.Kill{UID: at.UID, After: after, At: now}
	k.Limit, k.Slice = w.limit(d)
	k.Scope = k.Limit
	if k.Limit == "" {
		k.Scope = endlog.InContainer
	}
	left := d.kills
	names, err := cgroupfs.Children(w.opts.Dir, p)
	errs.Add(err)
	for _, name := range names {
		c, ok := w.read(name, errs)
		if !ok {
			continue
		}
		in := at.containers[name]
		if in == nil {
			in = &container{}
			at.containers[name] = in
		}
		d := c.since(in.last)
		in.last = c
		if d.kills == 0 || first {
			continue
		}
		left -= min(left, d.kills)
		f := newKill(k, d.kills, d.groups)
		f.ContainerID = podcgroup.Parse(name).ID
		if u := in.undecided; u != nil { // it is counted up
			f.Processes, f.New, f.After, f.Whole = f.Processes+u.Processes, f.New+u.New, u.After, f.Whole || u.Whole
		}
		in.undecided = &f
	}
	maps.DeleteFunc(at.containers, func(name metric.CgroupPath, c *container) bool {
		return c.undecided == nil && !slices.Contains(names, name)
	})
	if left > 0 && !first && w.opts.Unified {
		w.found = append(w.found, newKill(k, left, d.groups))
	}
}

// newKill returns k with the number of processes. Those of a group are killed together.
func newKill(k endlog.Kill, processes, groups uint64) endlog.Kill {
	k.Processes, k.New, k.Whole = processes, processes, groups > 0
	if k.Whole {
		k.New = min(groups, processes)
	}
	return k
}

// limit returns whose limit was reached, if the counters of a pod rose by d.
func (w *Watcher) limit(d counters) (endlog.Scope, metric.CgroupPath) {
	below := d.oom - min(d.oom, d.local)
	switch {
	case !w.opts.Unified, below > 0 && d.local > 0:
		return "", ""
	case below > 0:
		return endlog.InContainer, ""
	case d.local > 0:
		return endlog.InPod, ""
	case w.reached != "":
		return endlog.InSlice, w.reached
	}
	return endlog.InNode, ""
}

// decide finds which containers ended, and which go on.
func (w *Watcher) decide(now time.Time) {
	for _, p := range w.pods {
		for name, c := range p.containers {
			switch f := c.undecided; {
			case f == nil:
			case !w.runs(name):
				c.undecided = nil
				if w.opts.Unified {
					w.addName(f)
					w.found = append(w.found, *f)
				}
			case now.Sub(f.At) >= settle:
				c.undecided = nil
				w.addName(f)
				w.found = append(w.found, c.goesOn(f))
			}
		}
	}
}

// isUndecided reports whether a container of the pod may have ended or not.
func (p *pod) isUndecided() bool {
	for _, c := range p.containers {
		if c.undecided != nil {
			return true
		}
	}
	return false
}

// goesOn returns f as a kill of a child, with those that were found before.
func (c *container) goesOn(f *endlog.Kill) endlog.Kill {
	f.Scope = endlog.Child
	if c.child != nil && c.child.Limit == f.Limit {
		f.After, f.Processes = c.child.After, c.child.Processes+f.Processes
	}
	c.child = f
	return *f
}

// runs reports whether a cgroup is there and has processes. Version 1 does not report the latter.
func (w *Watcher) runs(p metric.CgroupPath) bool {
	if !w.opts.Unified {
		return w.exists(p)
	}
	data, err := os.ReadFile(w.file(p, "cgroup.events"))
	return err == nil && !bytes.Contains(data, []byte("populated 0"))
}

func (w *Watcher) exists(p metric.CgroupPath) bool {
	_, err := os.Stat(path.Join(w.opts.Dir, string(p)))
	return err == nil
}
