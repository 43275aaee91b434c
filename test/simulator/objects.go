package simulator

import (
	"strconv"
	"time"
)

// appendPods appends the answer of /pods: the pods that the node has at now.
func (n *Node) appendPods(dst []byte, now int64) []byte {
	w := &writer{b: dst}
	w.open('{')
	w.string("kind", "PodList")
	w.string("apiVersion", "v1")
	w.object("metadata")
	w.end()
	w.array("items")
	for _, p := range n.pods {
		if p.bound <= now && now < p.unbound {
			w.item()
			p.object(w, now, Form{})
			w.end()
		}
	}
	w.endArray()
	w.end()
	return w.b
}

// AppendObject appends the Pod as an API server returns it at now, in JSON.
func (p *Pod) AppendObject(dst []byte, now time.Time) []byte {
	return p.AppendAs(dst, Form{Typed: true}, now)
}

func (p *Pod) object(w *writer, now int64, form Form) {
	form.typed(w, "Pod")
	w.object("metadata")
	form.version(w)
	w.string("name", p.Name)
	w.string("namespace", p.Namespace)
	w.string("uid", p.UID())
	w.time("creationTimestamp", p.start)
	if d := holds(p.faults, Terminate, now); d != nil {
		w.time("deletionTimestamp", d.from+gracePeriod*second)
		w.int("deletionGracePeriodSeconds", gracePeriod)
	}
	w.object("labels")
	w.string("app", p.owner.name)
	if hash := p.owner.templateHash(); hash != "" {
		w.string("pod-template-hash", hash)
	}
	w.end()
	if p.hash != "" {
		w.object("annotations")
		w.string("kubernetes.io/config.hash", p.hash)
		w.string("kubernetes.io/config.mirror", p.hash)
		w.exactTime("kubernetes.io/config.seen", p.start)
		w.string("kubernetes.io/config.source", "file")
		w.end()
	}
	w.array("ownerReferences")
	w.item()
	version := "apps/v1"
	if p.owner.kind == "Node" {
		version = "v1"
	}
	w.string("apiVersion", version)
	w.string("kind", p.owner.kind)
	w.string("name", p.owner.name)
	w.string("uid", key(0).with(p.Namespace).with(p.owner.kind).with(p.owner.name).uid())
	w.bool("controller", true)
	w.end()
	w.endArray()
	w.end()
	if form.Metadata {
		return
	}

	w.object("spec")
	p.eachRole(now, "initContainers", "containers", "ephemeralContainers", w, func(c *Container) {
		w.string("name", c.Name)
		w.string("image", c.image())
		if c.role != Ephemeral {
			w.object("resources")
			c.limits.write(w)
			w.end()
		}
		if c.role == Sidecar {
			w.string("restartPolicy", "Always")
		}
		w.string("terminationMessagePath", "/dev/termination-log")
		w.string("terminationMessagePolicy", "File")
		w.string("imagePullPolicy", "IfNotPresent")
	})
	w.string("restartPolicy", "Always")
	w.int("terminationGracePeriodSeconds", gracePeriod)
	w.string("dnsPolicy", "ClusterFirst")
	w.bool("automountServiceAccountToken", false)
	w.string("nodeName", p.Node.Name)
	if p.HostNetwork {
		w.bool("hostNetwork", true)
	}
	w.string("schedulerName", "default-scheduler")
	w.bool("enableServiceLinks", true)
	w.end()
	p.status(w, now)
}

func (r resources) write(w *writer) {
	quantities := func(name string, cpu, memory int64) {
		if cpu == 0 && memory == 0 {
			return
		}
		w.object(name)
		w.string("cpu", strconv.FormatInt(cpu, 10)+"m")
		w.string("memory", strconv.FormatInt(memory, 10))
		w.end()
	}
	quantities("limits", r.cpuLimit, r.memoryLimit)
	quantities("requests", r.cpuRequest, r.memoryRequest)
}

// gracePeriod is the grace period of a deleted pod, in seconds.
const gracePeriod = 30

func (p *Pod) status(w *writer, now int64) {
	if d := holds(p.faults, Terminate, now); d != nil {
		now = d.from - 1 // the API server does not know what has happened since
	}
	if d := holds(p.Node.faults, Reboot, now); d != nil {
		now = d.from - 1
	}
	ready := true
	for _, c := range p.Containers {
		if r := c.current(now); c.required() && (r == nil || !r.alive(now)) {
			ready = false
		}
	}
	w.object("status")
	w.string("phase", p.phase(now))
	w.array("conditions")
	for _, c := range [...]struct {
		name string
		is   bool
	}{{"PodReadyToStartContainers", true}, {"Initialized", true}, {"Ready", ready}, {"ContainersReady", ready}, {"PodScheduled", true}} {
		w.item()
		w.string("type", c.name)
		value := "True"
		if !c.is {
			value = "False"
		}
		w.string("status", value)
		w.time("lastTransitionTime", p.start)
		w.end()
	}
	w.endArray()
	w.string("hostIP", p.Node.Address.String())
	w.array("hostIPs")
	w.item()
	w.string("ip", p.Node.Address.String())
	w.end()
	w.endArray()
	w.string("podIP", p.address.String())
	w.array("podIPs")
	w.item()
	w.string("ip", p.address.String())
	w.end()
	w.endArray()
	w.time("startTime", p.Node.clock(p.start))
	p.eachRole(now, "initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses", w, func(c *Container) { c.status(w, now) })
	w.string("qosClass", p.QoS)
	w.end()
}

