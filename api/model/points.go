package model

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// pointQuery holds the query of a request for points.
type pointQuery struct {
	from, to int64 // nanoseconds since the Unix epoch, both included
	// labels choose a part of the entity. They are nil for the entity itself.
	labels map[string]string
}

// parseQuery reads start, end and labels. It ignores other parameters, as Heapster did.
func parseQuery(raw string, now time.Time) (pointQuery, *requestError) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return pointQuery{}, badRequest("the query is malformed: %v", err)
	}
	q := pointQuery{to: now.UnixNano()}
	if q.from, err = parseTime(values.Get("start"), 0); err != nil {
		return pointQuery{}, badTime("start", values.Get("start"))
	}
	if q.to, err = parseTime(values.Get("end"), now.UnixNano()); err != nil {
		return pointQuery{}, badTime("end", values.Get("end"))
	}
	if values.Get("start") != "" && values.Get("end") != "" && q.from > q.to {
		return pointQuery{}, badRequest("start %s is after end %s: swap them", values.Get("start"), values.Get("end"))
	}
	list := values.Get("labels")
	if list == "" {
		return q, nil
	}
	q.labels = map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(pair, ":")
		if !ok || key == "" || value == "" {
			return pointQuery{}, badRequest("%q in labels is not a pair KEY:VALUE: write labels=resource_id:/dev/vda1", pair)
		}
		q.labels[key] = value
	}
	return q, nil
}

