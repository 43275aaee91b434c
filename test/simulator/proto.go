package simulator

// The calls that write an object as JSON also write it as protobuf if the
// writer has a schema: the number and the type of each member. So there is one
// description of each object, and the two encodings cannot differ. Field
// numbers are those of k8s.io/api/core/v1/generated.proto and
// k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.

// A message is the schema of an object: its members by their JSON names. A
// member that is not in the schema (kind, apiVersion) is not written.
type message map[string]field

type field struct {
	number byte
	kind   fieldKind
	of     message // of a child, or of the items of a list
}

type fieldKind uint8

const (
	scalar     fieldKind = iota // a string, number or boolean
	instant                     // a Time
	child                       // a message, or a list of them
	texts                       // a map of strings
	quantities                  // a map of Quantities
)

var (
	ownerSchema = message{"kind": {number: 1}, "name": {number: 3}, "uid": {number: 4}, "apiVersion": {number: 5}, "controller": {number: 6}}
	metaSchema  = message{
		"name": {number: 1}, "namespace": {number: 3}, "uid": {number: 5}, "resourceVersion": {number: 6},
		"creationTimestamp": {number: 8, kind: instant}, "deletionTimestamp": {number: 9, kind: instant}, "deletionGracePeriodSeconds": {number: 10},
		"labels": {number: 11, kind: texts}, "annotations": {number: 12, kind: texts}, "ownerReferences": {number: 13, kind: child, of: ownerSchema},
	}
	requirementsSchema = message{"limits": {number: 1, kind: quantities}, "requests": {number: 2, kind: quantities}}
	containerSchema    = message{
		"name": {number: 1}, "image": {number: 2}, "resources": {number: 8, kind: child, of: requirementsSchema},
		"terminationMessagePath": {number: 13}, "imagePullPolicy": {number: 14}, "terminationMessagePolicy": {number: 20},
	}
	podSpecSchema = message{
		"containers": {number: 2, kind: child, of: containerSchema}, "restartPolicy": {number: 3}, "terminationGracePeriodSeconds": {number: 4},
		"dnsPolicy": {number: 6}, "nodeName": {number: 10}, "hostNetwork": {number: 11}, "schedulerName": {number: 19},
		"automountServiceAccountToken": {number: 21}, "enableServiceLinks": {number: 30},
	}
	podConditionSchema = message{"type": {number: 1}, "status": {number: 2}, "lastTransitionTime": {number: 4, kind: instant}}
	ipSchema           = message{"ip": {number: 1}}
	stateSchema        = message{
		"waiting": {number: 1, kind: child, of: message{"reason": {number: 1}}},
		"running": {number: 2, kind: child, of: message{"startedAt": {number: 1, kind: instant}}},
		"terminated": {number: 3, kind: child, of: message{
			"exitCode": {number: 1}, "reason": {number: 3}, "startedAt": {number: 5, kind: instant}, "finishedAt": {number: 6, kind: instant}, "containerID": {number: 7},
		}},
	}
	containerStatusSchema = message{
		"name": {number: 1}, "state": {number: 2, kind: child, of: stateSchema}, "lastState": {number: 3, kind: child, of: stateSchema},
		"ready": {number: 4}, "restartCount": {number: 5}, "image": {number: 6}, "imageID": {number: 7}, "containerID": {number: 8}, "started": {number: 9},
	}
	podStatusSchema = message{
		"phase": {number: 1}, "conditions": {number: 2, kind: child, of: podConditionSchema}, "hostIP": {number: 5}, "podIP": {number: 6},
		"startTime": {number: 7, kind: instant}, "containerStatuses": {number: 8, kind: child, of: containerStatusSchema}, "qosClass": {number: 9},
		"podIPs": {number: 12, kind: child, of: ipSchema}, "hostIPs": {number: 16, kind: child, of: ipSchema},
	}
	podSchema = message{
		"metadata": {number: 1, kind: child, of: metaSchema}, "spec": {number: 2, kind: child, of: podSpecSchema}, "status": {number: 3, kind: child, of: podStatusSchema},
	}
	nodeStatusSchema = message{
		"capacity": {number: 1, kind: quantities}, "allocatable": {number: 2, kind: quantities},
		"conditions": {number: 4, kind: child, of: message{
			"type": {number: 1}, "status": {number: 2}, "lastHeartbeatTime": {number: 3, kind: instant}, "lastTransitionTime": {number: 4, kind: instant},
			"reason": {number: 5}, "message": {number: 6},
		}},
		"addresses":       {number: 5, kind: child, of: message{"type": {number: 1}, "address": {number: 2}}},
		"daemonEndpoints": {number: 6, kind: child, of: message{"kubeletEndpoint": {number: 1, kind: child, of: message{"Port": {number: 1}}}}},
		"nodeInfo": {number: 7, kind: child, of: message{
			"machineID": {number: 1}, "systemUUID": {number: 2}, "bootID": {number: 3}, "kernelVersion": {number: 4}, "osImage": {number: 5},
			"containerRuntimeVersion": {number: 6}, "kubeletVersion": {number: 7}, "kubeProxyVersion": {number: 8}, "operatingSystem": {number: 9}, "architecture": {number: 10},
		}},
	}
	nodeSchema = message{"metadata": {number: 1, kind: child, of: metaSchema}, "status": {number: 3, kind: child, of: nodeStatusSchema}}
)

