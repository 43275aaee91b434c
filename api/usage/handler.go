package usage

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
)

// Options configure a Handler.
type Options struct {
	// Snapshot returns the newest state to serve; nil while there is none. Required.
	Snapshot func() SampleReader
	// Facts returns what the API server says; nil without a cluster.
	Facts func() *cluster.Facts
}

// handler serves the API below Path.
type handler struct {
	opts Options
}

// NewHandler returns a handler for all of Paths, which may serve many requests at once.
func NewHandler(opts Options) http.Handler {
	if opts.Facts == nil {
		opts.Facts = func() *cluster.Facts { return nil }
	}
	return weirdev.Gzip(&handler{opts})
}

// ServeHTTP answers a request for a list.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		weirdev.Fail(w, &weirdev.Problem{Status: http.StatusMethodNotAllowed, Message: "usage cannot be changed", Hint: "GET it."})
		return
	}
	request, err := ParseRequest(r)
	if p := (*weirdev.Problem)(nil); errors.As(err, &p) {
		weirdev.Fail(w, p)
		return
	}
	view := h.opts.Snapshot()
	if view == nil {
		weirdev.Fail(w, &weirdev.Problem{Status: http.StatusServiceUnavailable, Message: "nothing has been measured yet",
			Hint: "Ask again in a few seconds; weir's /readyz says what is waited for."})
		return
	}

	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		return
	}
	// A write fails only when the reader has gone, and then nobody is left to tell.
	_ = writeList(w, request.Resource, request.Query, view, h.opts.Facts())
}

// writeList streams a list: one item is in memory as JSON at a time.
func writeList(w io.Writer, resource Resource, query Query, view SampleReader, facts *cluster.Facts) error {
	chosen, err := chooseMetrics(query.Metrics)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 32<<10)
	out.WriteString(`{"apiVersion":"` + weirdev.APIVersion + `","kind":"` + resource.Kind() + `List","resource":"` + string(resource) + `","items":[`)
	rows := collectRows(view, facts, resource, query)
	var it Item
	enc := json.NewEncoder(out) // ends each item with a newline, so that a list can be read by line
	enc.SetEscapeHTML(false)
	separator := "\n"
	for len(rows) > 0 {
		var first []listRow
		first, rows = nextItem(resource, rows)
		fillItem(&it, resource, first, facts, chosen)
		out.WriteString(separator)
		separator = ","
		if err := enc.Encode(&it); err != nil {
			return err
		}
	}
	out.WriteString("]}\n")
	return out.Flush()
}
