package model

import (
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/net"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// ModelReader reads one immutable snapshot: samples, and the verdicts on missing numbers.
type ModelReader interface {
	explain.SnapshotReader
	// Each calls do for every entity of a kind, and for its parts, that has a number to serve. The
	// order is that of metric.Entity.Compare; it stops when do returns false. The sample holds only
	// numbers that are served, is valid until do returns, and must not be changed.
	Each(kind metric.Kind, do func(*metric.Sample) bool)
	// Points yields the stored values of a metric of an entity, in the catalogue's unit, oldest
	// first, between two times. Both times are included and are by the node's clock. A metric
	// without history yields nothing.
	Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64]
}

// Options configure a Handler.
type Options struct {
	// Snapshot returns the newest state to serve, or nil while there is none. Required.
	Snapshot func() ModelReader
	// Facts returns the cluster facts, or nil without a cluster. Label selectors need them. Required.
	Facts func() *cluster.Facts
	// Sources returns the states of the sources, for the reasons of missing numbers. Required.
	Sources func() []explain.SourceState
	// Now returns the time. Default time.Now.
	Now func() time.Time
	// Resolution is the interval between reads of a source, and so the distance between the model's
	// points, in whole seconds. Default 15 seconds.
	Resolution time.Duration
}

// handler serves all of Paths.
type handler struct {
	opts Options
	grid pointGrid
}

// NewHandler returns a handler for all of Paths. It may serve many requests at once. It does not
// authorize: Rights describes what the caller needs.
func NewHandler(opts Options) http.Handler {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Resolution <= 0 {
		opts.Resolution = 15 * time.Second
	}
	return &handler{opts: opts, grid: newGrid(opts.Resolution)}
}

// requestError is an error as an answer: a status, and a sentence that describes what to do next. It is
// sent as plain text, as Heapster did.
type requestError struct {
	status int
	text   string
}

func notFound(format string, args ...any) *requestError {
	return &requestError{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *requestError {
	return &requestError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// request is one request, with the state that answers it.
type request struct {
	target
	id    metric.ID // the metric that is asked for, and which of its points
	query pointQuery
	view  ModelReader
	facts *cluster.Facts
	opts  *Options
	grid  pointGrid
	now   time.Time
	w     http.ResponseWriter
	r     *http.Request
}

// ServeHTTP answers a request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET is served here", http.StatusMethodNotAllowed)
		return
	}
	if p := h.serve(w, r); p != nil {
		http.Error(w, p.text, p.status)
	}
}

// serve answers a request. It returns an error only before anything was written.
func (h *handler) serve(w http.ResponseWriter, r *http.Request) *requestError {
	t, p := parsePath(r.URL.EscapedPath())
	if p != nil {
		return p
	}
	q := request{target: t, opts: &h.opts, grid: h.grid, now: h.opts.Now(), w: w, r: r}
	if t.shows == nothing {
		return t.answer(&q)
	}
	if p := q.parseMetricQuery(); p != nil {
		return p
	}
	if q.view = h.opts.Snapshot(); q.view == nil {
		return &requestError{http.StatusServiceUnavailable, "nothing has been measured yet: ask again in a few seconds; /readyz shows what weir is waiting for"}
	}
	q.facts = h.opts.Facts()
	if name, ok := systemNames[q.entity.Name]; ok && q.entity.Kind == metric.System {
		if _, taken := q.view.Lookup(q.entity); !taken {
			q.entity.Name = name
		}
	}
	return t.answer(&q)
}

// parseMetricQuery reads the metric and the points that are asked for, if any are.
func (r *request) parseMetricQuery() (p *requestError) {
	if r.target.metric == "" {
		return nil
	}
	var ok bool
	if r.id, ok = metricOf(r.target.metric); !ok {
		return notFound("no metric is called %q: %s/metrics/ lists those of the cluster, docs/metrics.md all; weir does not read what applications export", r.target.metric, modelRoot)
	}
	r.query, p = parseQuery(r.r.URL.RawQuery, r.now)
	return p
}

// writeHeader writes the headers of an answer.
func (r *request) writeHeader() {
	h := r.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// writeJSON answers with v.
func (r *request) writeJSON(v any) *requestError {
	r.w.Header().Set("X-Content-Type-Options", "nosniff")
	weirdev.Answer(r.w, http.StatusOK, v)
	return nil
}

// warn writes into a header what the answer lacks. It is for people: old clients do not read it.
func (r *request) warn(format string, args ...any) {
	text := humanize.Printable(fmt.Sprintf(format, args...)) // names from the path may hold any character, a header may not
	if len(text) > maxWarning {
		text = strings.ToValidUTF8(text[:maxWarning], "") + "..."
	}
	if header, err := net.NewWarningHeader(299, "-", text); err == nil {
		r.w.Header().Add("Warning", header)
	}
}

// maxWarning is the longest warning, in bytes: proxies refuse answers with large headers.
const maxWarning = 1024
