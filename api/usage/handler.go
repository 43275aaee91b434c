package usage

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// Options configure the handler.
type Options struct {
	// Snapshot returns the newest state to serve, or nil while there is none. Required.
	Snapshot func() SampleReader
	// Facts returns the cluster facts, or nil without a cluster. Required.
	Facts func() *cluster.Facts
	// Risks returns the nodes whose numbers may soon be missing or wrong. It may be nil.
	Risks func() map[metric.NodeName]explain.Risk
	// OOMKills returns how often the kernel killed for memory in the last hour, by node, pod and container.
	// It may be nil.
	OOMKills func() map[metric.Entity]int
}

// NewHandler returns a handler for all of Paths. It may serve many requests at once.
func NewHandler(opts Options) http.Handler { return weirdev.Gzip(http.HandlerFunc(opts.serve)) }

// serve answers a request for a list.
func (o *Options) serve(w http.ResponseWriter, r *http.Request) {
	request, view, err := o.request(w, r)
	if err != nil {
		weirdev.Respond(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		return
	}
	var known marks
	if o.Risks != nil && (request.Resource == Nodes || request.Resource == Pods) {
		known.risks = o.Risks()
	}
	if o.OOMKills != nil && request.Resource != Cgroups {
		known.kills = o.OOMKills()
	}
	if err := writeList(w, request.Resource, request.Query, view, o.Facts(), known); err != nil {
		panic(http.ErrAbortHandler) // the list is incomplete: end the connection instead of the answer
	}
}

// request returns what the caller asks for, and the state that answers it.
func (o *Options) request(w http.ResponseWriter, r *http.Request) (Request, SampleReader, error) {
	if p := weirdev.OnlyReads(w, r, "usage is read-only"); p != nil {
		return Request{}, nil, p
	}
	request, err := ParseRequest(r)
	if err != nil {
		return Request{}, nil, err
	}
	if request.Query.Selector != "" {
		if err := o.checkSelector(request.Resource); err != nil {
			return Request{}, nil, err
		}
	}
	view := o.Snapshot()
	if view == nil {
		return Request{}, nil, weirdev.NotMeasured()
	}
	return request, view, nil
}

// checkSelector returns an error if no labels are known by which to select items of r.
func (o *Options) checkSelector(r Resource) error {
	facts := o.Facts()
	switch {
	case r == Cgroups:
		return &weirdev.Problem{Status: http.StatusBadRequest, Message: "cgroups have no labels", Hint: "Ask for pods or containers, or without a selector."}
	case facts == nil:
		return &weirdev.Problem{Status: http.StatusBadRequest, Message: "this weir has no labels: it measures without a cluster", Hint: "Ask without a selector."}
	case !facts.Synced:
		return &weirdev.Problem{Status: http.StatusServiceUnavailable, Message: "the API server has not listed pods and their labels yet", Hint: "Ask again in a few seconds, or without a selector."}
	}
	return nil
}

// marks are what is known of items beside their numbers.
type marks struct {
	risks map[metric.NodeName]explain.Risk
	kills map[metric.Entity]int
}

// writeList streams a list: only one item at a time is in memory as JSON.
func writeList(w io.Writer, resource Resource, query Query, view SampleReader, facts *cluster.Facts, known marks) error {
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
		if risk := known.risks[it.Node]; it.CPU != nil && (resource == Nodes || !risk.Until.IsZero()) {
			it.AtRisk = risk.Message
		}
		it.OOMKills = known.kills[first[0].entity]
		it.CPUHistory = it.CPUHistory[:0]
		if query.History > 0 {
			readings := readingsOf(view, first, query.History)
			for _, r := range readings.CPU {
				it.CPUHistory = append(it.CPUHistory, r.Value)
			}
			if resource == Nodes || resource == Cgroups {
				it.Readings = readings
			}
		}
		out.WriteString(separator)
		separator = ","
		if err := enc.Encode(&it); err != nil {
			return err
		}
	}
	out.WriteString("]}\n")
	return out.Flush()
}
