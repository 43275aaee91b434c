package model

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// points answers with one metric of one entity.
func (q *request) points(id metric.ID) *problem {
	e, named := q.part(id)
	if !q.known(e.Whole()) {
		return q.unknown(e.Whole())
	}
	var found []point
	if named {
		found = q.series(nil, nil, e, id)
	}
	switch {
	case len(found) > 0:
	case !named:
		q.warn("no part of %v has %v: labels may be resource_id (a device, an interface, Volume:NAME) or accelerator_id", e, id)
	default:
		q.warn("%s", q.nothing(e, id))
	}
	q.head()
	_, _ = q.w.Write(append(appendResult(nil, found, id), '\n')) // as in json
	return nil
}

// podList answers with one metric of each of the pods named, in their order. A
// pod that has none gets an empty result: clients count them.
func (q *request) podList(id metric.ID) *problem {
	pod := metric.Entity{Kind: metric.Pod, Namespace: q.entity.Namespace}
	var missing []metric.Entity
	lack := 0
	for _, name := range q.pods {
		pod.Pod = name
		if s, ok := q.view.Lookup(pod); q.query.labels == nil && (!ok || !s.Values.Has(id)) {
			if lack++; len(missing) < 3 {
				missing = append(missing, pod)
			}
		}
	}
	if lack > 0 {
		var why []string
		for _, e := range missing {
			why = append(why, q.missing(e, id))
		}
		q.warn("%d of %d pods have no %v now: %s", lack, len(q.pods), id, strings.Join(why, "; "))
	}
	q.head()
	if q.r.Method == "HEAD" {
		return nil
	}
	var measured, found []point
	body := append(make([]byte, 0, 1<<14), `{"items":[`...)
	for i, name := range q.pods {
		if i > 0 {
			body = append(body, ',')
		}
		q.entity = pod
		q.entity.Pod = name
		found = found[:0]
		if e, ok := q.part(id); ok {
			found = q.series(found, &measured, e, id)
		}
		body = appendResult(body, found, id)
		if len(body) > 1<<15 { // a list may be of thousands: not all of it is held
			if _, err := q.w.Write(body); err != nil {
				return nil // the reader has gone
			}
			body = body[:0]
		}
	}
	_, _ = q.w.Write(append(body, "]}\n"...)) // as in json
	return nil
}

// series appends the points of a metric of an entity to dst, by the query, in
// Heapster's unit. Scratch is memory to work in; nil for none.
func (q *request) series(dst []point, scratch *[]point, e metric.Entity, id metric.ID) []point {
	if scratch == nil {
		scratch = new([]point)
	}
	var value float64
	live := false
	if s, ok := q.view.Lookup(e); ok {
		e.Node = s.Entity.Node
		value, live = s.Values.Get(id)
		live = live && finite(value)
	}
	now := q.now.UnixNano()
	newest := q.grid.floor(now)
	scale := factor(id)
	start := len(dst)
	if q.query.from <= newest {
		from := time.Unix(0, max(0, q.query.from-q.grid.reach))
		to := time.Unix(0, min(now, max(q.query.to, q.query.to+q.grid.step))) // the sum may overflow
		measured := (*scratch)[:0]
		for t, v := range q.view.Points(e, id, from, to) {
			if finite(v) {
				measured = append(measured, point{t.UnixNano(), v})
			}
		}
		*scratch = measured
		dst = q.grid.align(dst, measured, q.query.from, q.query.to, newest-1, live)
	}
	// The newest point is the number that is served now: exact, and there for
	// metrics of which nothing is remembered.
	if live && q.query.from <= newest && newest <= q.query.to {
		dst = append(dst, point{newest, value})
	}
	for i := start; i < len(dst); i++ {
		dst[i].value *= scale
	}
	return dst
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// part returns what the labels choose of q's entity: itself, if there are none,
// or one of its devices, volumes, interfaces or accelerators that has the
// metric. It reports whether there is such a part.
func (q *request) part(id metric.ID) (metric.Entity, bool) {
	e := q.entity
	if q.query.labels == nil {
		return e, true
	}
	if len(q.query.labels) != 1 {
		return e, false // each part has one label
	}
	var parts []string
	for key, value := range q.query.labels {
		parts = partsOf(key, value)
	}
	for _, p := range parts {
		e.Part = p
		if s, ok := q.view.Lookup(e); ok && s.Values.Has(id) {
			return e, true
		}
	}
	return q.entity, false
}

// rootFS is what Heapster called the file system of an entity itself.
const rootFS = "/"

// partsOf returns the parts a label of Heapster's may mean.
func partsOf(key, value string) []string {
	switch key {
	case "resource_id":
		if volume, ok := strings.CutPrefix(value, "Volume:"); ok {
			return []string{"volume:" + volume}
		}
		parts := []string{"device:" + value, "interface:" + value, "volume:" + value}
		if value == rootFS {
			parts = append(parts, "")
		}
		return parts
	case "accelerator_id":
		return []string{"accelerator:" + value}
	}
	return nil
}

// labelOf is the inverse of partsOf: how a part is labelled in an export.
func labelOf(part string) map[string]string {
	kind, name, _ := strings.Cut(part, ":")
	switch kind {
	case "volume":
		return map[string]string{"resource_id": "Volume:" + name}
	case "accelerator":
		return map[string]string{"accelerator_id": name}
	case "":
		return map[string]string{"resource_id": rootFS}
	}
	return map[string]string{"resource_id": name}
}

// appendResult appends points as a MetricResult:
//
//	{"metrics":[{"timestamp":T,"value":N,"floatValue":X},...],"latestTimestamp":T}
//
// value is always there; floatValue only for metrics that are no integers.
func appendResult(b []byte, points []point, id metric.ID) []byte {
	integer := integer(id)
	b = append(b, `{"metrics":[`...)
	for i, p := range points {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"timestamp":`...)
		b = appendTime(b, p.at)
		b = append(b, `,"value":`...)
		b = strconv.AppendUint(b, whole(p.value), 10)
		if !integer {
			b = append(b, `,"floatValue":`...)
			b = strconv.AppendFloat(b, p.value, 'g', -1, 64)
		}
		b = append(b, '}')
	}
	b = append(b, `],"latestTimestamp":`...)
	if len(points) == 0 {
		return append(b, `"0001-01-01T00:00:00Z"}`...) // Go's zero time, which clients test for
	}
	return append(appendTime(b, points[len(points)-1].at), '}')
}

func appendTime(b []byte, at int64) []byte {
	b = append(b, '"')
	b = time.Unix(0, at).UTC().AppendFormat(b, time.RFC3339)
	return append(b, '"')
}

// names answers with the names of an entity's metrics, in the catalogue's
// order.
func (q *request) names() *problem {
	names := []string{}
	if s, ok := q.view.Lookup(q.entity); ok {
		for id := range s.Values.All() {
			names = append(names, id.String())
		}
	} else if !q.known(q.entity) {
		return q.unknown(q.entity)
	}
	return q.json(slices.Clip(names))
}
