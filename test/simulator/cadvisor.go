package simulator

import (
	"slices"
	"strings"
)

// A cgroupLine is the input of the lines of /metrics/cadvisor about one cgroup.
type cgroupLine struct {
	kind                        cgroupKind
	container, path, image      string
	name, namespace, pod        string
	stamp, start, cpu, memory   int64
	limits                      resources
	received, sent              int64
	interfaces                  int
	nodeMemory, cores, lastSeen int64
	empty                       bool // no process ever ran in it
}

type cgroupKind uint8

const (
	rootGroup   cgroupKind = iota // the node
	kubeGroup                     // all pods, or those of a QoS class
	podGroup                      // a pod
	sandboxUnit                   // a pod's sandbox
	runUnit                       // a container
)

// image returns a container's image.
func (c *Container) image() string {
	return "images.example/" + c.Pod.owner.name + "/" + c.Name + ":1.4.2"
}

const pauseImage = "images.example/pause:3.10"

// appendCAdvisor appends the answer of /metrics/cadvisor.
func (n *Node) appendCAdvisor(dst []byte, s *scratch, now int64) []byte {
	s.lines = n.cgroupLines(s.lines[:0], s, now)
	dst = appendHeader(dst, "cadvisor_version_info", "A metric with a constant '1' value labeled by kernel version, OS version, docker version, cadvisor version & cadvisor revision.", "gauge")
	dst = append(dst, "cadvisor_version_info{cadvisorRevision=\"\",cadvisorVersion=\"\",dockerVersion=\"\",kernelVersion=\"6.12.0\",osVersion=\"Debian GNU/Linux 12 (bookworm)\"} 1\n"...)
	for i := range cadvisorFamilies {
		if cadvisorFamilies[i].name == "container_sockets" {
			// Families are in the order of their names.
			dst = appendHeader(dst, "container_scrape_error", "1 if there was an error while getting container metrics, 0 otherwise", "gauge")
			dst = append(dst, "container_scrape_error 0\n"...)
		}
		dst = cadvisorFamilies[i].append(dst, s.lines)
	}
	return n.appendMachine(dst)
}

func (n *Node) cgroupLines(lines []cgroupLine, s *scratch, now int64) []cgroupLine {
	seen := n.seen(now)
	last := n.clock(seen)
	at := n.moment(n.key, n.boot, seen)
	rx, tx := n.network(at)
	lines = append(lines, cgroupLine{
		kind: rootGroup, path: "/", stamp: n.clock(at), start: n.boot, cpu: n.countedCPU(at), memory: n.memory(at),
		received: rx, sent: tx, interfaces: 2, nodeMemory: n.Capacity, cores: int64(n.Cores), lastSeen: last,
	})
	for _, q := range [...]string{"", "BestEffort", "Burstable"} {
		path := n.qosPath(q)
		at := n.moment(n.key.with(path), n.boot, seen)
		lines = append(lines, cgroupLine{
			kind: kubeGroup, path: path, stamp: n.clock(at), start: n.boot + 25*second,
			cpu: n.podsCPU(at, q), memory: n.podsMemory(at, q), nodeMemory: n.Capacity, lastSeen: last,
		})
	}
	for _, p := range n.pods {
		if r, ok := p.readPod(now); ok {
			lines = append(lines, r.line(last))
			if q := holds(p.faults, Duplicate, now); q != nil && q.Style == TwoQoS {
				lines = append(lines, p.emptyTwin(&r, q.from, last))
			}
		}
		if r, ok := p.readSandbox(now); ok {
			l := r.line(last)
			l.received, l.sent = p.network(r.at)
			l.interfaces = 1
			if p.HostNetwork {
				l.interfaces = 2
			}
			lines = append(lines, l)
		}
		s.containers = s.containers[:0]
		for _, c := range p.Containers {
			s.containers = c.read(s.containers, now, true)
		}
		for i := range s.containers {
			lines = append(lines, s.containers[i].line(last))
		}
	}
	slices.SortFunc(lines, func(a, b cgroupLine) int {
		if c := strings.Compare(a.container, b.container); c != 0 {
			return c
		}
		return strings.Compare(a.path, b.path)
	})
	return lines
}

// emptyTwin returns the pod's empty cgroup in another QoS class. made is its
// start time.
func (p *Pod) emptyTwin(r *reading, made, last int64) cgroupLine {
	return cgroupLine{
		kind: podGroup, path: p.path(true), namespace: p.Namespace, pod: p.Name,
		stamp: r.stamp, start: made, lastSeen: last, empty: true,
	}
}

func (r *reading) line(last int64) cgroupLine {
	l := cgroupLine{
		kind: podGroup, path: r.path(), namespace: r.pod.Namespace, pod: r.pod.Name,
		stamp: r.stamp, start: r.start, cpu: r.cpu, memory: r.memory, lastSeen: last,
	}
	switch {
	case r.container != nil:
		l.kind, l.container, l.image, l.name = runUnit, r.container.Name, r.container.image(), r.run.id()
		l.limits = r.container.limits
	case r.run != nil:
		l.kind, l.image, l.name = sandboxUnit, pauseImage, r.run.id()
	}
	return l
}

