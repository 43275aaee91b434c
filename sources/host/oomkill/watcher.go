//go:build linux

package oomkill

import (
	"bytes"
	"cmp"
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
	rescan         = 10 * time.Second // between two reads of all pods
	minScan        = time.Second      // the same, while the kernel kills
	settle         = time.Second      // how long a container that was killed may keep processes
	maxLimitToKill = 10 * time.Second // how long the kernel may take from a limit to its kill: it writes its log in between
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
	levels  map[metric.CgroupPath]level // the cgroups above pods, of which the kernel reports the local oom
	pods    map[metric.CgroupPath]*pod
	victims []victim // of the log, the oldest first
	found   []endlog.Kill
}

// level has the local oom of a cgroup above pods, and when a scan last saw that it rose.
type level struct {
	oom  uint64
	rose time.Time
}

// pod has the counters of a pod's cgroup at the last scan.
type pod struct {
	podcgroup.Ref
	last       counters
	below, own time.Time // when a scan last saw that a limit in the pod, or its own, was reached
	containers map[metric.CgroupPath]*container
	seen       bool
}

// container has the kills of a living container.
type container struct {
	last      counters
	undecided *endlog.Kill // it ends because of this, or goes on
	child     *endlog.Kill // counted up as long as it goes on
}

// subgroup is the cgroup that crun makes in that of a container, with the same limits.
const subgroup = "container"

// counters are those of a cgroup. local is the oom of its own limit, and whole the group kills of itself.
type counters struct{ kills, groups, oom, local, whole uint64 }

// since returns the differences to earlier ones. A cgroup that was made again counts from 0.
func (c counters) since(e counters) counters {
	if c.kills < e.kills || c.oom < e.oom || c.local < e.local || c.groups < e.groups || c.whole < e.whole {
		return c
	}
	return counters{kills: c.kills - e.kills, groups: c.groups - e.groups, oom: c.oom - e.oom, local: c.local - e.local, whole: c.whole - e.whole}
}

// New returns a Watcher. What was killed before its first Look is not found.
func New(o Options) *Watcher {
	return &Watcher{opts: o, levels: map[metric.CgroupPath]level{}, pods: map[metric.CgroupPath]*pod{}}
}

// Close closes the log.
func (w *Watcher) Close() error {
	if w.opts.Log == nil {
		return nil
	}
	return w.opts.Log.Close()
}

// Look returns the kills since the last call: those that are new, and those that were counted up. A cgroup that cannot
// be read does not affect the others.
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
		w.completeFromLog(&w.found[i])
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

// readLocal reads what c lacks. ok is false if the kernel does not report it, and c then has what last has.
func (w *Watcher) readLocal(p metric.CgroupPath, c, last counters) (_ counters, ok bool) {
	data, err := os.ReadFile(w.file(p, "memory.events.local"))
	if err != nil {
		c.local, c.whole = last.local, last.whole
		return c, false
	}
	c.local, _ = cgroupfs.Number(data, "oom")
	c.whole, _ = cgroupfs.Number(data, "oom_group_kill")
	return c, true
}

// scan reads the cgroups of all pods. The kernel killed between after and now.
func (w *Watcher) scan(after, now time.Time, first bool, errs *cgroupfs.ErrorList) {
	w.scanned = now
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
		changed = append(changed, w.visit(root, now, first, errs)...)
		w.readLevels(root, now)
	}
	for _, p := range changed {
		w.readContainers(p, after, now, first, errs)
	}
	maps.DeleteFunc(w.pods, func(_ metric.CgroupPath, p *pod) bool { return !p.seen && !p.isUndecided() })
}

// readLevels reads p and the cgroups above it, which are all above pods.
func (w *Watcher) readLevels(p metric.CgroupPath, now time.Time) {
	for ; w.opts.Unified && p != "/"; p = above(p) {
		old, known := w.levels[p]
		c, ok := w.readLocal(p, counters{}, counters{})
		if known && c.local > old.oom {
			old.rose = now
		}
		w.levels[p] = level{oom: c.local, rose: old.rose}
		if !ok {
			delete(w.levels, p)
		}
	}
}

