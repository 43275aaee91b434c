// Package podcgroup parses the path of a cgroup. It returns the pod and the container that the
// cgroup belongs to, for both cgroup drivers of the kubelet and the common container runtimes. It
// does no I/O. A path does not prove that the container exists: a leftover cgroup keeps its name.
//
// The formats:
//
//	/kubepods/burstable/pod<uid>/<id>                                    cgroupfs
//	/kubepods/pod<uid>/crio-<id>                                         cgroupfs, CRI-O
//	/kubepods.slice/kubepods-burstable.slice/
//	  kubepods-burstable-pod<uid_with_underscores>.slice/
//	  cri-containerd-<id>.scope                                          systemd
//	/<anything>/kubepods-burstable-pod<uid_>.slice:cri-containerd:<id>   containerd on the
//	                                                                     other driver than the kubelet
//	/docker/<id>, /system.slice/docker-<id>.scope                        a container without a pod
//
// The kubepods cgroup may be below others, as with kind ("/docker/<id>/kubelet/kubepods/...") or
// with --cgroup-root ("/kubelet.slice/kubelet-kubepods.slice/..."). If a path has two of them, the
// outer one counts: the inner one belongs to a cluster inside a container.
package podcgroup

import (
	"cmp"
	"path"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// Kind is the kind of a cgroup.
type Kind uint8

// The kinds of cgroup.
const (
	// Other is a cgroup that belongs to no container and no pod.
	Other Kind = iota
	// Root is the cgroup above all pods: /kubepods.
	Root
	// Class is the cgroup above the pods of a quality-of-service class.
	Class
	// Pod is a pod's own cgroup.
	Pod
	// Container is the cgroup of a container itself. A sandbox is a container here.
	Container
	// Inside is a cgroup below a pod's cgroup that is not the cgroup of a container itself: one that
	// was created inside a container, or that of a helper process of a runtime.
	Inside
	// Standalone is a container that belongs to no pod.
	Standalone
)

// QoS is a quality-of-service class, as in the API. It is empty if the path has none.
type QoS string

// The classes.
const (
	Guaranteed QoS = "Guaranteed"
	Burstable  QoS = "Burstable"
	BestEffort QoS = "BestEffort"
)

// Driver is a cgroup driver of the kubelet. It is empty if the path does not show it.
type Driver string

// The drivers.
const (
	Cgroupfs Driver = "cgroupfs"
	Systemd  Driver = "systemd"
)

// Ref is a parsed path. Fields that do not apply are empty.
type Ref struct {
	Kind   Kind
	Driver Driver
	QoS    QoS
	// UID is the UID of the pod. For a static pod it is the hash of its manifest with 32 digits; see
	// NormalizeUID.
	UID metric.PodUID
	// ID is the ID of the container, also for a cgroup inside a container.
	ID metric.ContainerID
	// Runtime is the prefix of the container's ID: "cri-containerd", "crio", "docker"; empty
	// for an ID without a prefix.
	Runtime string
}

// Parse parses p. A path that it does not recognise is of Kind Other, with no other field set.
func Parse(p metric.CgroupPath) Ref {
	parts := strings.FieldsFunc(path.Clean("/"+string(p)), func(c rune) bool { return c == '/' })
	for i, part := range parts {
		if r, ok := parseColon(part); ok {
			return r.withBelow(parts[i+1:])
		}
		if part == "kubepods" {
			return parseTree(Cgroupfs, "", parts[i+1:])
		}
		if name, ok := strings.CutSuffix(part, "kubepods.slice"); ok && sliceBelow(name, parts, i) {
			return parseTree(Systemd, name, parts[i+1:])
		}
	}
	if n := len(parts); n > 0 {
		if runtime, id, ok := parseContainer(parts[n-1]); ok {
			return Ref{Kind: Standalone, ID: id, Runtime: runtime}
		}
	}
	return Ref{}
}

// sliceBelow reports whether parts[i], which has a name that starts with prefix, is in the slice
// where systemd puts it: "kubelet-" in "kubelet.slice".
func sliceBelow(prefix string, parts []string, i int) bool {
	if prefix == "" {
		return true
	}
	parent, ok := strings.CutSuffix(prefix, "-")
	return ok && parent != "" && i > 0 && parts[i-1] == parent+".slice"
}

// parseTree parses the path below the kubepods cgroup. slice is the part before "kubepods" in the
// names of systemd's slices.
func parseTree(d Driver, slice string, rest []string) Ref {
	r := Ref{Kind: Root, Driver: d}
	if len(rest) == 0 {
		return r
	}
	base := slice + "kubepods"
	if class := classOf(d, base, rest[0]); class != "" {
		r.Kind, r.QoS = Class, class
		if rest = rest[1:]; len(rest) == 0 {
			return r
		}
		base += "-" + strings.ToLower(string(class))
	}
	uid, ok := podOf(d, base, rest[0])
	if !ok {
		return Ref{}
	}
	r.QoS = cmp.Or(r.QoS, Guaranteed) // this class has no cgroup of its own
	r.Kind, r.UID = Pod, uid
	if rest = rest[1:]; len(rest) == 0 {
		return r
	}
	if runtime, id, ok := parseContainer(rest[0]); ok {
		r.Kind, r.Runtime, r.ID = Container, runtime, id
		rest = rest[1:]
	}
	return r.withBelow(rest)
}

// withBelow returns r. If there is a path below it, the kind is Inside.
func (r Ref) withBelow(below []string) Ref {
	if len(below) > 0 {
		r.Kind = Inside
	}
	return r
}

func classOf(d Driver, base, part string) QoS {
	for _, q := range [...]QoS{Burstable, BestEffort} {
		name := strings.ToLower(string(q))
		if d == Systemd {
			name = base + "-" + name + ".slice"
		}
		if part == name {
			return q
		}
	}
	return ""
}

// podOf parses the component of a pod: "pod<uid>", or "<base>-pod<uid_>.slice".
func podOf(d Driver, base, part string) (metric.PodUID, bool) {
	if d == Systemd {
		inner, ok := strings.CutSuffix(part, ".slice")
		if !ok {
			return "", false
		}
		if part, ok = strings.CutPrefix(inner, base+"-"); !ok {
			return "", false
		}
	}
	uid, ok := strings.CutPrefix(part, "pod")
	if !ok {
		return "", false
	}
	return NormalizeUID(uid)
}

// parseColon parses "kubepods-burstable-pod<uid_>.slice:cri-containerd:<id>", which is one
// directory. containerd creates it if containerd has the cgroupfs driver and the kubelet the
// systemd driver.
func parseColon(part string) (Ref, bool) {
	slice, rest, ok := strings.Cut(part, ":")
	if !ok {
		return Ref{}, false
	}
	runtime, id, ok := strings.Cut(rest, ":")
	if !ok || !isRuntime(runtime) || !isID(id) {
		return Ref{}, false
	}
	at := strings.LastIndex(slice, "kubepods-")
	if at < 0 {
		return Ref{}, false
	}
	r := Ref{Kind: Container, Runtime: runtime, ID: metric.ContainerID(id), QoS: Guaranteed}
	base := slice[:at] + "kubepods"
	for _, q := range [...]QoS{Burstable, BestEffort} {
		if name := base + "-" + strings.ToLower(string(q)); strings.HasPrefix(slice, name+"-") {
			base, r.QoS = name, q
			break
		}
	}
	r.UID, ok = podOf(Systemd, base, slice)
	return r, ok
}

// NormalizeUID returns a pod UID in the form of the API, in lower case and with dashes. s may have
// any form that occurs in cgroup paths. It returns false if s cannot be a UID.
//
// A UID of 32 digits without dashes is not changed. It is the hash of a static pod's manifest,
// which has no dashes in the annotation kubernetes.io/config.hash either.
func NormalizeUID(s string) (metric.PodUID, bool) {
	if s == "" || !consistsOf(s, digits+lowerCase+upperCase+"-_") {
		return "", false
	}
	return metric.PodUID(strings.ReplaceAll(strings.ToLower(s), "_", "-")), true
}

// parseContainer parses the component of a container: "<id>",
// "<runtime>-<id>" or "<runtime>-<id>.scope".
func parseContainer(part string) (runtime string, id metric.ContainerID, ok bool) {
	part = strings.TrimSuffix(part, ".scope")
	if at := strings.LastIndexByte(part, '-'); at >= 0 {
		runtime, part = part[:at], part[at+1:]
		if !isRuntime(runtime) {
			return "", "", false
		}
	}
	if !isID(part) {
		return "", "", false
	}
	return runtime, metric.ContainerID(part), true
}

// isRuntime reports whether s can be the prefix of a runtime. conmon is not one: it is the helper
// process of CRI-O and Podman, and its cgroup has the ID of the container that it monitors.
func isRuntime(s string) bool {
	return s != "" && !strings.HasSuffix(s, "conmon") && consistsOf(s, digits+lowerCase+"-")
}

// idLength is the number of hexadecimal digits of a container ID in every runtime for
// Kubernetes.
const idLength = 64

func isID(s string) bool { return len(s) == idLength && consistsOf(s, hexDigits) }

// staticLength is the length of the UID of a static pod, the hash of its manifest in hexadecimal.
const staticLength = 32

// IsStatic reports whether uid belongs to a static pod.
func IsStatic(uid metric.PodUID) bool {
	return len(uid) == staticLength && consistsOf(string(uid), hexDigits)
}

const (
	digits    = "0123456789"
	hexDigits = digits + "abcdef"
	lowerCase = "abcdefghijklmnopqrstuvwxyz"
	upperCase = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// consistsOf reports whether s has only characters of set.
func consistsOf(s, set string) bool { return strings.Trim(s, set) == "" }
