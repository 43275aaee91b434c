//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/container/common"
	"github.com/google/cadvisor/lib/fs"
	facts "github.com/google/cadvisor/lib/machine"
	"github.com/google/cadvisor/lib/model"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// CAdvisor is one read of this machine in cAdvisor's form. It implements the interface from which
// cAdvisor's collectors for Prometheus take their values. It is immutable.
type CAdvisor struct {
	metrics    container.MetricSet
	machine    *model.MachineInfo
	containers map[string]*model.ContainerInfo // by path
}

// Metrics returns the metrics that were read.
func (c *CAdvisor) Metrics() container.MetricSet { return c.metrics }

// GetMachineInfo returns the machine. It never fails.
func (c *CAdvisor) GetMachineInfo() (*model.MachineInfo, error) { return c.machine, nil }

// GetVersionInfo returns the versions of the kernel and of the operating system, as in a kubelet.
// It never fails.
func (c *CAdvisor) GetVersionInfo() (*model.VersionInfo, error) {
	return &model.VersionInfo{KernelVersion: facts.KernelVersion(), ContainerOsVersion: facts.ContainerOsVersion()}, nil
}

// GetRequestedContainersInfo returns all cgroups by path, whatever is requested. It never fails.
func (c *CAdvisor) GetRequestedContainersInfo(string, model.RequestOptions) (map[string]*model.ContainerInfo, error) {
	return c.containers, nil
}

// kubeletMetrics are the metrics that a kubelet reads, apart from those that its cAdvisor never
// sets (cpuLoad, app) and the network, which only some cgroups have.
var kubeletMetrics = container.MetricSet{
	container.CpuUsageMetrics:    {},
	container.MemoryUsageMetrics: {},
	container.DiskIOMetrics:      {},
	container.DiskUsageMetrics:   {},
	container.ProcessMetrics:     {},
	container.OOMMetrics:         {},
}

var networkMetrics = container.MetricSet{container.NetworkUsageMetrics: {}}

