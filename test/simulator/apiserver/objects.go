package apiserver

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/test/simulator"
)

// query selects objects.
type query struct {
	resource  string // nodes, pods, or another resource
	api, kind string // of one object
	namespace string // "" for all
	name      string // "" for all
	node      string // of pods; "" for all
	labels    labels.Selector
	fields    fields.Selector
	hpas      []*autoscalingv2.HorizontalPodAutoscaler // all of the server, if the resource is theirs
}

// complete sets the remaining fields from the resource and from the request's
// selectors.
func (q *query) complete(r *http.Request) (err error) {
	switch q.resource {
	case "nodes":
		q.api, q.kind = "v1", "Node"
	case "pods":
		q.api, q.kind = "v1", "Pod"
	}
	if q.labels, err = labels.Parse(r.URL.Query().Get("labelSelector")); err != nil {
		return fmt.Errorf("read labelSelector: %w", err)
	}
	if q.fields, err = fields.ParseSelector(r.URL.Query().Get("fieldSelector")); err != nil {
		return fmt.Errorf("read fieldSelector: %w", err)
	}
	q.node, _ = q.fields.RequiresExactMatch("spec.nodeName")
	return nil
}

// matches reports whether the query selects the object.
func (q *query) matches(o object) bool {
	switch {
	case o.hpa != nil:
		return (q.namespace == "" || q.namespace == o.hpa.Namespace) && q.labels.Matches(labels.Set(o.hpa.Labels)) &&
			q.fields.Matches(fields.Set{"metadata.name": o.hpa.Name, "metadata.namespace": o.hpa.Namespace})
	case o.pod == nil && q.resource != "nodes", o.pod != nil && q.resource != "pods":
		return false
	}
	if o.pod == nil {
		return q.labels.Empty() && q.fields.Empty() ||
			q.labels.Matches(labels.Set(o.node.Labels())) && q.fields.Matches(fields.Set{"metadata.name": o.node.Name})
	}
	if q.namespace != "" && q.namespace != o.pod.Namespace || q.node != "" && q.node != o.node.Name {
		return false
	}
	return (q.labels.Empty() || q.labels.Matches(labels.Set(o.pod.Labels()))) && (q.fields.Empty() || q.fields.Matches(fields.Set{
		"metadata.name": o.pod.Name, "metadata.namespace": o.pod.Namespace, "spec.nodeName": o.node.Name, "status.phase": "Running",
	}))
}

// each calls do for every object that the query selects, as of now, until do
// returns false.
func (q *query) each(fleet *simulator.Fleet, now time.Time, do func(object) bool) {
	for _, h := range q.hpas {
		if o := (object{hpa: h}); q.matches(o) && !do(o) {
			return
		}
	}
	if q.resource != "nodes" && q.resource != "pods" {
		return
	}
	nodes := fleet.Nodes()
	if n := fleet.Node(q.node); n != nil {
		nodes = []*simulator.Node{n}
	}
	var pods []*simulator.Pod
	for _, n := range nodes {
		if q.resource == "nodes" {
			if o := (object{node: n}); n.Listed(now) && q.matches(o) && !do(o) {
				return
			}
			continue
		}
		pods = n.PodsAt(pods[:0], now)
		for _, p := range pods {
			if o := (object{node: n, pod: p}); q.matches(o) && !do(o) {
				return
			}
		}
	}
}

// objects answers a GET, LIST or WATCH.
func (s *Server) objects(w http.ResponseWriter, r *http.Request, q query) {
	if err := q.complete(r); err != nil {
		refuse(w, r, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	e := encodingOf(r, q, s.o.Port)
	watch, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
	switch {
	case q.name != "":
		s.get(w, r, q, e)
	case watch:
		s.watch(w, r, q, e)
	default:
		s.list(w, q, e)
	}
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, q query, e encoding) {
	now := s.o.Now()
	e.form.Typed = true
	var answer []byte
	q.each(s.o.Fleet, now, func(o object) bool {
		if o.pod == nil && o.node.Name == q.name || o.pod != nil && o.pod.Name == q.name {
			answer = e.whole(nil, e.object(nil, o, o.version(now), now))
		}
		return answer == nil
	})
	if answer == nil {
		refuse(w, r, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", q.resource, q.name))
		return
	}
	w.Header().Set("Content-Type", e.contentType(false))
	_, _ = w.Write(answer)
}

// flushAt is how many bytes are collected before they are written.
const flushAt = 64 << 10

// list writes all objects as of now. In protobuf the length of the list comes
// first, so each object is encoded twice, the first time only to measure it. A
// list of a million pods is therefore never in memory as a whole.
func (s *Server) list(w http.ResponseWriter, q query, e encoding) {
	now := s.o.Now()
	version := strconv.FormatInt(now.UnixNano(), 10)
	kind := e.kind + "List"
	w.Header().Set("Content-Type", e.contentType(false))
	var buffer, one []byte
	if e.form.Protobuf {
		meta := appendText(nil, 1, string(appendText(nil, 2, version)))
		size := len(meta)
		q.each(s.o.Fleet, now, func(o object) bool {
			one = e.object(one[:0], o, o.version(now), now)
			size += len(binary.AppendUvarint(buffer[:0], uint64(len(one)))) + 1 + len(one)
			return true
		})
		buffer = append(appendTyped(buffer[:0], e.api, kind, size), meta...)
	} else {
		buffer = append(buffer, `{"kind":"`+kind+`","apiVersion":"`+e.api+`","metadata":{"resourceVersion":"`+version+`"},"items":[`...)
		e.form.Typed = e.form.Metadata
	}
	first := true
	q.each(s.o.Fleet, now, func(o object) bool {
		one = e.object(one[:0], o, o.version(now), now)
		if e.form.Protobuf {
			buffer = append(buffer, 2<<3|2)
			buffer = binary.AppendUvarint(buffer, uint64(len(one)))
		} else if !first {
			buffer = append(buffer, ',')
		}
		first = false
		buffer = append(buffer, one...)
		if len(buffer) < flushAt {
			return true
		}
		_, err := w.Write(buffer)
		buffer = buffer[:0]
		return err == nil
	})
	if !e.form.Protobuf {
		buffer = append(buffer, "]}\n"...)
	}
	_, _ = w.Write(buffer) // an error means that the client has gone
}