func above(p metric.CgroupPath) metric.CgroupPath { return metric.CgroupPath(path.Dir(string(p))) }

// visit reads the cgroups of the pods below another one, and returns those in which the kernel killed.
func (w *Watcher) visit(parent metric.CgroupPath, now time.Time, first bool, errs *cgroupfs.ErrorList) (changed []metric.CgroupPath) {
	children, err := cgroupfs.Children(w.opts.Dir, parent)
	errs.Add(err)
	for _, child := range children {
		switch ref := podcgroup.Parse(child); ref.Kind {
		case podcgroup.Class:
			changed = append(changed, w.visit(child, now, first, errs)...)
			w.readLevels(child, now)
		case podcgroup.Pod:
			c, ok := w.read(child, errs)
			if !ok {
				continue
			}
			p := w.pods[child]
			if p == nil {
				p = &pod{Ref: ref, containers: map[metric.CgroupPath]*container{}}
				w.pods[child] = p
			}
			p.seen = true
			// Version 1 counts in the container's cgroup only.
			if !w.opts.Unified || c.kills != p.last.kills {
				changed = append(changed, child)
				continue // its counters are compared there
			}
			w.update(child, c, now, first)
		}
	}
	return changed
}

// update takes the counters of a pod, and returns by how much they rose.
func (w *Watcher) update(cgroup metric.CgroupPath, c counters, now time.Time, first bool) counters {
	p, ok := w.pods[cgroup], true
	c.local, c.whole = p.last.local, p.last.whole
	if c.oom != p.last.oom {
		c, ok = w.readLocal(cgroup, c, p.last)
	}
	d := c.since(p.last)
	p.last = c
	if ok && !first && d.local > 0 {
		p.own = now
	}
	if ok && !first && d.oom > d.local {
		p.below = now
	}
	return d
}

// readContainers finds which containers of a pod the kernel killed in, and at which limit.
func (w *Watcher) readContainers(cgroup metric.CgroupPath, after, now time.Time, first bool, errs *cgroupfs.ErrorList) {
	p := w.pods[cgroup]
	c, _ := w.read(cgroup, errs)
	d := w.update(cgroup, c, now, first)
	k := endlog.Kill{UID: p.UID, Scope: endlog.InContainer, After: after, At: now}
	names, err := cgroupfs.Children(w.opts.Dir, cgroup)
	errs.Add(err)
	if d.kills > 0 && !first {
		limit, slice, doubt := w.limit(cgroup, now)
		k.SetLimit(limit, slice)
		k.Doubt, k.Files = doubt, limit == endlog.InPod && w.hasFiles(cgroup, names)
	}
	left := d.kills
	for _, name := range names {
		c, ok := w.read(name, errs)
		if !ok {
			continue
		}
		in := p.container(name)
		d, known := w.updateContainer(name, in, c)
		if d.kills == 0 || first {
			continue
		}
		left -= min(left, d.kills)
		f := newKill(k, d.kills, d.groups)
		f.ContainerID = podcgroup.Parse(name).ID
		f.Inner = f.Limit == endlog.InContainer && known && d.oom > 0 && d.local == 0
		w.addContainer(in, &f, d.whole > 0)
	}
	maps.DeleteFunc(p.containers, func(name metric.CgroupPath, c *container) bool {
		return c.undecided == nil && !slices.Contains(names, name)
	})
	if left > 0 && !first && w.opts.Unified {
		w.found = append(w.found, newKill(k, left, d.groups))
	}
}

// container returns what is known of a container, which may be new.
func (p *pod) container(name metric.CgroupPath) *container {
	c := p.containers[name]
	if c == nil {
		c = &container{}
		p.containers[name] = c
	}
	return c
}

// updateContainer takes the counters of a container, and returns by how much they rose. known means that the kernel
// counts those of its own limit.
func (w *Watcher) updateContainer(name metric.CgroupPath, in *container, c counters) (d counters, known bool) {
	c, known = w.readLocal(name, c, in.last)
	sub, _ := w.readLocal(metric.CgroupPath(path.Join(string(name), subgroup)), counters{}, counters{})
	c.local, c.whole = max(c.local+sub.local, in.last.local), max(c.whole+sub.whole, in.last.whole)
	d = c.since(in.last)
	in.last = c
	return d, known
}

