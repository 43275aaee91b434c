package explaincmd

import (
	"context"
	"net/http"
	"time"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cmd/client/cli"
	eviction "github.com/weir-metrics/weir/eviction/evictionreport"
)

// Eviction returns a report without problems for n1. n2 has no agent.
func (t *testCluster) Eviction(_ context.Context, node string) (*eviction.EvictionReport, error) {
	switch node {
	case "n1":
		return noPressure(node), nil
	case "n2":
		return nil, cli.Advised(&weirdev.Problem{Status: http.StatusServiceUnavailable, Message: "no agent answers on node n2: connection refused", Hint: "Install deploy/kustomize/components/agent."})
	}
	return nil, unknown("node " + node)
}

// noPressure is a node that has memory left, and a pod with control characters in its name.
func noPressure(node string) *eviction.EvictionReport {
	number := func(v float64) *float64 { return &v }
	return &eviction.EvictionReport{
		Node: node, Mode: "observe", State: eviction.Normal, Summary: node + ": no threshold is met", At: noon,
		ReadAt: before(2 * time.Second), DecidedAt: before(2 * time.Second), WokenBy: "timer", DecidedAfterSeconds: 0.0021, Outcome: "NoneInForce", MaxIntervalSeconds: 10,
		Signals: []eviction.Signal{{
			Name: "memory.available", Unit: eviction.Bytes, Value: number(4 << 30), Capacity: number(8 << 30), MeasuredAt: before(2 * time.Second),
			Thresholds: []eviction.Threshold{{
				Text: "memory.available<100Mi", Hard: true, State: eviction.NotMet, Limit: number(100 << 20), Goal: number(100 << 20),
				Distance: number(3996 << 20), DistancePercent: number(48.8), Message: "3.9Gi (48.8%) away"}},
			Ranking: &eviction.Ranking{Unit: eviction.Bytes, Next: "shop/web-1", Message: "shop/web-1, the only pod that can be evicted", Pods: []eviction.RankedPod{
				{Namespace: "shop", Name: "ill\x1b[2J", UID: "u-2", OverRequest: true, Usage: number(1 << 30), Request: number(0), Excess: number(1 << 30), BeforeNextBy: "Excess", Skipped: "Critical", Message: "it is a static pod"},
				{Namespace: "shop", Name: "web-1", UID: "u-1", OverRequest: true, Usage: number(180 << 20), Request: number(100 << 20), Excess: number(80 << 20), BeforeNextBy: "None"},
			}},
		}},
		Admission: &eviction.Admission{BestEffort: true, Tolerating: true, Requesting: true, Critical: true, Message: "any would be admitted"},
	}
}
