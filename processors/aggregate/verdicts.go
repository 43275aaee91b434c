package aggregate

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// verdicts keeps a batch's verdicts on CPU and memory to one for each entity:
// earlier steps have spoken already, and the outermost reason wins. Verdicts on
// rejected samples are about other instances, and stay beside it.
type verdicts struct {
	batch *metric.Batch
	at    map[verdictKey]int
	taken bool // a verdict was withdrawn
}

type verdictKey struct {
	entity metric.Entity
	group  metric.Group
}

func newVerdicts() verdicts { return verdicts{at: map[verdictKey]int{}} }

// begin takes over the verdicts b has.
func (v *verdicts) begin(b *metric.Batch) {
	v.batch, v.taken = b, false
	clear(v.at)
	for i := range b.Verdicts {
		o := &b.Verdicts[i]
		if (o.Group == metric.CPU || o.Group == metric.Memory) && o.Entity.Part == "" && !ofRejected(o.Reason) {
			v.at[verdictKey{o.Entity, o.Group}] = i
		}
	}
}

func ofRejected(r metric.Reason) bool {
	return r.Layer() == metric.LayerIdentity && r != metric.Ambiguous
}

// explain adds a verdict, unless there is one that lies as far out or further,
// and returns the reason of the one that stands.
func (v *verdicts) explain(e metric.Entity, g metric.Group, reason metric.Reason, why metric.Evidence) metric.Reason {
	if i, ok := v.at[verdictKey{e, g}]; ok && v.batch.Verdicts[i].Reason.Layer() <= reason.Layer() {
		return v.batch.Verdicts[i].Reason
	}
	v.replace(e, g, reason, why)
	return reason
}

// replace makes this the verdict, whatever was said before.
func (v *verdicts) replace(e metric.Entity, g metric.Group, reason metric.Reason, why metric.Evidence) {
	verdict := metric.Verdict{Entity: e, Group: g, Reason: reason, Evidence: why}
	key := verdictKey{e, g}
	if i, ok := v.at[key]; ok {
		v.batch.Verdicts[i] = verdict
		return
	}
	v.at[key] = len(v.batch.Verdicts)
	v.batch.Verdicts = append(v.batch.Verdicts, verdict)
}

// withdraw takes back what was said of numbers that have been replaced.
func (v *verdicts) withdraw(e metric.Entity, g metric.Group) {
	if len(v.at) == 0 {
		return // Fast path: nothing was said
	}
	if i, ok := v.at[verdictKey{e, g}]; ok {
		v.batch.Verdicts[i].Reason = metric.Measured
		v.taken = true
	}
}

// end removes what was withdrawn.
func (v *verdicts) end() {
	if v.taken {
		v.batch.Verdicts = slices.DeleteFunc(v.batch.Verdicts, func(o metric.Verdict) bool { return o.Reason == metric.Measured })
	}
	v.batch = nil
}
