//go:build linux

package vitals

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/disk"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// pod has the figures of a pod's cgroup.
type pod struct {
	cgroup     *cgroup
	memory     *stats.MemoryStats
	cpu        *stats.CPUStats
	io         *stats.IOStats // set only if the depth is Containers
	containers []container
	// processes is the number of processes in it and below it.
	processes int
	// hasHidden is true if there may be more processes than were counted.
	hasHidden bool
}

// container is a container's cgroup. It has figures only if the depth is Containers.
type container struct {
	id        metric.ContainerID
	memory    *stats.MemoryStats
	cpu       *stats.CPUStats // only pressure
	io        *stats.IOStats
	processes int
}

func (r *round) readPods(s *stats.Summary) {
	roots := r.findRoots()
	if len(roots) > 1 { // which one the kubelet uses follows from the processes in them now
		r.depth = max(r.depth, Pods)
	}
	pods := r.readPodsOf(roots)
	s.Node.SystemContainers = r.readMemoryOfPods(chooseRoots(roots, pods))
	var found []*pod
	for _, root := range roots {
		found = append(found, pods[root]...)
	}
	slices.SortFunc(found, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(a.cgroup.UID, b.cgroup.UID), cmp.Compare(a.cgroup.path, b.cgroup.path))
	})
	s.Pods = slices.Grow(s.Pods, len(found))
	for len(found) > 0 {
		n := 1
		for n < len(found) && found[n].cgroup.UID == found[0].cgroup.UID {
			n++
		}
		s.Pods = append(s.Pods, r.statsOfOnePod(found[:n]))
		found = found[n:]
	}
}

// readMemoryOfPods reads the memory of all pods together. roots are the kubepods cgroups that the kubelet may use.
func (r *round) readMemoryOfPods(roots []*cgroup) []stats.ContainerStats {
	switch len(roots) {
	case 0:
		return nil
	case 1:
		m, err := r.readMemory(roots[0])
		r.addError("read memory of "+string(roots[0].path), err)
		if m == nil {
			return nil
		}
		return []stats.ContainerStats{{Name: stats.SystemContainerPods, Memory: m}}
	}
	r.errs.Add(fmt.Errorf("read memory of all pods: %s and %s both have pods, and it is not known which one the kubelet uses: remove the leftovers (see weir inspect cgroups)", roots[0].path, roots[1].path))
	return nil
}

// statsOfOnePod returns the figures of a pod. cgroups are all that have its UID.
func (r *round) statsOfOnePod(cgroups []*pod) stats.PodStats {
	if len(cgroups) > 1 && r.depth == Memory { // which one the pod uses follows from the processes in them now
		for i, p := range cgroups {
			whole, err := r.readPod(p.cgroup)
			r.addError("read "+string(p.cgroup.path), err)
			cgroups[i] = whole
		}
	}
	var known PodNames
	if r.options.Pod != nil {
		known, _ = r.options.Pod(cgroups[0].cgroup.UID)
	}
	return r.podStats(r.choosePod(cgroups, known.Containers), &known)
}

// readPodsOf reads the pods below each of the kubepods cgroups.
func (r *round) readPodsOf(roots []*cgroup) map[*cgroup][]*pod {
	pods := map[*cgroup][]*pod{}
	for _, root := range roots {
		pods[root] = r.readPodsBelow(root)
	}
	return pods
}

// chooseRoots returns the kubepods cgroups that the kubelet may use: the only one or, of several, those whose pods have
// processes or, if no pod has any, those with pods. The pods of a kubelet that got another cgroup driver or another
// --cgroup-root keep their old cgroups until the next boot, without processes.
func chooseRoots(roots []*cgroup, pods map[*cgroup][]*pod) []*cgroup {
	if len(roots) == 1 {
		return roots
	}
	var running, others []*cgroup
	for _, root := range roots {
		if slices.ContainsFunc(pods[root], (*pod).mayRun) {
			running = append(running, root)
		} else if len(pods[root]) > 0 {
			others = append(others, root)
		}
	}
	if len(running) > 0 {
		return running
	}
	return others
}

// readPodsBelow reads the pods below a kubepods cgroup or the cgroup of a QoS class.
func (r *round) readPodsBelow(above *cgroup) (pods []*pod) {
	r.addError("list pods in "+string(above.path), r.listChildren(above))
	for _, c := range above.listed {
		if err := r.ctx.Err(); err != nil {
			r.addError("read pods", err)
			return pods
		}
		switch c.Kind {
		case podcgroup.Class:
			pods = append(pods, r.readPodsBelow(c)...)
		case podcgroup.Pod:
			p, err := r.readPodAtDepth(c)
			if err != nil && r.isReplaced(c) {
				continue
			}
			r.addError("read "+string(c.path), err)
			pods = append(pods, p)
		}
	}
	return pods
}

// readPodAtDepth reads the cgroup of a pod. If the depth is Memory and it was read before, it reads
// only the memory.
func (r *round) readPodAtDepth(c *cgroup) (*pod, error) {
	if r.depth > Memory || c.last == nil {
		return r.readPod(c)
	}
	p := *c.last
	p.io = nil
	if p.cpu != nil {
		p.cpu = &stats.CPUStats{Time: p.cpu.Time, UsageCoreNanoSeconds: clone(p.cpu.UsageCoreNanoSeconds), UsageNanoCores: clone(p.cpu.UsageNanoCores)}
	}
	var err error
	p.memory, err = r.readMemory(c)
	return &p, err
}

// clone returns a copy for a summary, which its caller may change.
func clone(n *uint64) *uint64 {
	if n == nil {
		return nil
	}
	return new(*n)
}

