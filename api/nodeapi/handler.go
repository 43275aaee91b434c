package nodeapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/eviction/evictionreport/document"
)

// Options configure a Handler.
type Options struct {
	// Node is the node that is answered for. Required.
	Node string
	// Eviction returns how the node stands. Nil where nobody guards it.
	Eviction func() *document.EvictionReport
	// PodCgroups returns what the pod cgroups hold, to be written as JSON. Its error may
	// be a *wire.Problem. Nil where nobody inspects them.
	PodCgroups func(context.Context) (any, error)
}

// Handler serves the API at Paths for one node, on that node. It may be used by many
// requests at once.
type Handler struct{ opts Options }

// NewHandler returns a Handler.
func NewHandler(opts Options) *Handler { return &Handler{opts} }

// ServeHTTP answers a request about the node.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := h.answer(w, r)
	if err != nil {
		weirdev.Fail(w, asProblem(err))
		return
	}
	weirdev.Answer(w, http.StatusOK, answer)
}

func (h *Handler) answer(w http.ResponseWriter, r *http.Request) (any, error) {
	request, err := parseReadRequest(w, r)
	switch {
	case err != nil:
		return nil, err
	case request.Node != h.opts.Node:
		// An address may have passed on to another machine since it was looked up.
		return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: "this weir is on node " + h.opts.Node + ", not on " + request.Node,
			Hint: "Ask for " + h.opts.Node + ", or ask the weir of the cluster, which finds the agent of each node."}
	case request.Subresource == Eviction && h.opts.Eviction != nil:
		return NewEvictionExplanation(h.opts.Eviction()), nil
	case request.Subresource == PodCgroups && h.opts.PodCgroups != nil:
		return h.opts.PodCgroups(r.Context())
	}
	return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: "this weir does not know " + request.String(),
		Hint: "Ask the agent there: weir agent, or on a machine of no cluster weir run."}
}

// asProblem returns what an error is to the asker.
func asProblem(err error) *weirdev.Problem {
	if p, ok := errors.AsType[*weirdev.Problem](err); ok {
		return p
	}
	return &weirdev.Problem{Status: http.StatusInternalServerError, Message: err.Error(), Hint: "weir's log may say more."}
}
