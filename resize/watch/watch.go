// Package watch decides whether a change of requests hurts the pods of a workload: states of the pods
// before and after it in, and the first harm out. It has no clock and asks nobody.
//
//	w := watch.New(before, waits)
//	if harm := w.Look(now, pods, waitsNow); harm != nil { ... } // again and again
package watch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weir-metrics/weir/resize"
)

// When something counts as harm.
const (
	// notReadyFor is how long a pod that was ready may be not ready.
	notReadyFor = 20 * time.Second
	// readingsAbove is how many readings of CPU in a row, all above the request, count as harm.
	readingsAbove = 3
	// moreWaiting is how much more than before a pod may wait, as a share of the time, and moreThrottled how
	// much longer its threads may be held back, in seconds a second over all CPUs.
	moreWaiting, moreThrottled = 0.1, 0.1
)

// Pod is what is known about a pod at one time.
type Pod struct {
	Name string
	// Ready is whether the pod is ready, and Ended why it ended; empty while it lives.
	Ready bool
	Ended string
	// Containers have the requests that the change makes smaller, also in the state before it.
	Containers []Container
}

// Container is what is known about a container at one time.
type Container struct {
	Name     string
	Restarts int32
	// LastEnd is how its last run ended: "OOMKilled, exit code 137".
	LastEnd  string
	Requests resize.Amounts
	// Used is what it uses, by a reading of the time At. What is not known is not set.
	Used resize.Amounts
	At   time.Time
}

// Waits are what a pod waits for. What is not known is nil. CPU and Memory are shares of the time in which
// the pod waits, without waits for itself; Throttled is how many seconds of each second its threads are held
// back by CPU limits, over all CPUs.
type Waits struct{ CPU, Memory, Throttled *float64 }

// Harm is what hurts.
type Harm struct {
	Pod     string
	Restart bool   // a container was restarted
	Message string // a sentence without a stop
}

// Watch compares pods with those before a change.
type Watch struct {
	pods     map[string]Pod
	waits    map[string]Waits
	notReady map[string]time.Time
	above    map[string]aboveRequest
}

// aboveRequest is how many readings in a row are above a request, up to the reading of a time.
type aboveRequest struct {
	readings int
	at       time.Time
}

// New returns a Watch of pods as they are before the change, with what they wait for.
func New(before []Pod, waits map[string]Waits) *Watch {
	w := &Watch{map[string]Pod{}, waits, map[string]time.Time{}, map[string]aboveRequest{}}
	for _, p := range before {
		w.pods[p.Name] = p
	}
	return w
}

// AboveMemory returns the first container that uses more memory than it is to request; nil if there is none.
func AboveMemory(pods []Pod) *Harm {
	for i := range pods {
		for _, c := range pods[i].Containers {
			if request, used := c.Requests.Memory, c.Used.Memory; request.Set && used.Set && used.Value > request.Value {
				return harm(pods[i].Name, "%s of %s uses %s of memory, more than the %s that it is to request", c.Name, pods[i].Name, resize.FormatAmount(resize.Memory, used.Value), resize.FormatAmount(resize.Memory, request.Value))
			}
		}
	}
	return nil
}

func harm(pod, format string, args ...any) *Harm {
	return &Harm{Pod: pod, Message: fmt.Sprintf(format, args...)}
}

// Look returns what hurts now; nil if nothing does. A pod that was not there before is compared with its
// first state.
func (w *Watch) Look(now time.Time, pods []Pod, waits map[string]Waits) *Harm {
	for i := range pods {
		p := &pods[i]
		before, known := w.pods[p.Name]
		if !known {
			before, w.pods[p.Name] = *p, *p
		}
		if h := cmp.Or(w.lookAtPod(now, &before, p), w.compareWaits(p.Name, waits[p.Name])); h != nil {
			return h
		}
	}
	return AboveMemory(pods)
}

func (w *Watch) lookAtPod(now time.Time, before, p *Pod) *Harm {
	if p.Ended != "" && before.Ended == "" {
		return harm(p.Name, "pod %s ended: %s", p.Name, p.Ended)
	}
	for _, c := range p.Containers {
		i := slices.IndexFunc(before.Containers, func(b Container) bool { return b.Name == c.Name })
		if i >= 0 && c.Restarts > before.Containers[i].Restarts {
			h := harm(p.Name, "%s of %s was restarted: %s", c.Name, p.Name, cmp.Or(c.LastEnd, "why is not known"))
			h.Restart = true
			return h
		}
		if h := w.countAbove(p.Name, &c); h != nil {
			return h
		}
	}
	since, waiting := w.notReady[p.Name]
	switch {
	case p.Ready || !before.Ready:
		delete(w.notReady, p.Name)
	case !waiting:
		w.notReady[p.Name] = now
	case now.Sub(since) >= notReadyFor:
		return harm(p.Name, "pod %s, which was ready, has not been ready for %v", p.Name, now.Sub(since).Round(time.Second))
	}
	return nil
}

// countAbove counts readings of CPU above the request.
func (w *Watch) countAbove(pod string, c *Container) *Harm {
	key := pod + "/" + c.Name
	last := w.above[key]
	switch {
	case !c.Used.CPU.Set || !c.Requests.CPU.Set || !c.At.After(last.at):
		return nil
	case c.Used.CPU.Value <= c.Requests.CPU.Value:
		w.above[key] = aboveRequest{0, c.At}
		return nil
	}
	if w.above[key] = (aboveRequest{last.readings + 1, c.At}); last.readings+1 < readingsAbove {
		return nil
	}
	return harm(pod, "%s of %s uses %s of CPU, more than the %s that it requests, in %d readings in a row", c.Name, pod,
		resize.FormatAmount(resize.CPU, c.Used.CPU.Value), resize.FormatAmount(resize.CPU, c.Requests.CPU.Value), readingsAbove)
}

// compareWaits compares what a pod waits for with what it waited for before.
func (w *Watch) compareWaits(pod string, now Waits) *Harm {
	before := w.waits[pod]
	more := func(now, before *float64, margin float64) (earlier float64, worse bool) {
		if before != nil {
			earlier = *before
		}
		return earlier, now != nil && *now > earlier+margin
	}
	if earlier, worse := more(now.Throttled, before.Throttled, moreThrottled); worse {
		return harm(pod, "the CPU limit holds back threads of %s for %.2f s each second, %.2f s before", pod, *now.Throttled, earlier)
	}
	if earlier, worse := more(now.CPU, before.CPU, moreWaiting); worse {
		return harm(pod, "pod %s waits for CPU %.0f%% of the time, %.0f%% before", pod, *now.CPU*100, earlier*100)
	}
	if earlier, worse := more(now.Memory, before.Memory, moreWaiting); worse {
		return harm(pod, "pod %s waits for memory %.0f%% of the time, %.0f%% before", pod, *now.Memory*100, earlier*100)
	}
	return nil
}
