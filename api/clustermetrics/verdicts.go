package clustermetrics

import (
	"strconv"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// verdictsFamily is the only family that is not in the catalogue. It counts the entities that have
// a missing or doubtful number, by reason.
const verdictsFamily = "weir_verdicts"

// alwaysShownKinds are the kinds that have a series even if the count is 0. Dashboards and alerts
// can then distinguish "none" from "no answer", and changes() counts the first verdict.
var alwaysShownKinds = [...]metric.Kind{metric.Node, metric.Pod, metric.Container}

// verdictCount counts entities by reason. It counts an entity once for each reason, also if several
// groups, instances or sources have it. The next answer uses it again.
type verdictCount struct {
	node   metric.NodeName
	seen   map[entityReason]struct{} // of one node at a time, so that it stays small
	counts [metric.NumKinds][metric.NumReasons]int
}

type entityReason struct {
	entity metric.Entity
	reason metric.Reason
}

// add counts v, if it is about a whole entity's CPU or memory.
func (c *verdictCount) add(v *metric.Verdict) {
	if v.Entity.Node != c.node {
		clear(c.seen)
		c.node = v.Entity.Node
	}
	key := entityReason{v.Entity, v.Reason}
	if _, counted := c.seen[key]; counted {
		return
	}
	if c.seen == nil {
		c.seen = map[entityReason]struct{}{}
	}
	c.seen[key] = struct{}{}
	c.counts[v.Entity.Kind][v.Reason]++
}

// concernsUsage reports whether v reports that the CPU or memory of a whole entity is missing or in
// doubt.
func concernsUsage(v *metric.Verdict) bool {
	return (v.Group == metric.CPU || v.Group == metric.Memory) && v.Entity.Part == "" &&
		v.Reason.Layer() != metric.LayerNone && int(v.Entity.Kind) < metric.NumKinds && int(v.Reason) < metric.NumReasons
}

// reasonApplies reports whether entities of kind k can have the reason r. A node has no instance
// that identity or rate could confuse, and only a pod has containers.
func reasonApplies(r metric.Reason, k metric.Kind) bool {
	switch r.Layer() {
	case metric.LayerNone:
		return false
	case metric.LayerLife, metric.LayerIdentity:
		return k != metric.Node
	case metric.LayerPod:
		return k == metric.Pod
	}
	return true
}

// verdicts writes weir_verdicts{reason,level} of the entities that pass the filters. It has few
// series, and they do not count towards the limit.
func (e *exposition) verdicts(v MetricsReader, f filters) {
	if !f.family(verdictsFamily) {
		return
	}
	c := &e.counts
	clear(c.seen)
	*c = verdictCount{seen: c.seen}
	for verdict := range v.Verdicts() {
		if !concernsUsage(&verdict) || !f.level(verdict.Entity.Kind) {
			continue
		}
		if labels, _ := series.LabelsOf(&verdict.Entity); f.entity(&labels) {
			c.add(&verdict)
		}
	}
	steady := [metric.NumKinds]bool{}
	if f.matchAllNames() {
		for _, k := range alwaysShownKinds {
			steady[k] = f.level(k)
		}
	}
	e.header(verdictsFamily, "Entities whose CPU or memory is missing or in doubt, by reason (docs/reasons.md); each once for a reason.", "gauge")
	for k := range c.counts {
		for r, n := range c.counts[k] {
			if n == 0 && (!steady[k] || !reasonApplies(metric.Reason(r), metric.Kind(k))) {
				continue
			}
			e.buf = append(e.buf, verdictsFamily...)
			e.buf = append(e.buf, `{reason="`...)
			e.buf = append(e.buf, metric.Reason(r).String()...)
			e.buf = append(e.buf, `",level="`...)
			e.buf = append(e.buf, metric.Kind(k).String()...)
			e.buf = append(e.buf, `"} `...)
			e.buf = strconv.AppendInt(e.buf, int64(n), 10)
			e.buf = append(e.buf, '\n')
		}
	}
}