func union(a, b container.MetricSet) container.MetricSet {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

// ReadCAdvisor reads every cgroup that the options include, now, with what a kubelet's cAdvisor
// reads of it. It takes longer than Read, because it reads the link of each open file to count
// sockets. It reads the cgroups of sandboxes too, with the networks of their pods. If the sandbox is
// not known, the network is that of the pod's cgroup. The error joins all errors; the result has
// what could be read, and is nil only after Close.
func (h *Host) ReadCAdvisor(ctx context.Context) (*CAdvisor, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.closed {
		return nil, fmt.Errorf("read host: %w", os.ErrClosed)
	}
	var errs cgroupfs.ErrorList
	r, _ := h.begin(ctx, &errs)
	metrics := maps.Clone(kubeletMetrics)
	if h.mounts.v2 {
		// On version 1 the kernel has no pressure of cgroups.
		metrics[container.PressureMetrics] = struct{}{}
	}
	out := &CAdvisor{metrics: union(metrics, networkMetrics), machine: h.mu.machine.info, containers: map[string]*model.ContainerInfo{}}
	for i := range r.cgroups {
		if err := ctx.Err(); err != nil {
			errs.Add(fmt.Errorf("read cgroups: %d of %d not read: %w", len(r.cgroups)-i, len(r.cgroups), err))
			break
		}
		one, err := r.readContainer(&r.cgroups[i], metrics)
		errs.Add(err)
		if one != nil {
			out.containers[one.Name] = one
		}
	}
	return out, errs.Err()
}

// readContainer reads one cgroup. It returns nil if the cgroup cannot be read, for example because
// it was removed.
func (r *round) readContainer(at *cgroupDir, metrics container.MetricSet) (*model.ContainerInfo, error) {
	names := r.namer.name(at.path, at.ref)
	options := handlerOptions{rootFS: r.host.options.RootFS, metrics: metrics}
	isSandbox := false
	switch names.entity.Kind {
	case metric.Node:
		options.pid = 1
	case metric.Container:
		options.pid, isSandbox = r.processes[at.path].pid, names.runtime.Sandbox
	case metric.Pod:
		if pid, known := r.podProcess(at); !known {
			options.pid = pid
		}
	}
	if names.entity.Kind != metric.Container || isSandbox {
		options.metrics = union(metrics, networkMetrics)
	}
	machine := r.host.mu.machine
	o, ok := readCgroup(&r.host.mounts, at, machine, options)
	if !ok {
		if !at.stillExists() {
			return nil, nil
		}
		return nil, errors.Join(o.errs...)
	}
	c := &model.ContainerInfo{Spec: o.spec, Stats: []*model.ContainerStats{statsOf(o)}}
	c.Name = string(at.path)
	if names.entity.Kind == metric.Container {
		c.Id, c.Aliases = string(at.ref.ID), []string{string(at.ref.ID), c.Name}
		c.Spec.Image = names.runtime.Image
		if names.runtime.Pod != "" {
			c.Spec.Labels = map[string]string{
				labelNamespace: string(names.runtime.Namespace), labelPod: string(names.runtime.Pod), labelName: names.runtime.Name,
			}
		}
	}
	if names.entity.Kind == metric.Pod {
		c.Stats[0].Processes.Ulimits = nil // those of one of its containers
	}
	if !names.runtime.Created.IsZero() {
		c.Spec.CreationTime, c.Spec.StartTime = names.runtime.Created, c.Spec.CreationTime
	}
	err := errors.Join(o.errs...)
	if names.entity.Kind == metric.Node {
		err = errors.Join(err, (&nodeReader{rootFS: options.rootFS, machine: machine}).addToRoot(c))
	}
	if io := c.Stats[0].DiskIo; io != nil {
		common.AssignDeviceNamesToDiskStats((*common.MachineInfoNamer)(machine.info), io)
	}
	return c, err
}

// statsOf returns the statistics of a cgroup, without those of controllers that were not read. All
// have the time of the CPU counter, from which rates are computed.
func statsOf(o *observation) *model.ContainerStats {
	s := o.stats
	switch {
	case !o.cpu.at.IsZero():
		s.Timestamp, s.Cpu.Usage.Total = o.cpu.at, o.cpu.nanoseconds
	case !o.has(cpuacct):
		s.Cpu = nil
	}
	if !o.has(memory) && o.raw.MemoryStats.PSI == nil {
		s.Memory = nil
	}
	s.OOMEvents = uint64(max(0, o.ooms))
	return s
}

// addToRoot adds what the root cgroup does not have: the capacities of the machine as its limits,
// threads, OOM kills and file systems.
func (n *nodeReader) addToRoot(c *model.ContainerInfo) error {
	proc := path.Join(n.rootFS, "proc")
	var s metric.Sample
	err := errors.Join(n.fillProcesses(&s, proc), n.fillMemory(&s, proc))
	out := c.Stats[0]
	for id, field := range map[metric.ID]*uint64{
		metric.ProcessThreads: &out.Processes.ThreadsCurrent, metric.ProcessLimit: &out.Processes.ThreadsMax,
		metric.MemoryOOMEvents: &out.OOMEvents,
	} {
		if v, ok := s.Values.Get(id); ok {
			*field = uint64(v)
		}
	}
	c.Spec.HasMemory = true
	c.Spec.Memory.Limit, c.Spec.Memory.SwapLimit = n.machine.info.MemoryCapacity, n.machine.info.SwapCapacity
	if n.machine.fs == nil {
		return err // Gaps has the error of refreshMachine
	}
	all, fsErr := n.machine.fs.GetGlobalFsInfo()
	for i := range all {
		out.Filesystem = append(out.Filesystem, filesystemStats(&all[i]))
	}
	return errors.Join(err, fsErr)
}

func filesystemStats(f *fs.Fs) model.FsStats {
	d := &f.DiskStats
	s := model.FsStats{
		Device: f.Device, Type: f.Type.String(), Limit: f.Capacity, Usage: subtract(f.Capacity, f.Free), Available: f.Available,
		ReadsCompleted: d.ReadsCompleted, ReadsMerged: d.ReadsMerged, SectorsRead: d.SectorsRead, ReadTime: d.ReadTime,
		WritesCompleted: d.WritesCompleted, WritesMerged: d.WritesMerged, SectorsWritten: d.SectorsWritten, WriteTime: d.WriteTime,
		IoInProgress: d.IoInProgress, IoTime: d.IoTime, WeightedIoTime: d.WeightedIoTime,
	}
	if f.Inodes != nil && f.InodesFree != nil {
		s.HasInodes, s.Inodes, s.InodesFree = true, *f.Inodes, *f.InodesFree
	}
	return s
}
