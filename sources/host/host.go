//go:build linux

package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/cadvisor/lib/container/common"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// Host reads this machine. Its methods may be called concurrently; one read runs at a time. It
// starts no goroutine, and keeps only the connection to containerd open between reads.
type Host struct {
	options Options
	mounts  cgroupMounts
	// ownPIDs is set if weir does not see the processes of the host.
	ownPIDs bool

	mu struct {
		sync.Mutex
		closed  bool
		machine *machine
		looked  time.Time // the time at which machine was read
		runtime *containerd
		// gaps are the texts that Gaps returns, by subject.
		gaps map[string]string
	}
}

// New finds the cgroup hierarchies. It fails if there are none, or if the node has no name. Gaps
// returns anything else that is missing.
func New(o Options) (*Host, error) {
	o, err := o.withDefaults(os.Hostname)
	if err != nil {
		return nil, err
	}
	m, err := findMounts()
	if err != nil {
		return nil, err
	}
	boot, err := bootTime()
	if err != nil {
		return nil, err
	}
	if data, err := os.ReadFile(path.Join(o.RootFS, "proc/pressure/cpu")); err == nil {
		m.noCPUFull = !hasFull(data)
	}
	h := &Host{options: o, mounts: m, ownPIDs: readPIDNamespace().isOwn()}
	h.mu.machine = &machine{boot: boot}
	h.mu.runtime = newContainerd(o.Containerd, o.ContainerdNamespace, o.Facts != nil)
	h.mu.gaps = map[string]string{}
	for _, gap := range m.missingControllers() {
		h.mu.gaps[gap] = gap
	}
	h.mu.gaps["load"] = "cpu/load: cAdvisor's library does not read it (it needs the kernel's taskstats)"
	if _, err := os.Stat(path.Join(o.RootFS, "proc/pressure")); err != nil {
		h.mu.gaps["pressure"] = "pressure (PSI): this kernel does not measure it (no /proc/pressure)"
	}
	if h.ownPIDs {
		h.mu.gaps["processes"] = "weir has a PID namespace of its own (a pod without hostPID): pods' networks, open files and, with cgroup version 1, numbers of processes cannot be read"
	}
	if os.Geteuid() != 0 {
		h.mu.gaps["user"] = "not root: the open files and networks of other users' processes cannot be read"
	}
	h.mu.runtime.learnNames(context.Background(), nil, time.Now())
	return h, nil
}

// hasFull reports whether a pressure file has the time in which all threads wait.
func hasFull(data []byte) bool { return bytes.Contains(data, []byte("\nfull ")) }

// Close ends the connection to containerd. Later reads return an error.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.closed {
		return nil
	}
	h.mu.closed = true
	return h.mu.runtime.close()
}

// Gaps returns sorted sentences about what a Host cannot read on this machine, with this kernel,
// user or runtime. It is the state of the last read.
func (h *Host) Gaps() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	gaps := slices.Collect(maps.Values(h.mu.gaps))
	if g := h.mu.runtime.gap; g != "" {
		gaps = append(gaps, g)
	}
	slices.Sort(gaps)
	return gaps
}

// Read reads the node and every cgroup that the options include, and adds their samples to b.
// Samples are sorted by cgroup path, each followed by its parts. A pod's network is read from one
// of its processes. b is Exhaustive if no cgroup was missed. The error is a *metric.ReadError that
// joins all errors.
func (h *Host) Read(ctx context.Context, b *metric.Batch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.closed {
		return metric.ReadErrorf(metric.NodeScrapeError, "read host: %w", os.ErrClosed)
	}
	b.Resolution = time.Nanosecond
	var errs cgroupfs.ErrorList
	r, complete := h.begin(ctx, &errs)
	b.Cores = float64(h.mu.machine.info.NumCores)
	b.Exhaustive = complete // whether every cgroup has a sample
	for i := range r.cgroups {
		if err := ctx.Err(); err != nil {
			errs.Add(fmt.Errorf("read cgroups: %d of %d not read: %w", len(r.cgroups)-i, len(r.cgroups), err))
			b.Exhaustive = false
			break
		}
		missed, err := r.addSample(b, &r.cgroups[i])
		errs.Add(err)
		b.Exhaustive = b.Exhaustive && !missed
	}
	return readError(ctx, &errs)
}