// proto is the part of a writer that writes protobuf.
type proto struct {
	levels []level // the messages that are open
}

type level struct {
	field        // the field that is being written
	skip    bool // the schema does not have it
	message bool // it has a length, which is written at begin; a list and a map have none
	begin   int
}

// lengthBytes are reserved for a length, which is known only when its message
// ends. A varint may have more bytes than it needs. Three bytes are enough for
// 2 MiB.
const lengthBytes = 3

func (w *writer) tag(number, wire byte) {
	if number < 16 {
		w.b = append(w.b, number<<3|wire)
		return
	}
	w.b = append(w.b, number<<3|wire|0x80, number>>4)
}

func (w *writer) varint(v uint64) {
	for v >= 0x80 {
		w.b = append(w.b, byte(v)|0x80)
		v >>= 7
	}
	w.b = append(w.b, byte(v))
}

func (w *writer) text(number byte, v string) {
	w.tag(number, 2)
	w.varint(uint64(len(v)))
	w.b = append(w.b, v...)
}

func (w *writer) top() *level { return &w.proto.levels[len(w.proto.levels)-1] }

// member returns the schema of a member of the message that is open.
func (w *writer) member(name string) (f field, ok bool) {
	top := w.top()
	if top.skip {
		return f, false
	}
	f, ok = top.of[name]
	return f, ok
}

// begin opens the member of that name: a message, or with many set, a list of
// messages.
func (w *writer) begin(name string, many bool) {
	f, ok := w.member(name)
	l := level{field: f, skip: !ok}
	if ok && f.kind == child && !many {
		l = w.length(f)
	}
	w.proto.levels = append(w.proto.levels, l)
}

// length writes the tag of a message and leaves room for its length.
func (w *writer) length(f field) level {
	w.tag(f.number, 2)
	l := level{field: f, message: true, begin: len(w.b)}
	w.b = append(w.b, 0, 0, 0)
	return l
}

func (w *writer) beginItem() {
	l := *w.top()
	if !l.skip {
		l = w.length(l.field)
	}
	w.proto.levels = append(w.proto.levels, l)
}

func (w *writer) finish() {
	l := w.top()
	if l.message {
		w.fill(l.begin)
	}
	w.proto.levels = w.proto.levels[:len(w.proto.levels)-1]
}

// fill writes the length of the message at begin, up to the present end.
func (w *writer) fill(begin int) {
	n := len(w.b) - begin - lengthBytes
	w.b[begin], w.b[begin+1], w.b[begin+2] = byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)
}

// protoText writes the member of that name, or an entry of a map.
func (w *writer) protoText(name, v string) {
	top := w.top()
	if top.skip || top.kind != texts && top.kind != quantities {
		if f, ok := w.member(name); ok {
			w.text(f.number, v)
		}
		return
	}
	entry := w.length(top.field)
	w.text(1, name)
	if top.kind == texts {
		w.text(2, v)
	} else {
		quantity := w.length(field{number: 2})
		w.text(1, v)
		w.fill(quantity.begin)
	}
	w.fill(entry.begin)
}

func (w *writer) protoInt(name string, v uint64) {
	if f, ok := w.member(name); ok {
		w.tag(f.number, 0)
		w.varint(v)
	}
}

func (w *writer) protoTime(name string, ns int64) {
	if f, ok := w.member(name); ok {
		l := w.length(f)
		w.tag(1, 0)
		w.varint(uint64(ns / second))
		w.fill(l.begin)
	}
}
