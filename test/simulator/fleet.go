package simulator

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// never is a time after all others, in nanoseconds since the Unix epoch. It is
// the end of everything that does not end.
const never = math.MaxInt64

// A Fleet is a number of simulated nodes. Only Pod.Adopt and churn change it.
// Several goroutines may use it; with churn, they may only use the methods of
// Fleet and Node, and AppendAs, AppendObject, Bound and Version.
type Fleet struct {
	options Options
	seed    key
	nodes   []*Node
	byName  map[string]*Node
	scratch sync.Pool // of *scratch
}

// Node is a simulated node and its kubelet.
type Node struct {
	Name     string
	Address  netip.Addr
	Cores    int
	Capacity int64 // bytes of memory
	Index    int   // from 0
	fleet    *Fleet
	key      key
	boot     int64
	// systemd says that the node names cgroups as the systemd driver does, and has
	// cgroup v2 with pressure (PSI).
	systemd         bool
	kubelet, kernel instance
	runtime         instance
	pods            []*Pod       // every pod that the node ever ran, oldest generation first
	byContainer     []*Container // in the order of /metrics/resource
	byPod           []*Pod       // in the order of /metrics/resource
	faults          []condition

	mu    sync.RWMutex // guards pods, their order and their instances, which churn changes
	churn churn
}

// Pod is a simulated pod of one UID. A pod that is deleted and created again
// under the same name is two Pods.
type Pod struct {
	Node            *Node
	Namespace, Name string
	Containers      []*Container
	HostNetwork     bool
	QoS             string // Guaranteed, Burstable or BestEffort
	owner           owner
	hash            string // of a static pod's manifest
	uid             atomic.Pointer[string]
	key             key
	sandbox         instance
	cgroup          key // of its housekeeping
	rx, tx          wave
	// The API server has the pod bound to the node in [bound, unbound), and reports
	// start as its start time. The interval is empty if the API server does not
	// have the pod. The pod's cgroup exists in [begun, gone).
	start, begun, gone, bound, unbound int64
	faults                             []condition
	address                            netip.Addr
}

// Container is a container of a Pod, and all its runs.
type Container struct {
	Pod    *Pod
	Name   string
	key    key
	peak   int64 // nanocores
	limit  int64 // bytes
	limits resources
	runs   []instance // by start
	role   Style      // NoStyle for a regular container
	faults []condition
}

// resources are requests and limits in millicores and bytes; 0 is none.
type resources struct{ cpuRequest, cpuLimit, memoryRequest, memoryLimit int64 }

// instance is one life of a counter: a run of a container, a sandbox, or the
// cgroup of a daemon. Times are nanoseconds since the Unix epoch.
type instance struct {
	key   key
	start int64 // as reported
	from  int64 // when the counter was 0: start, or a reset
	until int64 // when the cgroup is removed, or the next reset
	wave  wave
	tide  tide
	// follows says that this is the same container as the run before it, after a
	// reset of its counter.
	follows bool
}

func newInstance(k key, start, peak, memory int64) instance {
	return instance{key: k, start: start, from: start, until: never, wave: newWave(k, peak), tide: newTide(k, memory)}
}

// id returns the container ID. It is computed each time, because there may be
// millions.
func (i *instance) id() string { return i.key.id() }

// cpu returns the counter at t. It does not change after the instance has
// ended.
func (i *instance) cpu(t int64) int64 { return i.wave.at(min(t, i.until) - i.from) }

// alive reports whether the instance's cgroup exists at t.
func (i *instance) alive(t int64) bool { return i.from <= t && t < i.until }

// New builds a fleet.
func New(options Options) (*Fleet, error) {
	o, err := options.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("build fleet: %w", err)
	}
	f := &Fleet{options: o, seed: key(mix(o.Seed + 1)), byName: map[string]*Node{}}
	f.scratch.New = func() any { return new(scratch) }
	taken := map[string]bool{}
	for i := range o.Nodes {
		n := f.newNode(i)
		f.nodes = append(f.nodes, n)
		f.byName[n.Name] = n
		for p := range o.Pods {
			n.pods = append(n.pods, f.newPod(n, p, taken))
		}
	}
	if err := f.apply(o.Faults); err != nil {
		return nil, fmt.Errorf("build fleet: %w", err)
	}
	for _, n := range f.nodes {
		n.order()
		n.startChurn(o.Churn)
	}
	return f, nil
}

