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
	"github.com/weir-metrics/weir/eviction/evictionreport/document"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// Options are what the page is made of.
type Options struct {
	// World returns everything there is to say, as of now. Required. Its View is
	// nil before the first round.
	World func() *explain.World
	// Points returns what is remembered of a metric of an entity from one time
	// to another, both included, oldest first, in the catalogue's unit. Nil
	// leaves out the lines of the last fifteen minutes.
	Points func(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64]
	// Sinks returns how each sink fares. Nil says nothing of sinks.
	Sinks func() []Sink
	// Autoscalers returns what is decided about each autoscaler, in a line. Nil where
	// nobody decides: the page then says how to change that.
	Autoscalers func() []decisionreport.DecisionSummary
	// Autoscaler returns the last decision about one of a kind, told; false if none is
	// known.
	Autoscaler func(kind, namespace, name string) (*decisionreport.DecisionReport, bool)
	// Eviction returns how a node stands with evictions: as its agent tells, or for
	// this machine. What cannot be told is best an *Unavailable. Nil where nobody knows.
	Eviction func(ctx context.Context, node string) (*document.EvictionReport, error)
	// Title stands at the head of each page and says which weir this is. Default
	// "weir".
	Title string
	// Version stands at the foot of each page; nothing if empty.
	Version string
}

// Sink is how one sink fares.
type Sink struct {
	Name        string
	LastSuccess time.Time // zero if there was none
	Err         error     // of the last write
	Queued      int       // batches that wait
	Dropped     int64     // batches that found the queue full, ever
}

// Handler serves the page. It keeps nothing between two requests.
type Handler struct{ opts Options }

// New returns a Handler. It panics without a World, which is a mistake of the
// program.
func New(o Options) *Handler {
	if o.World == nil {
		panic("ui: Options.World is nil")
	}
	if o.Title == "" {
		o.Title = "weir"
	}
	return &Handler{o}
}

// ServeHTTP answers a request for the page with 200; with 404 for what is not
// known, 400 for a query that is not understood, and 503 before anything was read,
// each as a page that says what to do.
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
		// A write fails only when the reader has gone.
		_, _ = w.Write(body)
	}
}

// answer returns the page that a request asks for.
func (h *Handler) answer(r *http.Request) (status int, body []byte) {
	q, err := parse(r.URL)
	world := *h.opts.World()
	if world.View != nil {
		world.View = &countingReader{View: world.View}
	}
	p := &page{World: &world, opts: &h.opts, query: q}
	if err == nil {
		err = p.fill(r.Context())
	}
	var sorry *pageError
	switch {
	case errors.As(err, &sorry):
		status = sorry.status
		p.showError(sorry)
	case err != nil:
		status = http.StatusInternalServerError
		p.showError(&pageError{status, "weir could not make this page", err.Error()})
	default:
		status = http.StatusOK
	}
	p.frame()
	var out bytes.Buffer
	if err := views()[p.query.view].ExecuteTemplate(&out, "frame", p); err != nil {
		// The templates and their data are this package's own: a mistake of ours.
		return http.StatusInternalServerError, []byte("weir could not draw this page: " + err.Error())
	}
	return status, out.Bytes()
}

// pageError is why a page cannot be shown, and what to do about it.
type pageError struct {
	status          int
	message, advice string
}

// Error says what is wrong.
func (p *pageError) Error() string { return p.message }