// parseTime reads an RFC 3339 time and returns nanoseconds since the Unix epoch, limited to what
// fits. It returns otherwise if s is empty.
func parseTime(s string, otherwise int64) (int64, error) {
	if s == "" {
		return otherwise, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	switch {
	case err != nil:
		return 0, err
	case t.Unix() <= 0:
		return 0, nil
	case t.Unix() >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64, nil
	}
	return t.UnixNano(), nil
}

func badTime(name, value string) *requestError {
	hint := ""
	if strings.Contains(value, " ") {
		hint = `; in a query a "+" is written %2B`
	}
	return badRequest("%s=%q is not a time: write it as %s=2026-01-02T15:04:05Z%s", name, value, name, hint)
}

// writePoints answers with one metric of one entity.
func (r *request) writePoints() *requestError {
	id := r.id
	e, named := r.selectPart(id)
	if !r.isKnown(e.Whole()) {
		return r.unknownEntity(e.Whole())
	}
	var found []point
	if named {
		found = r.appendSeries(nil, nil, e, id)
	}
	switch {
	case len(found) > 0:
	case !named:
		r.warn("no part of %v has %v: labels may be resource_id (a device, an interface, Volume:NAME) or accelerator_id", e, id)
	default:
		r.warn("%s", r.explainNoPoints(e, id))
	}
	r.writeHeader()
	_, _ = r.w.Write(append(appendResult(nil, found, id), '\n')) // as in json
	return nil
}

// maxPods is the largest pod-list, so that no request costs more than one read of a large
// namespace.
const maxPods = 10000

// writePodList answers with one metric of each named pod, in the order of the request. A pod
// without the metric gets an empty result: clients count the results.
func (r *request) writePodList() *requestError {
	if len(r.pods) > maxPods {
		return badRequest("the pod-list names %d pods, at most %d are served at once: ask in several requests", len(r.pods), maxPods)
	}
	id := r.id
	pod := metric.Entity{Kind: metric.Pod, Namespace: r.entity.Namespace}
	var missing []metric.Entity
	lack := 0
	for _, name := range r.pods {
		pod.Pod = name
		if s, ok := r.view.Lookup(pod); r.query.labels == nil && (!ok || !s.Values.Has(id)) {
			if lack++; len(missing) < 3 {
				missing = append(missing, pod)
			}
		}
	}
	if lack > 0 {
		var reason []string
		for _, e := range missing {
			reason = append(reason, r.explainMissing(e, id))
		}
		r.warn("%d of %d pods have no %v now: %s", lack, len(r.pods), id, strings.Join(reason, "; "))
	}
	r.writeHeader()
	if r.r.Method == "HEAD" {
		return nil
	}
	var measured, found []point
	body := append(make([]byte, 0, 1<<14), `{"items":[`...)
	for i, name := range r.pods {
		if i > 0 {
			body = append(body, ',')
		}
		r.entity = pod
		r.entity.Pod = name
		found = found[:0]
		if e, ok := r.selectPart(id); ok {
			found = r.appendSeries(found, &measured, e, id)
		}
		body = appendResult(body, found, id)
		if len(body) > 1<<15 { // a list may have thousands of pods: it is not kept in memory
			if _, err := r.w.Write(body); err != nil {
				return nil // the client has gone
			}
			body = body[:0]
		}
	}
	_, _ = r.w.Write(append(body, "]}\n"...)) // as in json
	return nil
}

// appendSeries appends the points of a metric of an entity to dst, filtered by the query, in
// Heapster's unit. The memory of scratch is used again; scratch may be nil.
func (r *request) appendSeries(dst []point, scratch *[]point, e metric.Entity, id metric.ID) []point {
	if scratch == nil {
		scratch = new([]point)
	}
	var value float64
	live := false
	if s, ok := r.view.Lookup(e); ok {
		e.Node = s.Entity.Node
		value, live = s.Values.Get(id)
		live = live && isFinite(value)
	}
	now := r.now.UnixNano()
	newest := r.grid.floor(now)
	scale := heapsterFactor(id)
	start := len(dst)
	if r.query.from <= newest {
		from := time.Unix(0, max(0, r.query.from-r.grid.maxAge))
		to := time.Unix(0, min(now, max(r.query.to, r.query.to+r.grid.step))) // the sum may overflow
		measured := (*scratch)[:0]
		for t, v := range r.view.Points(e, id, from, to) {
			if isFinite(v) {
				measured = append(measured, point{t.UnixNano(), v})
			}
		}
		*scratch = measured
		dst = r.grid.align(dst, measured, r.query.from, r.query.to, newest-1, live)
	}
	// The newest point is the number that is served now. It is exact, and it exists for metrics
	// without history too.
	if live && r.query.from <= newest && newest <= r.query.to {
		dst = append(dst, point{newest, value})
	}
	for i := start; i < len(dst); i++ {
		dst[i].value *= scale
	}
	return dst
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// selectPart returns the part of q's entity that the labels choose: one of its devices, volumes,
// interfaces or accelerators that has the metric. Without labels it returns the entity itself. It
// reports whether there is such a part.
func (r *request) selectPart(id metric.ID) (metric.Entity, bool) {
	e := r.entity
	if r.query.labels == nil {
		return e, true
	}
	if len(r.query.labels) != 1 {
		return e, false // each part has one label
	}
	var parts []string
	for key, value := range r.query.labels {
		parts = partsOf(key, value)
	}
	for _, p := range parts {
		e.Part = p
		if s, ok := r.view.Lookup(e); ok && s.Values.Has(id) {
			return e, true
		}
	}
	return r.entity, false
}

// rootFS is Heapster's name for the file system of an entity itself.
const rootFS = "/"

// partsOf returns the parts that one of Heapster's labels may mean.
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

// labelOf is the inverse of partsOf: it returns the label of a part in an export.
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
// value is always present; floatValue is present only for metrics that are not integers.
func appendResult(b []byte, points []point, id metric.ID) []byte {
	integer := isInteger(id)
	b = append(b, `{"metrics":[`...)
	for i, p := range points {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"timestamp":`...)
		b = appendTime(b, p.at)
		b = append(b, `,"value":`...)
		b = strconv.AppendUint(b, toUnsigned(p.value), 10)
		if !integer {
			b = append(b, `,"floatValue":`...)
			b = strconv.AppendFloat(b, p.value, 'g', -1, 64)
		}
		b = append(b, '}')
	}
	b = append(b, `],"latestTimestamp":`...)
	if len(points) == 0 {
		return append(b, `"0001-01-01T00:00:00Z"}`...) // Go's zero time; clients test for it
	}
	return append(appendTime(b, points[len(points)-1].at), '}')
}

func appendTime(b []byte, at int64) []byte {
	b = append(b, '"')
	b = time.Unix(0, at).UTC().AppendFormat(b, time.RFC3339)
	return append(b, '"')
}

// writeMetricNames answers with the names of an entity's metrics, in the catalogue's order.
func (r *request) writeMetricNames() *requestError {
	names := []string{}
	if s, ok := r.view.Lookup(r.entity); ok {
		for id := range s.Values.All() {
			names = append(names, id.String())
		}
	} else if !r.isKnown(r.entity) {
		return r.unknownEntity(r.entity)
	}
	return r.writeJSON(slices.Clip(names))
}

// point is a value at one time, in nanoseconds since the Unix epoch.
type point struct {
	at    int64
	value float64
}

// pointGrid is the series of times, one step apart, at which the model has points. The point at T
// is the newest number from before T+step, if it is at most maxAge old.
type pointGrid struct {
	step   int64 // nanoseconds
	maxAge int64
}

// newGrid returns the grid for numbers that are read once in each resolution. The step is at least
// one second, because clients cut timestamps to seconds.
func newGrid(resolution time.Duration) pointGrid {
	step := max(resolution.Truncate(time.Second), time.Second)
	// maxAge is as long as weir serves a last known value.
	return pointGrid{step: int64(step), maxAge: int64(max(3*step, time.Minute))}
}

// floor returns the last time on the grid that is not after t.
func (g pointGrid) floor(t int64) int64 {
	r := t % g.step
	if r < 0 {
		r += g.step
	}
	return t - r
}

// align puts measured points, oldest first, on the grid and appends those between from and to, both
// included, to dst. No point is after until. If live, the entity is still measured, and the last
// number is repeated up to until, for at most maxAge.
func (g pointGrid) align(dst, measured []point, from, to, until int64, live bool) []point {
	if len(measured) == 0 || from > until {
		return dst
	}
	last := g.floor(until)
	if !live {
		last = min(last, g.floor(measured[len(measured)-1].at))
	}
	first := g.floor(measured[0].at)
	if from > first {
		first = g.floor(from-1) + g.step // rounded up
	}
	i := 0
	for t := first; t <= min(last, to); t += g.step {
		for i+1 < len(measured) && measured[i+1].at < t+g.step {
			i++
		}
		switch {
		case measured[i].at >= t-g.maxAge:
			dst = append(dst, point{t, measured[i].value})
		case i+1 == len(measured):
			return dst
		default: // a gap, perhaps of years if a clock was wrong
			t = g.floor(measured[i+1].at) - g.step
		}
	}
	return dst
}
