package ui

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/cluster/eventlog"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/explain/slow"
	"github.com/weir-metrics/weir/metric"
)

// Options are the sources of the data on the page.
type Options struct {
	// Explainer returns the current state of weir. Required. Its View is nil before the first
	// round.
	Explainer func() *explain.Explainer
	// Points returns the recorded values of a metric of an entity between two times, both included,
	// oldest first, in the unit of the catalogue. If it is nil, the page has no lines of the last
	// fifteen minutes.
	Points func(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64]
	// History is how far back Points goes. Default: fifteen minutes.
	History time.Duration
	// Sinks returns the state of each sink. If it is nil, the page shows no sinks.
	Sinks func() []SinkState
	// Autoscalers returns the last decision about each autoscaler in one line. If it is nil, no
	// controller runs, and the page says how to start one.
	Autoscalers func() []decisionreport.DecisionSummary
	// AutoscalersUnread returns in a sentence why autoscalers cannot be read. It is empty if they can. May
	// be nil.
	AutoscalersUnread func() string
	// Autoscaler returns the report of the last decision about one autoscaler, and false if there
	// is none.
	Autoscaler func(kind, namespace, name string) (*decisionreport.DecisionReport, bool)
	// Eviction returns the eviction report of a node, from its agent or for this machine. Its error
	// may be a *weirdev.Problem: the page answers 404 for an unknown node, and else 502, because the
	// fault is not in this weir. If it is nil, this weir has no reports.
	Eviction func(ctx context.Context, node string) (*evictionreport.EvictionReport, error)
	// Events returns the last Events on an object, the newest first. If it is nil, this weir keeps
	// none.
	Events func(o eventlog.Object) []eventlog.Event
	// EventsUnread returns in a sentence why Events cannot be read. It is empty if they can. May be nil.
	EventsUnread func() string
	// Deaths returns what ended in the last hour. If it is nil, weir watches no cluster.
	Deaths func(death.Query) death.Report
	// Slow returns what a pod waited for, and false if the pod has no numbers. May be nil.
	Slow func(slow.Query) (slow.Report, bool)
	// Version is shown at the bottom of each page, if it is not empty.
	Version string
}

// SinkState is the state of one sink.
type SinkState struct {
	Name        string
	LastSuccess time.Time     // zero if there was none
	Took        time.Duration // of the last write; 0 before the first one
	Err         error         // of the last write
	Queued      int           // waiting batches
	Dropped     int64         // batches that were dropped because the queue was full, since the start
}

// Handler serves the page. It keeps no state between requests.
type Handler struct{ opts Options }

// New returns a Handler. It panics if Options.Explainer is nil.
func New(o Options) *Handler {
	if o.Explainer == nil {
		panic("ui: Options.Explainer is nil")
	}
	return &Handler{o}
}

// ServeHTTP answers with status 200, 404 for an unknown object, 400 for an invalid query, and 503
// before the first read. An error page says what to do.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", policy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "this page can only be read: use GET", http.StatusMethodNotAllowed)
		return
	}
	status, body := h.answer(r)
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if status == http.StatusServiceUnavailable {
		header.Set("Retry-After", strconv.Itoa(retrySeconds))
	}
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		// A write fails only if the client has gone.
		_, _ = w.Write(body)
	}
}

// answer returns the status and the page for a request.
func (h *Handler) answer(r *http.Request) (status int, body []byte) {
	q, err := parse(r.URL)
	p := &page{Explainer: h.opts.Explainer(), opts: &h.opts, query: q, scalers: map[string]anchor{}}
	if err == nil {
		err = p.fill(r.Context())
	}
	var sorry *pageError
	status = http.StatusOK
	if errors.As(err, &sorry) {
		status = sorry.status
		p.showError(sorry)
	}
	p.frame()
	var out bytes.Buffer
	if err := templates()[p.Template].ExecuteTemplate(&out, "frame", p); err != nil {
		// The templates and their data belong to this package, so this is a bug.
		return http.StatusInternalServerError, []byte("weir could not draw this page: " + err.Error())
	}
	return status, out.Bytes()
}

// pageError explains why a page cannot be shown, and what to do about it.
type pageError struct {
	status          int
	message, advice string
}

// Error returns the message.
func (p *pageError) Error() string { return p.message }
