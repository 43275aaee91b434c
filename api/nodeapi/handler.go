package nodeapi

import (
	"context"
	"net/http"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/eviction/evictionreport"
)

// Options configure a Handler.
type Options struct {
	// Node is the node that the Handler answers for. Required.
	Node string
	// Eviction returns the report on evictions. It is nil if no guard runs.
	Eviction func() *evictionreport.EvictionReport
	// PodCgroups returns the report on pod cgroups, to be written as JSON. Its error may be a
	// *weirdev.Problem. It is nil if there is no inspector.
	PodCgroups func(context.Context) (any, error)
	// Devices returns the devices of the node. Its error may be a *weirdev.Problem. It is nil if there
	// is no kubelet.
	Devices func(context.Context) (*cluster.NodeDevices, error)
	// Kills returns what the kernel killed for memory. It is nil if nothing watches that.
	Kills func() *endlog.KillReport
}

// Handler serves the API at Paths for its own node. It may serve many requests at once.
type Handler struct{ opts Options }

// NewHandler returns a Handler.
func NewHandler(opts Options) *Handler { return &Handler{opts} }

// ServeHTTP answers a request about the node.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	weirdev.ReadHandler(readOnly, ParseRequest, h.answer).ServeHTTP(w, r)
}

// readOnly is the error of a request that does not read.
const readOnly = "what a node reports is read-only"

func (h *Handler) answer(ctx context.Context, request Request) (any, error) {
	switch {
	case request.Node != h.opts.Node:
		// Another machine may have the address now.
		return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: "this weir is on node " + h.opts.Node + ", not on " + request.Node,
			Hint: "Ask for " + h.opts.Node + ", or ask the weir of the cluster, which finds the agent of each node."}
	case request.Subresource == Eviction && h.opts.Eviction != nil:
		return NewEvictionExplanation(h.opts.Eviction()), nil
	case request.Subresource == PodCgroups && h.opts.PodCgroups != nil:
		return h.opts.PodCgroups(ctx)
	case request.Subresource == Devices && h.opts.Devices != nil:
		d, err := h.opts.Devices(ctx)
		if err != nil {
			return nil, err
		}
		return NewNodeDevices(d), nil
	case request.Subresource == Kills && h.opts.Kills != nil:
		return NewNodeKills(h.opts.Kills()), nil
	}
	return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: "this weir does not know " + request.String(),
		Hint: "Ask the agent there: weir agent, or on a machine of no cluster weir run."}
}
