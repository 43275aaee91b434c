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
	var answer EvictionExplanation
	if err := c.get(ctx, Request{node, Eviction}, ExplanationKind, &answer); err != nil {
		return nil, err
	}
	return &answer.EvictionReport, nil
}

// PodCgroups returns the report on a node's pod cgroups.
func (c *Client) PodCgroups(ctx context.Context, node string) (json.RawMessage, error) {
	var answer json.RawMessage
	err := c.get(ctx, Request{node, PodCgroups}, "", &answer)
	return answer, err
}

// Devices returns the devices of a node.
func (c *Client) Devices(ctx context.Context, node string) (*cluster.NodeDevices, error) {
	var answer NodeDevices
	if err := c.get(ctx, Request{node, Devices}, DevicesKind, &answer); err != nil {
		return nil, err
	}
	return &answer.NodeDevices, nil
}

func (c *Client) get(ctx context.Context, r Request, kind string, answer any) error {
	return c.Weir.Get(ctx, r.String(), r.path(), nil, kind, answer)
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
