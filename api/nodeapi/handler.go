package nodeapi

import (
	"context"
	"net/http"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/eviction/evictionreport"
)

// Options configure the handler of a node's own agent.
type Options struct {
	// Node is the node that it answers for. Required.
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

// NewHandler returns a handler for all of Paths that answers for its own node. It may serve many requests at
// once.
func NewHandler(opts Options) http.Handler {
	return weirdev.ReadHandler(readOnly, ParseRequest, opts.answer)
}

// readOnly is the error of a request that does not read.
const readOnly = "what a node reports is read-only"

func (o *Options) answer(ctx context.Context, request Request) (any, error) {
	switch {
	case request.Node != o.Node:
		// Another machine may have the address now.
		return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: "this weir is on node " + o.Node + ", not on " + request.Node,
			Hint: "Ask for " + o.Node + ", or ask the weir of the cluster, which finds the agent of each node."}
	case request.Subresource == Eviction && o.Eviction != nil:
		return NewEvictionExplanation(o.Eviction()), nil
	case request.Subresource == PodCgroups && o.PodCgroups != nil:
		return o.PodCgroups(ctx)
	case request.Subresource == Devices && o.Devices != nil:
		d, err := o.Devices(ctx)
		if err != nil {
			return nil, err
		}
		return NewNodeDevices(d), nil
	case request.Subresource == Kills && o.Kills != nil:
		return &NodeKills{weirdev.APIVersion, KillsKind, *o.Kills()}, nil
	}
	return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: "this weir does not know " + request.String(),
		Hint: "Ask the agent there: weir agent, or on a machine of no cluster weir run."}
}