func (f *Fleet) newNode(i int) *Node {
	base := netip.MustParseAddr("127.1.0.0").As4()
	a := uint32(base[0])<<24 | uint32(base[1])<<16 + uint32(i) + 1
	n := &Node{
		Index:    i,
		Name:     fmt.Sprintf("node-%04d", i+1),
		Address:  netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)}),
		Cores:    f.options.Cores,
		Capacity: int64(f.options.Cores) * 4 << 30,
		fleet:    f,
		systemd:  i%2 == 1,
	}
	if f.options.NamesAreAddresses {
		n.Name = n.Address.String()
	}
	n.key = f.seed.with("node").num(int64(i))
	n.boot = f.options.Start.UnixNano() - n.key.between("boot", 4*86400*second, 9*86400*second)
	daemon := func(name string, share int64) instance {
		return newInstance(n.key.with(name), n.boot+20*second, n.peak(share), n.Capacity/64)
	}
	n.kubelet, n.runtime = daemon("kubelet", 30), daemon("runtime", 30)
	n.kernel = newInstance(n.key.with("kernel"), n.boot, n.peak(40), n.Capacity/32)
	return n
}

// peak returns thousandths of the node's cores, in nanocores.
func (n *Node) peak(share int64) int64 { return int64(n.Cores) * 1_000_000 * share }

func (f *Fleet) newPod(n *Node, p int, taken map[string]bool) *Pod {
	k := n.key.with("pod").num(int64(p))
	pod := &Pod{Node: n, key: k, gone: never, unbound: never}
	for attempt := 0; ; attempt++ {
		pod.Namespace, pod.Name, pod.owner = nameOf(k, n.Name, n.Index, p, attempt)
		if full := pod.Namespace + "/" + pod.Name; !taken[full] {
			taken[full] = true
			break
		}
	}
	pod.HostNetwork = p < 2
	pod.QoS = "Burstable"
	if p > 1 {
		switch k.between("qos", 0, 8) {
		case 0:
			pod.QoS = "Guaranteed"
		case 1:
			pod.QoS = "BestEffort"
		}
	}
	if pod.owner.kind == "Node" {
		pod.hash = k.hash()
	}
	pod.address = netip.AddrFrom4([4]byte{10, byte(n.Index >> 8), byte(n.Index), byte(p%250 + 2)})
	if pod.HostNetwork {
		pod.address = n.Address
	}
	start := f.options.Start.UnixNano() - k.between("age", 600*second, 3*86400*second)
	pod.live(start, k)
	for c := range f.options.Containers {
		ck := k.with("container").num(int64(c))
		memory := n.Capacity * 7 / 10 / int64(f.options.Pods*f.options.Containers)
		container := &Container{
			Pod: pod, Name: containerName(c), key: ck,
			peak:  n.peak(800) / int64(f.options.Pods*f.options.Containers),
			limit: memory,
		}
		container.limits = limitsFor(pod.QoS, ck, container.peak, memory)
		first := start + ck.between("starts", second/2, 4*second)
		container.runs = []instance{newInstance(ck.num(0), first, container.peak, memory)}
		pod.Containers = append(pod.Containers, container)
	}
	return pod
}

// live gives a pod its UID, sandbox and network from start on.
func (p *Pod) live(start int64, k key) {
	uid := k.uid()
	p.uid.Store(&uid)
	p.cgroup = k.with("cgroup")
	p.start, p.begun, p.bound = start, start, start
	p.sandbox = newInstance(k.with("sandbox"), start+k.between("sandbox", second/10, second/3), 100_000, 4<<20)
	p.rx, p.tx = newWave(k.with("rx"), 4<<20), newWave(k.with("tx"), 1<<20)
}

