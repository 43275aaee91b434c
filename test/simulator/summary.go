package simulator

// The size and free space of a node's disk, the same in every payload.
const (
	diskBytes, diskFree   = 270_553_174_016, 72_338_526_208
	diskInodes, inodeFree = 16_777_216, 16_151_064
)

// appendSummary appends the answer of /stats/summary, or with full unset the
// answer with only_cpu_and_memory=true.
func (n *Node) appendSummary(dst []byte, s *scratch, now int64, full bool) []byte {
	w := &writer{b: dst, pretty: true}
	w.open('{')
	n.summarise(w, now, full)
	w.array("pods")
	for _, p := range n.pods {
		p.summarise(w, s, now, full)
	}
	w.endArray()
	w.end()
	return w.b
}

func (n *Node) summarise(w *writer, now int64, full bool) {
	seen := n.seen(now)
	at := n.moment(n.key, n.boot, seen)
	w.object("node")
	w.string("nodeName", n.Name)
	w.array("systemContainers")
	n.summariseSystem(w, "kubelet", seen, &n.kubelet, full)
	n.summariseSystem(w, "runtime", seen, &n.runtime, full)
	n.summariseSystem(w, "pods", seen, nil, full)
	w.endArray()
	w.time("startTime", n.boot)
	counted := figures{
		stamp: n.clock(at), cpu: n.countedCPU(at), memory: n.memory(at), limit: n.Capacity, psi: n.systemd,
		rate: n.rate(n.key, at, n.boot, n.cpu),
	}
	counted.write(w)
	if full {
		counted.writeIO(w)
		rx, tx := n.network(at)
		writeNetwork(w, n.clock(at), rx, tx, true)
		w.object("fs")
		writeFS(w, n.clock(at), diskBytes-diskFree-used(1<<20, at-n.boot)%(1<<34), diskInodes-inodeFree)
		w.end()
		w.object("runtime")
		for _, fs := range [...]string{"imageFs", "containerFs"} {
			w.object(fs)
			writeFS(w, n.clock(seen), 5_292_032_000, 28_300)
			w.end()
		}
		w.end()
		w.object("rlimit")
		w.time("time", n.clock(seen))
		w.int("maxpid", 32768)
		w.int("curproc", int64(120+3*len(n.pods)))
		w.end()
	}
	writeSwap(w, n.clock(at), true, 0)
	w.end()
}

// summariseSystem writes a system container. Its figures are those of daemon,
// or those of all pods if daemon is nil.
func (n *Node) summariseSystem(w *writer, name string, seen int64, daemon *instance, full bool) {
	k := n.key.with("cgroup " + name)
	at := n.moment(k, n.boot, seen)
	f := figures{stamp: n.clock(at), psi: n.systemd}
	start := n.boot + 25*second
	if daemon == nil {
		f.cpu, f.memory, f.limit = n.podsCPU(at, ""), n.podsMemory(at, ""), n.Capacity
		f.rate = n.rate(k, at, start, func(t int64) int64 { return n.podsCPU(t, "") })
	} else {
		start = daemon.start
		f.cpu, f.memory = daemon.cpu(at), daemon.tide.at(at)
		f.rate = n.rate(k, at, start, daemon.cpu)
	}
	w.item()
	w.string("name", name)
	w.time("startTime", start)
	f.write(w)
	if full {
		f.writeIO(w)
	}
	writeSwap(w, f.stamp, false, 0)
	w.end()
}

func (p *Pod) summarise(w *writer, s *scratch, now int64, full bool) {
	n := p.Node
	s.containers = s.containers[:0]
	for _, c := range p.Containers {
		s.containers = c.read(s.containers, now, false)
	}
	r, ok := p.readPod(now)
	if !ok && len(s.containers) == 0 {
		return
	}
	w.item()
	w.object("podRef")
	w.string("name", p.Name)
	w.string("namespace", p.Namespace)
	w.string("uid", p.ReportedUID())
	w.end()
	w.time("startTime", p.Node.clock(p.start)+p.jitter(p.faults, now))
	w.array("containers")
	for i := range s.containers {
		s.containers[i].summarise(w, p.seen(now), full)
	}
	w.endArray()
	if ok {
		f := figures{
			stamp: r.stamp, cpu: r.cpu, memory: r.memory, limit: p.memoryLimit(), psi: n.systemd && !r.zero,
			rate: n.rate(p.cgroup, r.at, p.start, p.cpu),
		}
		f.write(w)
		if full {
			f.writeIO(w)
			if box, ok := p.readSandbox(now); ok {
				rx, tx := p.network(box.at)
				writeNetwork(w, box.stamp, rx, tx, p.HostNetwork)
			}
			w.object("ephemeral-storage")
			writeFS(w, n.clock(p.seen(now)), 28_672*int64(len(p.Containers)), 10)
			w.end()
			w.object("process_stats")
			w.int("process_count", int64(len(s.containers)))
			w.end()
		}
		writeSwap(w, r.stamp, false, 0)
	}
	w.end()
}

