package reportbuilder

import (
	"fmt"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/guard"
	"github.com/weir-metrics/weir/eviction/notify"
	"github.com/weir-metrics/weir/internal/humanize"
)

// roundActions returns what a round did, the last action first.
func roundActions(round *guard.Round) []evictionreport.Action {
	var list []evictionreport.Action
	for i := len(round.Outcomes) - 1; i >= 0; i-- {
		a := newAction(&round.Outcomes[i])
		if len(round.Notice.Sources) > 0 {
			a.WokenBy, a.DecidedAfterSeconds = round.Notice.String(), round.DecidedAt.Sub(round.Notice.At).Seconds()
		}
		if !round.RepeatedSince.IsZero() {
			a.Since = round.RepeatedSince.UTC()
		}
		list = append(list, a)
	}
	return list
}

func newAction(o *execute.ActionOutcome) evictionreport.Action {
	a := evictionreport.Action{
		At: o.At.UTC(), Result: string(o.Result), Mode: string(o.Mode), Signal: o.Signal, Hard: o.Hard, Collection: string(o.Collection),
		GraceSeconds: o.GraceSeconds, Budget: o.Budget, Removed: o.Removed, WaitedSeconds: o.Waited.Seconds(), Message: o.Message,
	}
	if o.Pod != (eviction.PodIdentity{}) {
		a.Pod = o.Pod.String()
	}
	if !o.NotBefore.IsZero() {
		a.NotBefore = o.NotBefore.UTC()
	}
	return a
}

// newWatch returns the description of a watch.
func newWatch(w notify.Watch) evictionreport.Watch {
	switch w := w.(type) {
	case notify.MemoryPoll:
		return evictionreport.Watch{Kind: "Poll", Path: w.Path, Bytes: w.Figure,
			Message: fmt.Sprintf("%s: %s passes %s; %s is read at least every second, and more often the nearer that is", w.Name, w.Used(), humanize.Bytes(float64(w.Figure)), w.Path)}
	case notify.StallTrigger:
		share := "some"
		if w.Full {
			share = "all"
		}
		return evictionreport.Watch{Kind: "Trigger", Path: w.Path,
			Message: fmt.Sprintf("%s: %s tasks stall for %s within %s", w.Path, share, w.Stall, w.Window)}
	}
	return evictionreport.Watch{Message: w.String()}
}
