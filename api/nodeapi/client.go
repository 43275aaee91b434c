package nodeapi

import (
	"context"
	"encoding/json"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/eviction/evictionreport"
)

// Client reads the API of one weir.
type Client struct{ Weir *weirdev.Client }

// Eviction returns the report on evictions of a node. If the server answers with an error, the error
// is a *weirdev.Problem, here and below.
func (c *Client) Eviction(ctx context.Context, node string) (*evictionreport.EvictionReport, error) {
	return get[evictionreport.EvictionReport](ctx, c.Weir, Request{node, Eviction}, ExplanationKind)
}

// PodCgroups returns the report on a node's pod cgroups.
func (c *Client) PodCgroups(ctx context.Context, node string) (json.RawMessage, error) {
	answer, err := get[json.RawMessage](ctx, c.Weir, Request{node, PodCgroups}, "")
	if err != nil {
		return nil, err
	}
	return *answer, nil
}

// Devices returns the devices of a node.
func (c *Client) Devices(ctx context.Context, node string) (*cluster.NodeDevices, error) {
	return get[cluster.NodeDevices](ctx, c.Weir, Request{node, Devices}, DevicesKind)
}

func get[T any](ctx context.Context, c *weirdev.Client, r Request, kind string) (*T, error) {
	return weirdev.Get[T](ctx, c, r.String(), r.path(), nil, kind)
}

// DevicesKind is the kind of NodeDevices.
const DevicesKind = "NodeDevices"

// NodeDevices are the devices of a node, as JSON.
type NodeDevices struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	cluster.NodeDevices
}

// NewNodeDevices returns d with its apiVersion and kind.
func NewNodeDevices(d *cluster.NodeDevices) *NodeDevices {
	return &NodeDevices{weirdev.APIVersion, DevicesKind, *d}
}

// KillsKind is the kind of NodeKills.
const KillsKind = "NodeKills"

// NodeKills are what the kernel of a node killed for memory, as JSON.
type NodeKills struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	endlog.KillReport
}

// ExplanationKind is the kind of an EvictionExplanation.
const ExplanationKind = "EvictionExplanation"

// EvictionExplanation is the report on evictions of a node, as JSON.
type EvictionExplanation struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	evictionreport.EvictionReport
}

// NewEvictionExplanation returns r with its apiVersion and kind.
func NewEvictionExplanation(r *evictionreport.EvictionReport) *EvictionExplanation {
	return &EvictionExplanation{weirdev.APIVersion, ExplanationKind, *r}
}