// begin lists the cgroups to read, counts their processes and asks for their names. complete is
// false if a cgroup was missed.
func (h *Host) begin(ctx context.Context, errs *cgroupfs.ErrorList) (r *round, complete bool) {
	r = &round{host: h, now: time.Now()}
	h.refreshMachine(r.now)
	var listErrs, countErrs []error
	r.cgroups, listErrs = listCgroups(&h.mounts, &h.options)
	errs.Add(listErrs...)
	complete = len(listErrs) == 0
	// The number of processes includes the cgroups below, so all of them are needed.
	// Version 1 lists no process of another PID namespace, and version 2 lists them as 0.
	r.processes, countErrs = countProcesses(r.cgroups, path.Join(h.options.RootFS, "proc"), h.ownPIDs && !h.mounts.v2)
	errs.Add(countErrs...)
	if over := len(r.cgroups) - h.options.MaxCgroups; over > 0 {
		errs.Add(fmt.Errorf("report cgroups: %d of %d are over the limit (raise max-cgroups, or select with prefix)", over, len(r.cgroups)))
		r.cgroups, complete = r.cgroups[:h.options.MaxCgroups], false
	}
	r.learnNames(ctx)
	return r, complete
}

// refreshMachine reads the machine again if the last result is older than machineAge.
func (h *Host) refreshMachine(now time.Time) {
	if h.mu.machine.info != nil && now.Sub(h.mu.looked) < machineAge {
		return
	}
	m, err := readMachine(h.options.RootFS, h.mu.machine.boot)
	h.mu.machine, h.mu.looked = m, now
	delete(h.mu.gaps, "machine")
	if err != nil {
		h.mu.gaps["machine"] = "the machine: " + err.Error()
	}
}

// round is the state of one read.
type round struct {
	host      *Host
	processes processCounts
	cgroups   []cgroupDir // all listed cgroups, sorted by path
	namer     cgroupNamer
	now       time.Time
}

// learnNames asks the runtime for the names of new containers, and takes those of the cluster facts.
func (r *round) learnNames(ctx context.Context) {
	ids := map[metric.ContainerID]bool{}
	for i := range r.cgroups {
		if ref := &r.cgroups[i].ref; ref.Kind == podcgroup.Container {
			ids[ref.ID] = true
		}
	}
	runtime := r.host.mu.runtime
	runtime.learnNames(ctx, ids, r.now)
	var facts *cluster.Facts
	if r.host.options.Facts != nil {
		facts = r.host.options.Facts()
	}
	r.namer = newCgroupNamer(r.host.options.Node, runtime.known, facts.PodsByUID(r.host.options.Node))
}

// addSample adds the samples of one cgroup to b. missed is true if the cgroup exists but has no
// sample.
func (r *round) addSample(b *metric.Batch, at *cgroupDir) (missed bool, err error) {
	names := r.namer.name(at.path, at.ref)
	if names.runtime.Sandbox {
		return false, nil // its network is in the pod's sample
	}
	o, ok := readCgroup(&r.host.mounts, at, r.host.mu.machine, sampleOptions)
	if !ok && !at.stillExists() {
		return false, nil // the cgroup was removed, which is not an error
	}
	if err = errors.Join(o.errs...); !ok {
		return true, err
	}

	i := len(b.Samples)
	s := b.Add(names.entity)
	s.Instance = names.instance
	s.Instance.Path, s.Instance.Inode = at.path, at.inode
	count := r.processes[at.path]
	s.Instance.Processes = count.processes
	if count.processes >= 0 {
		setValue(s, metric.ProcessCount, uint64(count.processes))
		s.Times[metric.Process] = r.now.UnixNano()
	}
	if count.files >= 0 {
		setValue(s, metric.ProcessOpenFiles, uint64(count.files))
	}
	if names.entity.Kind == metric.Node {
		n := nodeReader{rootFS: r.host.options.RootFS, machine: r.host.mu.machine}
		return false, errors.Join(err, n.read(b, i, o))
	}
	r.setStart(s, &names, o)
	fillCgroup(s, o)
	if o.stats.DiskIo != nil {
		common.AssignDeviceNamesToDiskStats((*common.MachineInfoNamer)(r.host.mu.machine.info), o.stats.DiskIo)
	}
	devices := fillIO(s, o, r.host.mu.machine.isDisk)
	completeTimes(s, time.Now())
	for _, d := range devices {
		name := cmp.Or(d.Device, fmt.Sprintf("%d:%d", d.Major, d.Minor))
		fillDisk(addPart(b, i, "device:"+name), d.Stats["Read"], d.Stats["Write"], time.Unix(0, o.times[blkio]))
	}
	if names.entity.Kind == metric.Pod {
		r.addNetwork(b, i, at)
	}
	return false, err
}

