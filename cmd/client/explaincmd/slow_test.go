package explaincmd

import (
	"context"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain/slow"
)

// Slow returns two pods of namespace shop that waited, and none of others. Namespace storm has too many, and
// the names there are hostile. Pod unread has no stalls.
func (t *testCluster) Slow(_ context.Context, q slow.Query) (*slow.Report, error) {
	r := &slow.Report{Namespace: string(q.Namespace), Pod: string(q.Pod), At: noon, WindowSeconds: q.Window.Seconds(), Measured: 4, Pods: []slow.Slow{},
		Summary: "No pod in the cluster waited for CPU, memory or disk I/O for more than 1% of the last 5m."}
	switch {
	case q.Namespace == "storm":
		r.Summary, r.LeftOut = "3,100 pods in namespace storm waited for CPU, memory or disk I/O for more than 1% of the last 5m.", 3099
		r.Pods = []slow.Slow{{Namespace: "storm", Pod: "$(reboot)", Lost: 1, Resource: slow.CPU, Cause: slow.Neighbours, Message: "waited for CPU 100% of the last 5m, because of storm/b\x1b[2J"}}
	case q.Pod == "gone":
		return nil, unknown("pod " + string(q.Namespace) + "/gone")
	case q.Pod == "unread":
		r.Pods = []slow.Slow{{Namespace: "shop", Pod: "unread", Node: "n2", From: before(5 * time.Minute), To: noon,
			Summary: "Pod shop/unread was not measured: what it waited for is not known.", Stalls: []slow.Stall{{Resource: slow.CPU}},
			NotKnown: []string{"weir reads no stalls of node n2: /metrics/resource has none."}}}
		r.Summary = r.Pods[0].Summary
	case q.Namespace != "" && q.Namespace != "shop":
	case q.Pod != "":
		r.Pods = shopSlow()[:1]
		r.Summary = r.Pods[0].Summary
	default:
		r.Summary, r.Pods = "2 pods waited for CPU, memory or disk I/O for more than 1% of the last 5m. Of 1 pod the stalls are not known.", shopSlow()
		r.NotMeasured, r.NotKnown = 1, "weir reads no stalls of node n2: /metrics/resource has none."
	}
	return r, nil
}

func shopSlow() []slow.Slow {
	some, full, none, throttled := 0.62, 0.6, 0.0, 0.45
	return []slow.Slow{{
		Namespace: "shop", Pod: "web-1", Node: "n1", Workload: &cluster.Owner{Kind: "Deployment", Name: "web"}, From: before(5 * time.Minute), To: noon, MeasuredSeconds: 300,
		Summary: "Pod shop/web-1 waited for CPU 62% of the last 5m: 45% held back by its own CPU limit of 500m, 17% because of batch/import.",
		Message: "waited for CPU 62% of the last 5m: 45% held back by its own CPU limit of 500m, 17% because of batch/import",
		Lost:    0.62, Resource: slow.CPU, Cause: slow.OwnLimit,
		Stalls: []slow.Stall{
			{Resource: slow.CPU, Some: &some, Full: &full, Throttled: &throttled, Parts: []slow.Part{{Cause: slow.OwnLimit, Share: 0.45}, {Cause: slow.Neighbours, Share: 0.17}},
				Neighbours: []slow.Neighbour{{Namespace: "batch", Pod: "import", Used: 3.2, Above: 2.7, Share: 0.17}}},
			{Resource: slow.Memory, Some: &none, Full: &none}, {Resource: slow.IO},
		},
		Evidence: []string{
			"CPU: some thread waited 62% of the time, and all that could run at once 60%",
			"container app has a CPU limit of 500m: threads were held back for 0.5s of each second, added up over CPUs, and used 380m",
			"node n1 used 3950m of 4000m while the pod waited, the pod 380m",
			"batch/import used 3200m, 2700m above its request: 17% of the time",
		},
		Advice: "Raise limits.cpu of container app, or remove that limit: `weir resize recommend` shows what fits.",
	}, {
		Namespace: "shop", Pod: "db-0", Node: "n1", Lost: 0.08, Resource: slow.IO, Cause: slow.OwnUse, Message: "waited for disk I/O 8% of the last 5m, for what it reads and writes itself",
	}}
}
