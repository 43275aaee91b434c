package statscontainer

import (
	"strconv"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// psiScale turns PSI totals into nanoseconds.
const psiScale = 1000

// noLimit is above any memory limit: the kernel's word for none.
const noLimit = 1 << 62

// adder appends the values of one container, all read at one time.
type adder struct {
	req    payload.Request
	order  *payload.Order
	batch  *metric.Batch
	entity metric.Entity
	time   int64
	// index of each part's sample, by part.
	index map[string]int32
}

// set stores a value of the container or of a part of it, if it is there and
// such entities have the metric.
func (a *adder) set(part string, id metric.ID, v *uint64) {
	if v != nil {
		a.put(part, id, float64(*v))
	}
}

func (a *adder) put(part string, id metric.ID, v float64) {
	d := id.Describe()
	if !d.Kinds.Has(a.entity.Kind) {
		return
	}
	i, ok := a.index[part]
	if !ok {
		e := a.entity
		e.Part = part
		i = a.order.Add(&a.req, a.batch, &e, d.Group)
		if a.index == nil {
			a.index = map[string]int32{}
		}
		a.index[part] = i
	}
	if i < 0 {
		return
	}
	t := a.time
	if d.Group == metric.Spec {
		t = 0 // the spec has no time
	}
	a.req.Set(&a.batch.Samples[i], id, v, t)
}

// usage stores everything but the network.
func (a *adder) usage(c *info, s *stats) {
	if s.CPU != nil && has(c.Spec.HasCPU) {
		u := &s.CPU.Usage
		a.set("", metric.CPUUsage, u.Total)
		a.set("", metric.CPUUser, u.User)
		a.set("", metric.CPUSystem, u.System)
		if q := s.CPU.CFS; q != nil {
			a.set("", metric.CPUPeriods, q.Periods)
			a.set("", metric.CPUThrottledPeriods, q.ThrottledPeriods)
			a.set("", metric.CPUThrottled, q.ThrottledTime)
		}
		if l := s.CPU.Load; l != nil && *l >= 0 {
			a.put("", metric.CPULoad, float64(*l)/1000)
		}
		a.psi(metric.CPUPressureSome, metric.CPUPressureFull, s.CPU.PSI)
		if q, p := c.Spec.CPU.Quota, c.Spec.CPU.Period; q > 0 && q < noLimit && p > 0 && a.entity.Kind != metric.Node {
			a.put("", metric.CPULimit, float64(q)/float64(p)*1e9)
		}
	}
	if m := s.Memory; m != nil && has(c.Spec.HasMemory) {
		a.set("", metric.MemoryUsage, m.Usage)
		a.set("", metric.MemoryWorkingSet, m.WorkingSet)
		a.set("", metric.MemoryRSS, m.RSS)
		a.set("", metric.MemoryCache, m.Cache)
		a.set("", metric.MemoryMappedFile, m.MappedFile)
		a.set("", metric.MemorySwap, m.Swap)
		a.set("", metric.MemoryFailures, m.Failcnt)
		if h := m.Hierarchical; h != nil {
			a.set("", metric.MemoryPageFaults, h.Faults)
			a.set("", metric.MemoryMajorPageFaults, h.MajorFaults)
		}
		a.set("", metric.MemoryOOMEvents, s.OOMEvents)
		a.psi(metric.MemoryPressureSome, metric.MemoryPressureFull, m.PSI)
		if l := c.Spec.Memory.Limit; l > 0 && l < noLimit && a.entity.Kind != metric.Node {
			a.put("", metric.MemoryLimit, float64(l))
		}
	}
	if p := s.Processes; p != nil {
		a.set("", metric.ProcessCount, p.Count)
		a.set("", metric.ProcessOpenFiles, p.FDs)
		a.set("", metric.ProcessThreads, p.Threads)
		if p.Max > 0 {
			a.put("", metric.ProcessLimit, float64(p.Max))
		}
	}
	a.storage(c, s)
	for _, g := range s.Accelerators {
		part := "accelerator:" + g.ID
		a.set(part, metric.AcceleratorMemoryTotal, g.Total)
		a.set(part, metric.AcceleratorMemoryUsed, g.Used)
		if g.DutyCycle != nil {
			a.put(part, metric.AcceleratorDutyCycle, float64(*g.DutyCycle)/100)
		}
	}
}

// storage stores what concerns file systems and block devices.
func (a *adder) storage(c *info, s *stats) {
	if has(c.Spec.HasFilesystem) {
		var used float64
		for _, f := range s.Filesystem {
			part := "device:" + f.Device
			a.set(part, metric.FilesystemUsage, f.Usage)
			a.set(part, metric.FilesystemLimit, f.Capacity)
			a.set(part, metric.FilesystemAvailable, f.Available)
			if f.HasInodes {
				a.set(part, metric.FilesystemInodes, f.Inodes)
				a.set(part, metric.FilesystemInodesFree, f.InodesFree)
			}
			if f.Usage != nil && a.entity.Kind == metric.Container {
				used += float64(*f.Usage)
				a.put("", metric.FilesystemUsage, used)
			}
		}
	}
	if s.DiskIO == nil || !has(c.Spec.HasDiskIO) {
		return
	}
	var read, written float64
	for _, d := range s.DiskIO.ServiceBytes {
		part := d.Device
		if part == "" {
			part = strconv.FormatUint(d.Major, 10) + ":" + strconv.FormatUint(d.Minor, 10)
		}
		if v, ok := d.Stats["Read"]; ok {
			read += float64(v)
			a.put("device:"+part, metric.DiskReadBytes, float64(v))
			a.put("", metric.DiskReadBytes, read)
		}
		if v, ok := d.Stats["Write"]; ok {
			written += float64(v)
			a.put("device:"+part, metric.DiskWriteBytes, float64(v))
			a.put("", metric.DiskWriteBytes, written)
		}
	}
	a.psi(metric.IOPressureSome, metric.IOPressureFull, s.DiskIO.PSI)
}

// network stores the counters of an interface.
func (a *adder) network(part string, n *iface) {
	a.set(part, metric.NetworkRx, n.Rx)
	a.set(part, metric.NetworkRxErrors, n.RxErrors)
	a.set(part, metric.NetworkTx, n.Tx)
	a.set(part, metric.NetworkTxErrors, n.TxErrors)
}

// psi stores the totals of a pressure.
func (a *adder) psi(some, full metric.ID, p *psi) {
	if p != nil {
		a.put("", some, float64(p.Some.Total)*psiScale)
		a.put("", full, float64(p.Full.Total)*psiScale)
	}
}