// setStart sets the start of the instance. It comes from the runtime, or else from the cgroup's
// directory.
func (r *round) setStart(s *metric.Sample, names *cgroupNames, o *observation) {
	if at := names.runtime.Created; names.entity.Kind == metric.Container && !at.IsZero() {
		s.Instance.Start, s.Instance.Origin = at.UnixNano(), metric.StartRuntime
		return
	}
	if at := o.spec.CreationTime; !at.IsZero() {
		s.Instance.Start, s.Instance.Origin = at.UnixNano(), metric.StartCgroup
	}
}

// addNetwork adds a pod's network to its sample at index i, unless the pod uses the host's
// network.
func (r *round) addNetwork(b *metric.Batch, i int, at *cgroupDir) {
	pid, _ := r.podProcess(at)
	if pid == 0 {
		return
	}
	rootFS := r.host.options.RootFS
	same, err := sameNetwork(rootFS, pid)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			r.host.mu.gaps["pod network"] = "pods' networks: the network namespaces of processes cannot be read (" + err.Error() + ")"
		}
		return
	}
	if same {
		return
	}
	if t, err := readTraffic(rootFS, pid); err == nil { // otherwise the process has ended
		addTraffic(b, i, &t, func(name string) bool { return name == "eth0" }) // as network plugins name it
	}
}

// podProcess returns a process of a pod, or 0 if it has none. It is a process of the sandbox if the
// sandbox is known, because a sandbox runs as long as the pod.
func (r *round) podProcess(pod *cgroupDir) (pid int, isSandbox bool) {
	prefix := string(pod.path) + "/"
	first, _ := slices.BinarySearchFunc(r.cgroups, prefix, func(at cgroupDir, p string) int { return strings.Compare(string(at.path), p) })
	for _, p := range r.cgroups[first:] {
		if !strings.HasPrefix(string(p.path), prefix) {
			break
		}
		if p.ref.ID == "" || r.processes[p.path].pid == 0 {
			continue
		}
		pid = r.processes[p.path].pid
		if r.namer.containers[p.ref.ID].Sandbox {
			return pid, true
		}
	}
	return pid, false
}

// sameNetwork reports whether a process is in the host's network namespace. It compares a file that
// each namespace has once, because the link ns/net of another process needs CAP_SYS_PTRACE, which an
// agent in a DaemonSet does not have.
func sameNetwork(rootFS string, pid int) (bool, error) {
	a, err := os.Stat(path.Join(rootFS, "proc", strconv.Itoa(pid), "net/dev"))
	if err != nil {
		return false, err
	}
	b, err := os.Stat(path.Join(rootFS, "proc/1/net/dev"))
	if err != nil {
		return false, err
	}
	return os.SameFile(a, b), nil
}

// readError returns the errors of a read as a *metric.ReadError; nil if there are none.
func readError(ctx context.Context, errs *cgroupfs.ErrorList) error {
	err := errs.Err()
	if err == nil {
		return nil
	}
	reason := metric.NodeScrapeError
	if ctx.Err() != nil {
		reason = metric.NodeTimeout
	}
	return &metric.ReadError{Reason: reason, Err: err}
}