func (c *Container) status(w *writer, now int64) {
	run, restarts := c.current(now), int64(-1)
	var before *instance
	for i := range c.runs {
		r := &c.runs[i]
		if r.from > now || r.follows {
			continue
		}
		restarts++
		if run != nil && r.key != run.key {
			before = r
		}
	}
	w.string("name", c.Name)
	alive := run != nil && run.alive(now)
	w.object("state")
	finished := holds(c.faults, Finish, now)
	switch {
	case finished != nil && run != nil:
		finished.terminated(w, c, run)
	case alive:
		w.object("running")
		w.time("startedAt", c.Pod.Node.clock(c.processStart(run)))
		w.end()
	case c.role == Init && run != nil:
		(&condition{}).terminated(w, c, run)
	case run == nil && c.Pod.begun == never:
		waiting(w, "ImagePullBackOff")
	case run == nil:
		waiting(w, "ContainerCreating")
	default:
		waiting(w, "CrashLoopBackOff")
		before = run
	}
	w.end()
	w.object("lastState")
	if before != nil {
		w.object("terminated")
		w.int("exitCode", 1)
		w.string("reason", "Error")
		w.time("startedAt", c.Pod.Node.clock(c.processStart(before)))
		w.time("finishedAt", c.Pod.Node.clock(min(before.until, now)))
		w.string("containerID", "containerd://"+before.id())
		w.end()
	}
	w.end()
	w.bool("ready", alive)
	w.int("restartCount", max(restarts, 0))
	w.string("image", c.image())
	w.string("imageID", "sha256:"+key(0).with(c.image()).id())
	if run != nil {
		w.string("containerID", "containerd://"+run.id())
	}
	w.bool("started", alive)
}

// terminated writes the terminated state of a container that has finished.
func (c *condition) terminated(w *writer, of *Container, run *instance) {
	n := of.Pod.Node
	reason, code := "Completed", int64(0)
	if c.Style == HasFailed {
		reason, code = "Error", 1
	}
	w.object("terminated")
	w.int("exitCode", code)
	w.string("reason", reason)
	w.time("startedAt", n.clock(of.processStart(run)))
	w.time("finishedAt", n.clock(run.until))
	w.string("containerID", "containerd://"+run.id())
	w.end()
}

func waiting(w *writer, reason string) {
	w.object("waiting")
	w.string("reason", reason)
	w.end()
}

// AppendObject appends the Node as an API server returns it at now, in JSON.
// port is the port of its kubelet.
func (n *Node) AppendObject(dst []byte, port int, now time.Time) []byte {
	return n.AppendAs(dst, Form{Typed: true}, port, now)
}

func (n *Node) object(w *writer, port int, now time.Time, form Form) {
	form.typed(w, "Node")
	w.object("metadata")
	form.version(w)
	w.string("name", n.Name)
	w.time("creationTimestamp", n.boot)
	w.object("labels")
	for _, l := range n.labels() {
		w.string(l[0], l[1])
	}
	w.end()
	w.end()
	if form.Metadata {
		return
	}
	w.object("status")
	for _, name := range [...]string{"capacity", "allocatable"} {
		cpu, memory := int64(n.Cores)*1000, n.Capacity
		if name == "allocatable" {
			cpu, memory = cpu-100, memory-256<<20
		}
		w.object(name)
		w.string("cpu", strconv.FormatInt(cpu, 10)+"m")
		w.string("ephemeral-storage", strconv.FormatInt(diskBytes, 10))
		w.string("memory", strconv.FormatInt(memory, 10))
		w.string("pods", strconv.Itoa(max(110, len(n.pods))))
		w.end()
	}
	w.array("conditions")
	w.item()
	w.string("type", "Ready")
	if f := holds(n.faults, NotReady, now.UnixNano()); f != nil {
		w.string("status", "Unknown")
		w.time("lastHeartbeatTime", f.from)
		w.time("lastTransitionTime", f.from)
		w.string("reason", "NodeStatusUnknown")
		w.string("message", "Kubelet stopped posting node status.")
	} else {
		w.string("status", "True")
		w.time("lastHeartbeatTime", now.UnixNano())
		w.time("lastTransitionTime", n.boot)
		w.string("reason", "KubeletReady")
		w.string("message", "kubelet is posting ready status")
	}
	w.end()
	w.endArray()
	w.array("addresses")
	addresses := [][2]string{{"InternalIP", n.Address.String()}, {"Hostname", n.Name}}
	if holds(n.faults, NoAddress, now.UnixNano()) != nil {
		addresses = nil
	}
	for _, a := range addresses {
		w.item()
		w.string("type", a[0])
		w.string("address", a[1])
		w.end()
	}
	w.endArray()
	w.object("daemonEndpoints")
	w.object("kubeletEndpoint")
	w.int("Port", int64(port))
	w.end()
	w.end()
	w.object("nodeInfo")
	for _, v := range [...][2]string{
		{"machineID", n.key.with("machine").hash()}, {"systemUUID", n.key.with("machine").uid()}, {"bootID", n.key.with("boot").uid()},
		{"kernelVersion", "6.12.0"}, {"osImage", "Debian GNU/Linux 12 (bookworm)"}, {"containerRuntimeVersion", "containerd://2.2.0"},
		{"kubeletVersion", "v1.37.2"}, {"kubeProxyVersion", ""}, {"operatingSystem", "linux"}, {"architecture", "amd64"},
	} {
		w.string(v[0], v[1])
	}
	w.end()
	w.end()
}

func (n *Node) labels() [4][2]string {
	return [...][2]string{
		{"kubernetes.io/hostname", n.Name}, {"kubernetes.io/os", "linux"}, {"kubernetes.io/arch", "amd64"},
		{"topology.kubernetes.io/zone", "zone-" + string(rune('a'+n.Index%3))},
	}
}

// Labels returns the Node's labels.
func (n *Node) Labels() map[string]string {
	all := map[string]string{}
	for _, l := range n.labels() {
		all[l[0]] = l[1]
	}
	return all
}