// memoryLimit returns the limit of the pod's cgroup, in bytes: the sum of its
// containers' limits, or 0 if one of them has none.
func (p *Pod) memoryLimit() (sum int64) {
	for _, c := range p.Containers {
		if c.limits.memoryLimit == 0 {
			return 0
		}
		sum += c.limits.memoryLimit
	}
	return sum
}

func (r *reading) summarise(w *writer, seen int64, full bool) {
	n, c := r.pod.Node, r.container
	w.item()
	w.string("name", c.Name)
	w.time("startTime", r.start)
	f := figures{
		stamp: r.stamp, cpu: r.cpu, memory: r.memory, limit: c.limits.memoryLimit, faults: r.cpu / 3_000_000,
		psi: n.systemd && !r.zero,
	}
	if !r.zero {
		f.rate = n.rate(r.run.key, r.at, r.run.from, r.run.cpu)
	}
	f.write(w)
	if full {
		f.writeIO(w)
		for _, fs := range [...]string{"rootfs", "logs"} {
			w.object(fs)
			writeFS(w, n.clock(seen), 20_480, 8)
			w.end()
		}
	}
	writeSwap(w, r.stamp, false, c.limits.memoryLimit)
	w.end()
}

// figures are the CPU and memory of one entity of the summary.
type figures struct {
	stamp             int64
	cpu, rate, memory int64
	limit             int64 // of memory; 0 for none
	faults            int64
	psi               bool // the node has pressure (PSI); otherwise all of it is 0
}

func (f *figures) write(w *writer) {
	w.object("cpu")
	w.time("time", f.stamp)
	w.int("usageNanoCores", f.rate)
	w.int("usageCoreNanoSeconds", f.cpu)
	f.writePSI(w, f.cpu/100)
	w.end()
	w.object("memory")
	w.time("time", f.stamp)
	if f.limit > 0 {
		w.int("availableBytes", max(f.limit-f.memory, 0))
	}
	w.int("usageBytes", f.memory+f.memory/16/page*page)
	w.int("workingSetBytes", f.memory)
	w.int("rssBytes", f.memory-f.memory/8/page*page)
	w.int("pageFaults", f.faults)
	w.int("majorPageFaults", 0)
	f.writePSI(w, f.cpu/2000)
	w.end()
}

func (f *figures) writeIO(w *writer) {
	w.object("io")
	w.time("time", f.stamp)
	f.writePSI(w, f.cpu/500)
	w.end()
}

// writePSI writes the pressure. some is the time in which at least one task
// waited; full is a quarter of it.
func (f *figures) writePSI(w *writer, some int64) {
	if !f.psi {
		some = 0
	}
	w.object("psi")
	for _, level := range [...]struct {
		name  string
		total int64
	}{{"full", some / 4}, {"some", some}} {
		w.object(level.name)
		w.int("total", level.total)
		for _, avg := range [...]string{"avg10", "avg60", "avg300"} {
			w.float(avg, float64(level.total/1e6%200)/100)
		}
		w.end()
	}
	w.end()
}

func writeSwap(w *writer, stamp int64, system bool, limit int64) {
	w.object("swap")
	w.time("time", stamp)
	if system || limit > 0 {
		w.int("swapAvailableBytes", limit)
	}
	w.int("swapUsageBytes", 0)
	w.end()
}

func writeFS(w *writer, stamp, usedBytes, usedInodes int64) {
	w.time("time", stamp)
	w.int("availableBytes", diskFree)
	w.int("capacityBytes", diskBytes)
	w.int("usedBytes", usedBytes)
	w.int("inodesFree", inodeFree)
	w.int("inodes", diskInodes)
	w.int("inodesUsed", usedInodes)
}

func writeNetwork(w *writer, stamp, rx, tx int64, host bool) {
	carried := func(name string, rx, tx int64) {
		w.string("name", name)
		w.int("rxBytes", rx)
		w.int("rxErrors", 0)
		w.int("txBytes", tx)
		w.int("txErrors", 0)
	}
	w.object("network")
	w.time("time", stamp)
	carried("eth0", rx, tx)
	w.array("interfaces")
	w.item()
	carried("eth0", rx, tx)
	w.end()
	if host {
		w.item()
		carried("cni0", tx/2, rx/2)
		w.end()
	}
	w.endArray()
	w.end()
}