// again returns a new pod that has the name of p from start on. It has another
// UID and other containers.
func (p *Pod) again(start int64) *Pod {
	k := p.key.with("again").num(start)
	n := &Pod{
		Node: p.Node, Namespace: p.Namespace, Name: p.Name, HostNetwork: p.HostNetwork, QoS: p.QoS,
		owner: p.owner, hash: p.hash, key: k, gone: never, unbound: never, address: p.address,
	}
	n.live(start, k)
	for i, c := range p.Containers {
		nc := &Container{Pod: n, Name: c.Name, key: k.with("container").num(int64(i)), peak: c.peak, limit: c.limit, limits: c.limits}
		first := start + nc.key.between("starts", second/2, 4*second)
		nc.runs = []instance{newInstance(nc.key.num(0), first, c.peak, c.limit)}
		n.Containers = append(n.Containers, nc)
	}
	return n
}

func limitsFor(qos string, k key, peak, memory int64) resources {
	cpu := max(peak/1_000_000, 1)
	memory = memory / page * page
	switch qos {
	case "Guaranteed":
		return resources{cpu, cpu, memory, memory}
	case "BestEffort":
		return resources{}
	}
	r := resources{cpuRequest: max(cpu/4, 1), memoryRequest: memory / 2 / page * page}
	if k.between("limited", 0, 2) == 0 {
		r.cpuLimit, r.memoryLimit = cpu, memory
	}
	return r
}

// order sorts the pods and containers in the order of /metrics/resource.
func (n *Node) order() {
	n.byPod = slices.Clone(n.pods)
	n.byContainer = n.byContainer[:0]
	for _, p := range n.pods {
		n.byContainer = append(n.byContainer, p.Containers...)
	}
	byName := func(a, b *Pod) int {
		if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	}
	slices.SortStableFunc(n.byPod, byName)
	slices.SortStableFunc(n.byContainer, func(a, b *Container) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return byName(a.Pod, b.Pod)
	})
}

// Nodes returns the nodes in order of their addresses. The slice must not be
// changed.
func (f *Fleet) Nodes() []*Node { return f.nodes }

// Node returns the node of that name, or nil.
func (f *Fleet) Node(name string) *Node { return f.byName[name] }

// At returns the node that has the address, or nil.
func (f *Fleet) At(a netip.Addr) *Node {
	b := a.Unmap().As4()
	i := int(b[0])<<24 | int(b[1])<<16 | int(b[2])<<8 | int(b[3])
	i -= 127<<24 | 1<<16 | 1
	if i < 0 || i >= len(f.nodes) {
		return nil
	}
	return f.nodes[i]
}

// Start returns the moment that the faults' times are relative to.
func (f *Fleet) Start() time.Time { return f.options.Start }

// Pods returns every pod that the node ever runs, at any time, also pods that
// later take the name of another. With churn, it returns those that the node
// remembers. The slice must not be changed.
func (n *Node) Pods() []*Pod {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.pods
}

// PodsAt appends to dst the pods that the API server has on the node at now.
// The order is not defined.
func (n *Node) PodsAt(dst []*Pod, now time.Time) []*Pod {
	t := now.UnixNano()
	n.advance(t)
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, p := range n.pods {
		if p.bound <= t && t < p.unbound {
			dst = append(dst, p)
		}
	}
	return dst
}

// Labels returns the Pod's labels.
func (p *Pod) Labels() map[string]string {
	labels := map[string]string{"app": p.owner.name}
	if hash := p.owner.templateHash(); hash != "" {
		labels["pod-template-hash"] = hash
	}
	return labels
}

// UID returns the pod's metadata.uid.
func (p *Pod) UID() string { return *p.uid.Load() }

// Adopt gives the pod the UID that an API server has given it.
func (p *Pod) Adopt(uid string) { p.uid.Store(&uid) }

// ReportedUID returns the UID that the kubelet reports for the pod: for a
// static pod, the hash of its manifest.
func (p *Pod) ReportedUID() string {
	if p.hash != "" {
		return p.hash
	}
	return p.UID()
}

// Bound reports whether the API server has the pod at t.
func (p *Pod) Bound(t time.Time) bool {
	p.Node.mu.RLock()
	defer p.Node.mu.RUnlock()
	return p.bound <= t.UnixNano() && t.UnixNano() < p.unbound
}
