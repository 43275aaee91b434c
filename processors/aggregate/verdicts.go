package aggregate

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// verdicts keeps a batch's verdicts on CPU and memory to one for each entity:
// earlier steps have spoken already, and the outermost reason wins. Verdicts on
// rejected samples are about other instances, and stay beside it.
type verdicts struct {
	batch     *metric.Batch
	at        hashIndex[verdictKey]
	withdrawn bool // a verdict was withdrawn
}

type verdictKey struct {
	entity metric.Entity
	group  metric.Group
}

func (v *verdicts) key(at int) verdictKey {
	o := &v.batch.Verdicts[at]
	return verdictKey{o.Entity, o.Group}
}

// begin takes over the verdicts b has.
func (v *verdicts) begin(b *metric.Batch) {
	v.batch, v.withdrawn = b, false
	v.at.clear()
	for i := range b.Verdicts {
		o := &b.Verdicts[i]
		if o.Group != metric.CPU && o.Group != metric.Memory || o.Entity.Part != "" || o.Reason.Layer() == metric.LayerIdentity {
			continue
		}
		if before, ok := v.find(&o.Entity, o.Group); ok {
			// Two steps have spoken: the reason further out stands.
			if b.Verdicts[before].Reason.Layer() <= o.Reason.Layer() {
				before = i
			} else {
				v.at.set(i, v.key)
			}
			b.Verdicts[before].Reason, v.withdrawn = metric.Measured, true
			continue
		}
		v.at.set(i, v.key)
	}
}

// find returns the place of the verdict on a group of e among the batch's.
func (v *verdicts) find(e *metric.Entity, g metric.Group) (int, bool) {
	return v.at.find(verdictKey{*e, g}, v.key)
}

// explain adds a verdict, unless there is one that lies as far out or further,
// and returns what the one that stands says.
func (v *verdicts) explain(e metric.Entity, g metric.Group, reason metric.Reason, why metric.Evidence) (metric.Reason, metric.Evidence) {
	if i, ok := v.find(&e, g); ok && v.batch.Verdicts[i].Reason.Layer() <= reason.Layer() {
		return v.batch.Verdicts[i].Reason, v.batch.Verdicts[i].Evidence
	}
	v.replace(e, g, reason, why)
	return reason, why
}

// reasonFor returns what the verdict says that an earlier step has given a group
// of a sample. A step that gave the sample its reason and no verdict has spoken
// without evidence; the verdict is added.
func (v *verdicts) reasonFor(s *metric.Sample, g metric.Group, reason metric.Reason, otherwise metric.Evidence) (metric.Reason, metric.Evidence) {
	if i, ok := v.find(&s.Entity, g); ok {
		return v.batch.Verdicts[i].Reason, v.batch.Verdicts[i].Evidence
	}
	v.replace(s.Entity, g, reason, otherwise)
	return reason, otherwise
}

// evidence returns what identity's verdict on a sample of e rests on.
func (v *verdicts) evidence(e metric.Entity, reason metric.Reason) metric.Evidence {
	for i := range v.batch.Verdicts {
		if o := &v.batch.Verdicts[i]; o.Reason == reason && o.Entity == e {
			return o.Evidence
		}
	}
	return metric.Evidence{}
}

// removeObsolete makes verdicts agree with what is served: a number that stands has none,
// unless its instance was chosen without support. Then a verdict on that instance
// says beside what it was chosen.
func (v *verdicts) removeObsolete() {
	b := v.batch
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Rejected() || s.Entity.Part != "" {
			continue
		}
		for _, g := range wholeGroups {
			switch {
			case !s.Servable(g):
			case s.Reasons[g] == metric.Measured:
				v.withdraw(s.Entity, g)
			case !v.has(s.Entity, g, metric.Ambiguous):
				chosen := v.evidence(s.Entity, metric.Ambiguous)
				chosen.Got, chosen.Other = chosen.Other, chosen.Got
				v.replace(s.Entity, g, metric.Ambiguous, chosen)
				at, _ := v.find(&s.Entity, g)
				v.batch.Verdicts[at].Instance = s.Instance
			}
		}
	}
}

// has reports whether the verdict on a group of e has that reason.
func (v *verdicts) has(e metric.Entity, g metric.Group, reason metric.Reason) bool {
	i, ok := v.find(&e, g)
	return ok && v.batch.Verdicts[i].Reason == reason
}

// replace makes this the verdict, whatever was said before.
func (v *verdicts) replace(e metric.Entity, g metric.Group, reason metric.Reason, why metric.Evidence) {
	verdict := metric.Verdict{Entity: e, Group: g, Reason: reason, Evidence: why}
	if i, ok := v.find(&e, g); ok {
		v.batch.Verdicts[i] = verdict
		return
	}
	v.batch.Verdicts = append(v.batch.Verdicts, verdict)
	v.at.set(len(v.batch.Verdicts)-1, v.key)
}

// withdraw takes back what was said of numbers that have been replaced.
func (v *verdicts) withdraw(e metric.Entity, g metric.Group) {
	if i, ok := v.find(&e, g); ok {
		v.batch.Verdicts[i].Reason = metric.Measured
		v.withdrawn = true
	}
}

// end removes what was withdrawn.
func (v *verdicts) end() {
	if v.withdrawn {
		v.batch.Verdicts = slices.DeleteFunc(v.batch.Verdicts, func(o metric.Verdict) bool { return o.Reason == metric.Measured })
	}
	v.batch = nil
}
