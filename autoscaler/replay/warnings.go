package replay

import (
	"fmt"
	"time"
)

// warnings say where the model's assumptions do not fit this trace and this
// specification.
func (r *run) warnings() (list []string) {
	for i := range r.targets {
		tg := &r.targets[i]
		switch {
		case !tg.react:
			list = append(list, fmt.Sprintf("%s has a target of kind Value: it is replayed as it was, and does not fall when pods are added, so the count may run to a limit", tg.name))
		case tg.bytes:
			list = append(list, fmt.Sprintf("%s is replayed as if it spread over more pods as CPU does; what each pod needs for itself does not, so fewer pods look better than they are", tg.name))
		}
	}
	for i := range r.trace.Containers {
		if at := r.saturated(&r.trace.Containers[i]); at > 0 {
			c := &r.trace.Containers[i]
			list = append(list, fmt.Sprintf("container %s was at %.0f%% of its CPU limit (%dm) or above for %s: it would have used more on more pods, which no trace can tell, so the demand then is a lower bound",
				c.Name, r.options.Saturation*100, c.Limits.CPU.Milli, at))
		}
	}
	if r.trace.Startup.Pods == 0 {
		list = append(list, fmt.Sprintf("the trace does not tell how long pods take to become ready: taken to be %s", r.options.Startup))
	}
	if t := r.meter.totals.Unknown; t > 0 {
		list = append(list, fmt.Sprintf("for %s a metric is not known: no totals count that time, and nothing scales by that metric in it", t.Duration()))
	}
	return list
}

// saturated is how long container c was throttled, as far as the recorded count of
// pods tells.
func (r *run) saturated(c *Container) time.Duration {
	if !c.Limits.CPU.Set || c.Limits.CPU.Milli <= 0 || r.options.Saturation <= 0 {
		return 0
	}
	var at time.Duration
	for _, p := range r.result.Points {
		used, ok := c.CPU.At(p.At, r.trace.hold())
		if ok && p.Recorded > 0 && used*1000 >= r.options.Saturation*float64(c.Limits.CPU.Milli)*float64(p.Recorded) {
			at += r.options.Sync
		}
	}
	return at
}
