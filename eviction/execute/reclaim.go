package execute

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-metrics/weir/eviction"
)

// Reclaimer removes unused containers and images from the node.
type Reclaimer interface {
	// Reclaim removes all objects of the collection, and returns what it freed. If there is an error,
	// the result includes what was removed before it.
	Reclaim(context.Context, eviction.Collection) (Freed, error)
}

// Freed is what a collection removed.
type Freed struct {
	Items int   // the number of removed containers or images
	Bytes int64 // as the runtime reports it; 0 if it does not report it
}

// Reclaim carries out the collections of a decision, in order, and returns an outcome for each. If
// one fails, it continues with the next.
func (e *Executor) Reclaim(ctx context.Context, d *eviction.Decision) []ActionOutcome {
	if len(d.Reclaim) == 0 {
		return nil
	}
	signal, hard := "", false
	if d.Acting >= 0 && d.Acting < len(d.Thresholds) {
		t := &d.Thresholds[d.Acting].Threshold
		signal, hard = string(t.Signal), t.Hard()
	}
	outcomes := make([]ActionOutcome, len(d.Reclaim))
	for i, c := range d.Reclaim {
		o := &outcomes[i]
		*o = ActionOutcome{At: time.Now(), Mode: e.opts.Mode, Signal: signal, Hard: hard, Collection: c}
		switch {
		case e.opts.Mode == Observe:
			o.setResult(Observed, "would remove %s for %s; the mode is observe", collectionText(c), signal)
		case e.opts.Reclaimer == nil:
			o.setResult(NoReclaimer, "did not remove %s for %s: --eviction-reclaim is not set", collectionText(c), signal)
		default:
			e.removeUnused(ctx, c, o)
		}
		e.metrics.countOutcome(o)
	}
	return outcomes
}

// collectionText returns the name of a collection for people.
func collectionText(c eviction.Collection) string {
	if c == eviction.UnusedImages {
		return "every unused image"
	}
	return "every ended container"
}

func (e *Executor) removeUnused(ctx context.Context, c eviction.Collection, o *ActionOutcome) {
	ctx, cancel := context.WithTimeout(ctx, reclaimTimeout)
	defer cancel()
	freed, err := e.opts.Reclaimer.Reclaim(ctx, c)
	e.metrics.countFreed(c, freed)
	if err != nil {
		o.Err = fmt.Errorf("remove unused %ss: %w", c, err)
		o.setResult(Failed, "removed %d unused %ss (%d bytes) for %s, not all: %v", freed.Items, c, freed.Bytes, o.Signal, o.Err)
		return
	}
	o.setResult(Collected, "removed %d unused %ss (%d bytes) for %s", freed.Items, c, freed.Bytes, o.Signal)
}