// readPod reads the cgroup of a pod and the processes below it. If the depth is Containers, it also
// reads the memory of the containers, and pressure.
func (r *round) readPod(c *cgroup) (*pod, error) {
	p := &pod{cgroup: c}
	var err, cpuErr, countErr error
	p.memory, err = r.readMemory(c)
	p.cpu, cpuErr = r.readCPU(c)
	cpuErr = errors.Join(cpuErr, r.readCgroupPressure(c, &p.cpu, &p.memory, &p.io))
	p.processes, countErr = r.countOwnProcesses(c)
	countErr = errors.Join(countErr, r.listChildren(c))
	for _, child := range c.listed {
		n, err := r.countProcesses(child)
		p.processes, countErr = p.processes+n, errors.Join(countErr, err)
		if child.Kind != podcgroup.Container {
			continue
		}
		one := container{id: child.ID, processes: n}
		if r.depth == Containers {
			one.memory, err = r.readMemory(child)
			if err = errors.Join(err, r.readCgroupPressure(child, &one.cpu, &one.memory, &one.io)); err != nil && r.isReplaced(child) {
				continue
			}
			r.addError("read "+string(child.path), err)
		}
		p.containers = append(p.containers, one)
	}
	p.hasHidden = countErr != nil
	if p.processes == 0 && countErr == nil {
		p.hasHidden, countErr = r.hasHiddenTasks(c)
	}
	c.last = p
	return p, errors.Join(err, cpuErr, countErr)
}

// readCgroupPressure adds pressure to the figures of a pod or container if the depth is Containers.
// Version 1 has none.
func (r *round) readCgroupPressure(c *cgroup, cpu **stats.CPUStats, memory **stats.MemoryStats, io **stats.IOStats) error {
	if r.depth < Containers || r.version == cgroupfs.V1 {
		return nil
	}
	return cgroupfs.IgnoreRemoved(r.readPressure(&c.pressure, c.dir, cpu, memory, io))
}

// mayRun reports whether p has processes, or may have some that were not counted.
func (p *pod) mayRun() bool { return p.processes > 0 || p.hasHidden }

// choosePod returns the pod's cgroup among those with one UID: the only one with processes or, if
// several have processes, the only one of them that also has a container in names. If there is
// none, it returns a pod without figures.
func (r *round) choosePod(pods []*pod, names map[string]string) *pod {
	if len(pods) == 1 {
		return pods[0]
	}
	only := func(matches func(*pod) bool) *pod {
		at := slices.IndexFunc(pods, matches)
		if at < 0 || slices.ContainsFunc(pods[at+1:], matches) {
			return nil
		}
		return pods[at]
	}
	for _, matches := range [...]func(*pod) bool{
		(*pod).mayRun,
		func(p *pod) bool {
			return p.processes > 0 && slices.ContainsFunc(p.containers, func(c container) bool { return names[string(c.id)] != "" })
		},
	} {
		if p := only(matches); p != nil && !p.hasHidden {
			return p
		}
	}
	var paths []string
	for _, p := range pods {
		paths = append(paths, string(p.cgroup.path))
	}
	r.errs.Add(fmt.Errorf("read pod %s: it has %d cgroups (%s), and it is not known which one the pod uses (see weir inspect cgroups)", pods[0].cgroup.UID, len(pods), strings.Join(paths, ", ")))
	return &pod{cgroup: pods[0].cgroup, hasHidden: true}
}

// podStats returns the figures of a pod with its names and its disk usage.
func (r *round) podStats(p *pod, known *PodNames) stats.PodStats {
	s := stats.PodStats{
		PodRef: stats.PodReference{Name: known.Name, Namespace: known.Namespace, UID: string(cmp.Or(known.UID, p.cgroup.UID))},
		Memory: p.memory, CPU: p.cpu, IO: p.io,
	}
	sandbox := p.sandbox(known.Containers)
	if !p.hasHidden {
		n := uint64(p.processes)
		if sandbox >= 0 {
			n -= uint64(p.containers[sandbox].processes)
		}
		s.ProcessStats = &stats.ProcessStats{ProcessCount: &n}
	}
	if r.depth == Containers {
		for i, c := range p.containers {
			if i != sandbox {
				name := cmp.Or(known.Containers[string(c.id)], string(c.id))
				s.Containers = append(s.Containers, stats.ContainerStats{Name: name, CPU: c.cpu, Memory: c.memory, IO: c.io})
			}
		}
	}
	if r.options.Disks != nil {
		if d, ok := r.options.Disks.Pod(p.cgroup.UID); ok {
			addDisks(&s, d)
		}
	}
	slices.SortStableFunc(s.Containers, func(a, b stats.ContainerStats) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// sandbox returns the index of the sandbox, which is the only container without a name. It returns
// -1 if the sandbox is not known.
func (p *pod) sandbox(names map[string]string) int {
	at := -1
	for i, c := range p.containers {
		if _, named := names[string(c.id)]; named {
			continue
		}
		if at >= 0 || len(names) == 0 {
			return -1
		}
		at = i
	}
	return at
}

// addDisks adds the disk usage of a pod. It also adds containers that have no cgroup any more,
// because they still have a writable layer.
func addDisks(s *stats.PodStats, d *disk.PodUsage) {
	s.VolumeStats, s.EphemeralStorage = d.Volumes, d.Ephemeral
	for name, c := range d.Containers {
		i := slices.IndexFunc(s.Containers, func(c stats.ContainerStats) bool { return c.Name == name })
		if i < 0 {
			i = len(s.Containers)
			s.Containers = append(s.Containers, stats.ContainerStats{Name: name})
		}
		s.Containers[i].Rootfs, s.Containers[i].Logs = c.Rootfs, c.Logs
	}
}
