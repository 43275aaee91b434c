package resourcemetrics

import (
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// world is what reasons are made of: the very state the answer is read from. Only
// an answer that lacks something asks for it.
func (a *answer) world() *explain.World {
	return &explain.World{Now: a.options.Now(), View: a.view, Facts: a.facts, Sources: a.options.Sources()}
}

// why says why a pod or node is not served; known is false if nobody has ever
// spoken of it.
func (a *answer) why(e metric.Entity) (r explain.Ruling, known bool) {
	r, known = a.world().Rule(e, metric.CPUUsageRate, metric.MemoryWorkingSet)
	return absent(r), known
}

// absent returns r. Where r finds a pod served as a whole, it is missing here because
// no container of it is known, and this API serves containers.
func absent(r explain.Ruling) explain.Ruling {
	if r.Served {
		return explain.Ruling{Reason: metric.NotReported, Said: "the node reports the pod as a whole and none of its containers"}
	}
	return r
}