// addContainer adds a kill in a container, which is decided at once if all of its processes are killed together,
// however long that takes.
func (w *Watcher) addContainer(in *container, f *endlog.Kill, whole bool) {
	if u := in.undecided; u != nil { // it is counted up
		f.Processes, f.New, f.After, f.Whole = f.Processes+u.Processes, f.New+u.New, u.After, f.Whole || u.Whole
	}
	in.undecided = f
	if whole {
		in.undecided = nil
		w.found = append(w.found, *f)
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

// limit returns whose limit was reached if a scan finds a kill in a pod now. The kernel counts the limit before the kill,
// so that an earlier scan may have seen it. That is doubted, because it may have led to another kill.
func (w *Watcher) limit(cgroup metric.CgroupPath, now time.Time) (endlog.Scope, metric.CgroupPath, endlog.Doubt) {
	if _, counted := w.levels[above(cgroup)]; !counted {
		return "", "", endlog.Uncounted
	}
	if p := w.pods[cgroup]; p.below.Before(now) && p.own.Before(now) {
		w.readLevels(above(cgroup), now) // after the kill, so that they have its limit
	}
	scope, slice, doubt := w.reached(cgroup, now)
	if scope == endlog.InNode {
		if scope, slice, doubt = w.reached(cgroup, now.Add(-maxLimitToKill)); scope != endlog.InNode {
			doubt = cmp.Or(doubt, endlog.Earlier)
		}
	}
	return scope, slice, doubt
}

// reached returns the lowest limit that scans saw reached since some time; the node's if none was.
func (w *Watcher) reached(cgroup metric.CgroupPath, since time.Time) (scope endlog.Scope, slice metric.CgroupPath, doubt endlog.Doubt) {
	p := w.pods[cgroup]
	switch below, own := !p.below.Before(since), !p.own.Before(since); {
	case below && own:
		return "", "", ""
	case below:
		return endlog.InContainer, "", ""
	case own:
		return endlog.InPod, "", ""
	}
	scope = endlog.InNode
	for q := above(cgroup); q != "/"; q = above(q) {
		if w.levels[q].rose.Before(since) {
			continue
		}
		if slice != "" {
			return scope, slice, endlog.Several
		}
		scope, slice = endlog.InSlice, q
	}
	return scope, slice, ""
}

// hasFiles reports whether a tenth of a pod's limit or more is files in memory that are in none of its containers.
func (w *Watcher) hasFiles(p metric.CgroupPath, containers []metric.CgroupPath) bool {
	files := func(p metric.CgroupPath) uint64 {
		data, _ := os.ReadFile(w.file(p, "memory.stat")) // of a cgroup that is gone there are none
		n, _ := cgroupfs.Number(data, "shmem")
		return n
	}
	left := files(p)
	for _, c := range containers {
		left -= min(left, files(c))
	}
	data, _ := os.ReadFile(w.file(p, "memory.max"))
	limit, err := cgroupfs.ParseUint(data)
	return err == nil && left >= limit/10
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
					w.completeFromLog(f)
					w.found = append(w.found, *f)
				}
			case now.Sub(f.At) >= settle:
				c.undecided = nil
				w.completeFromLog(f)
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

// runs reports whether a cgroup is there and has processes. Version 1 reports only the processes of the cgroup itself.
func (w *Watcher) runs(p metric.CgroupPath) bool {
	if !w.opts.Unified {
		data, err := os.ReadFile(w.file(p, "cgroup.procs"))
		children, _ := cgroupfs.Children(w.opts.Dir, p) // of a cgroup that is gone there are none
		return err == nil && len(data)+len(children) > 0
	}
	data, err := os.ReadFile(w.file(p, "cgroup.events"))
	return err == nil && !bytes.Contains(data, []byte("populated 0"))
}

func (w *Watcher) exists(p metric.CgroupPath) bool {
	_, err := os.Stat(path.Join(w.opts.Dir, string(p)))
	return err == nil
}
