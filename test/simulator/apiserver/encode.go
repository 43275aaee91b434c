package apiserver

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/test/simulator"
)

// encoding is the encoding of the answers to a request.
type encoding struct {
	form      simulator.Form
	api, kind string // of one object, as itself or as metadata
	port      int
}

// encodingOf returns the encoding that the request accepts: protobuf if it
// comes first, otherwise JSON.
func encodingOf(r *http.Request, q query, port int) encoding {
	e := encoding{api: q.api, kind: q.kind, port: port}
	accept, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	e.form.Protobuf = strings.Contains(accept, "application/vnd.kubernetes.protobuf")
	if strings.Contains(accept, "as=PartialObjectMetadata") {
		e.form.Metadata = true
		e.api, e.kind = "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	return e
}

func (e encoding) contentType(watch bool) string {
	switch {
	case e.form.Protobuf && watch:
		return "application/vnd.kubernetes.protobuf;stream=watch"
	case e.form.Protobuf:
		return "application/vnd.kubernetes.protobuf"
	}
	return "application/json"
}

// object appends the object of a change or of a list, as it is at now.
func (e encoding) object(dst []byte, o object, version int64, now time.Time) []byte {
	form := e.form
	form.Version = version
	if o.hpa != nil {
		return append(dst, e.autoscaler(o.hpa)...)
	}
	if o.pod != nil {
		return o.pod.AppendAs(dst, form, now)
	}
	return o.node.AppendAs(dst, form, e.port, now)
}

// autoscaler returns an encoded HorizontalPodAutoscaler, in JSON with its type.
func (e encoding) autoscaler(hpa *autoscalingv2.HorizontalPodAutoscaler) []byte {
	var encoded []byte
	var err error
	if e.form.Protobuf {
		encoded, err = hpa.Marshal()
	} else {
		typed := *hpa
		typed.APIVersion, typed.Kind = e.api, e.kind
		encoded, err = json.Marshal(&typed)
	}
	if err != nil {
		panic(err) // the object is of this package and has no value that cannot be encoded
	}
	return encoded
}

// object is a node, one of its pods, or an autoscaler.
type object struct {
	node *simulator.Node
	pod  *simulator.Pod
	hpa  *autoscalingv2.HorizontalPodAutoscaler
}

func (o object) version(now time.Time) int64 {
	if o.hpa != nil {
		return o.hpa.CreationTimestamp.UnixNano()
	}
	if o.pod != nil {
		return o.pod.Version(now)
	}
	return o.node.Version(now)
}

// magic is the prefix of every object in protobuf. A runtime.Unknown follows
// it.
var magic = []byte{'k', '8', 's', 0}

// appendTyped appends magic and a runtime.Unknown with its type, up to its raw
// content. The caller appends that content, which has size bytes.
func appendTyped(dst []byte, api, kind string, size int) []byte {
	dst = append(dst, magic...)
	typed := appendText(nil, 1, api)
	typed = appendText(typed, 2, kind)
	dst = appendText(dst, 1, string(typed))
	dst = append(dst, 2<<3|2)
	return binary.AppendUvarint(dst, uint64(size))
}

func appendText(dst []byte, number byte, s string) []byte {
	dst = append(dst, number<<3|2)
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// whole appends an object with its type, as in the answer to a GET and in a
// watch.
func (e encoding) whole(dst, content []byte) []byte {
	if !e.form.Protobuf {
		return append(dst, content...)
	}
	return append(appendTyped(dst, e.api, e.kind, len(content)), content...)
}

// event appends a watch event. object is the encoded object of the event.
func (e encoding) event(dst []byte, kind string, object []byte) []byte {
	if !e.form.Protobuf {
		dst = append(dst, `{"type":"`...)
		dst = append(dst, kind...)
		dst = append(dst, `","object":`...)
		dst = append(dst, object...)
		return append(dst, "}\n"...)
	}
	typed := e.whole(nil, object)
	raw := appendText(nil, 1, string(typed))
	frame := appendText(nil, 1, kind)
	frame = appendText(frame, 2, string(raw))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(frame)))
	return append(dst, frame...)
}

// bookmark appends a bookmark event: the watch has sent everything up to this
// version. With initial, it also says that the initial events are complete.
func (e encoding) bookmark(dst []byte, version int64, initial bool) []byte {
	v := strconv.FormatInt(version, 10)
	if e.form.Protobuf {
		meta := appendText(nil, 6, v)
		if initial {
			meta = appendText(meta, 12, string(appendText(appendText(nil, 1, initialEventsEnd), 2, "true")))
		}
		return e.event(dst, "BOOKMARK", appendText(nil, 1, string(meta)))
	}
	object := `{"kind":"` + e.kind + `","apiVersion":"` + e.api + `","metadata":{"resourceVersion":"` + v + `"`
	if initial {
		object += `,"annotations":{"` + initialEventsEnd + `":"true"}`
	}
	return e.event(dst, "BOOKMARK", []byte(object+"}}"))
}

const initialEventsEnd = "k8s.io/initial-events-end"
