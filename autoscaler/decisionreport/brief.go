package decisionreport

import (
	"time"

	"github.com/weir-metrics/weir/autoscaler"
)

// Brief is a decision in a line, for lists.
type Brief struct {
	Object
	Mode    string // Active, DryRun or Shadow
	Target  string
	At      time.Time
	Current int32
	Desired int32
	Min     int32
	Max     int32
	Summary string
	// Unknown are the names of the metrics that failed, and Lacking of how many pods
	// some metric has no number.
	Unknown []string
	Lacking int
	Failed  bool   // there is no decision
	Other   *Other // of an object that weir shadows
}

// BriefOf tells a decision in a line.
func BriefOf(d *autoscaler.Decision, c Context) Brief {
	t := newTeller(d, c)
	missing := t.missing()
	b := Brief{
		Object: Object{c.Kind, d.Object.Namespace, d.Object.Name}, Mode: c.Mode, Target: t.Target, At: d.At,
		Current: d.Current, Desired: d.Desired, Min: t.Min, Max: t.Max,
		Summary: t.summary(missing), Failed: t.undecided(), Other: c.Other,
	}
	for i := range d.Metrics {
		if d.Metrics[i].Err != nil {
			b.Unknown = append(b.Unknown, d.Metrics[i].Name)
		}
	}
	lacking := map[string]bool{}
	for i := range missing {
		for _, pod := range missing[i].Pods {
			lacking[pod] = true
		}
	}
	b.Lacking = len(lacking)
	return b
}