// family is a metric of /metrics/cadvisor. Labels are in alphabetical order:
// container, then one of early, id, image, then the interface, name, namespace,
// pod, then one of late.
type family struct {
	name, help, typ string
	early, late     []string // one label each, such as `cpu="total"`
	network         bool     // it has a line for each interface
	unstamped       bool
	only            func(*cgroupLine) bool
	// value returns the value of a line. early is an index into the labels in
	// early, or the index of the interface; late is an index into late.
	value func(l *cgroupLine, early, late int) float64
}

var none = []string{""}

func (f *family) append(dst []byte, lines []cgroupLine) []byte {
	header := len(dst)
	dst = appendHeader(dst, f.name, f.help, f.typ)
	begin := len(dst)
	early, late := f.early, f.late
	if early == nil {
		early = none
	}
	if late == nil {
		late = none
	}
	for i := 0; i < len(lines); {
		j := i
		for j < len(lines) && lines[j].container == lines[i].container {
			j++
		}
		for e := range early {
			for k := i; k < j; k++ {
				l := &lines[k]
				if f.only != nil && !f.only(l) || l.empty && f.name == "container_cpu_usage_seconds_total" {
					continue
				}
				for n := range late {
					if !f.network {
						dst = f.appendLine(dst, l, early[e], "", late[n], f.value(l, e, n))
						continue
					}
					for x := range l.interfaces {
						name := interfaceNames[len(interfaceNames)-l.interfaces+x]
						dst = f.appendLine(dst, l, early[e], name, late[n], f.value(l, l.interfaces-1-x, n))
					}
				}
			}
		}
		i = j
	}
	if len(dst) == begin {
		return dst[:header] // a family without lines has no header
	}
	return dst
}

// interfaceNames are the interfaces of a node; a sandbox has only the last one.
// The index that value gets is 0 for eth0 and 1 for cni0.
var interfaceNames = [...]string{"cni0", "eth0"}

func (f *family) appendLine(dst []byte, l *cgroupLine, early, iface, late string, v float64) []byte {
	dst = append(dst, f.name...)
	dst = append(dst, `{container="`...)
	dst = append(dst, l.container...)
	if early != "" {
		dst = append(dst, `",`...)
		dst = append(dst, early...)
		dst = append(dst, `,id="`...)
	} else {
		dst = append(dst, `",id="`...)
	}
	dst = append(dst, l.path...)
	dst = append(dst, `",image="`...)
	dst = append(dst, l.image...)
	if iface != "" {
		dst = append(dst, `",interface="`...)
		dst = append(dst, iface...)
	}
	dst = append(dst, `",name="`...)
	dst = append(dst, l.name...)
	dst = append(dst, `",namespace="`...)
	dst = append(dst, l.namespace...)
	dst = append(dst, `",pod="`...)
	dst = append(dst, l.pod...)
	dst = append(dst, '"')
	if late != "" {
		dst = append(dst, ',')
		dst = append(dst, late...)
	}
	dst = append(dst, "} "...)
	dst = appendFloat(dst, v)
	if f.unstamped {
		return append(dst, '\n')
	}
	if f.name == "container_last_seen" {
		return appendStamp(dst, l.lastSeen)
	}
	return appendStamp(dst, l.stamp)
}

func (n *Node) appendMachine(dst []byte) []byte {
	ids := `{boot_id="` + n.key.with("boot").uid() + `",machine_id="` + n.key.with("machine").hash() + `",system_uuid="` + n.key.with("machine").uid() + `"} `
	machine := func(name, help string, v float64) {
		dst = appendHeader(dst, name, help, "gauge")
		dst = append(dst, name...)
		dst = append(dst, ids...)
		dst = appendFloat(dst, v)
		dst = append(dst, '\n')
	}
	machine("machine_cpu_books", "Number of CPU books.", 0)
	machine("machine_cpu_cores", "Number of logical CPU cores.", float64(n.Cores))
	machine("machine_cpu_drawers", "Number of CPU drawers.", 0)
	machine("machine_cpu_physical_cores", "Number of physical CPU cores.", float64(n.Cores))
	machine("machine_cpu_sockets", "Number of CPU sockets.", 1)
	machine("machine_memory_bytes", "Amount of memory installed on the machine.", float64(n.Capacity))
	machine("machine_nvm_avg_power_budget_watts", "NVM power budget.", 0)
	dst = append(dst, "# HELP machine_scrape_error 1 if there was an error while getting machine metrics, 0 otherwise.\n# TYPE machine_scrape_error gauge\nmachine_scrape_error 0\n"...)
	machine("machine_swap_bytes", "Amount of swap memory available on the machine.", 0)
	return dst
}
