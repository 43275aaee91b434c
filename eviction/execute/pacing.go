package execute

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// evictionPace limits how fast pods are evicted.
type evictionPace struct {
	gap, window time.Duration
	most        int
	done        []time.Time // the evictions in the window
	free        time.Time   // the end of the last eviction
}

// next returns the time at which the next pod may be evicted, and the reason for the wait. The time
// is zero if the pod may be evicted now.
func (p *evictionPace) next(now time.Time) (time.Time, string) {
	p.done = slices.DeleteFunc(p.done, func(t time.Time) bool { return now.Sub(t) >= p.window })
	if len(p.done) >= p.most {
		return p.done[len(p.done)-p.most].Add(p.window), fmt.Sprintf("%d pods were evicted in the last %v, which is the limit", len(p.done), p.window)
	}
	if at := p.free.Add(p.gap); !p.free.IsZero() && at.After(now) {
		return at, fmt.Sprintf("the last eviction was less than %v ago", p.gap)
	}
	return time.Time{}, ""
}

// attempt is the key of a backoff. Eviction and deletion of a pod are different attempts, so that a
// budget that blocks a soft threshold does not delay a hard one.
type attempt struct {
	uid    types.UID
	delete bool
}

// retryState is the backoff of an attempt.
type retryState struct {
	until time.Time
	times int
	last  ActionOutcome
}

// retryBackoff has the attempts that were blocked or failed.
type retryBackoff map[attempt]*retryState

// next returns the state of an attempt that must wait, or nil.
func (b retryBackoff) next(a attempt, now time.Time) *retryState {
	// An attempt that is not repeated within the longest backoff is removed.
	for key, w := range b {
		if now.Sub(w.until) > maxBackoff {
			delete(b, key)
		}
	}
	if w := b[a]; w != nil && w.until.After(now) {
		return w
	}
	return nil
}

// failed returns the time of the next attempt: after first, doubled for each earlier failure up to
// most, but not before the delay that the API server asked for.
func (b retryBackoff) failed(a attempt, now time.Time, first, most, asked time.Duration, o ActionOutcome) time.Time {
	w := b[a]
	if w == nil {
		w = &retryState{}
		b[a] = w
	}
	d := most
	if w.times < 30 {
		d = min(first<<w.times, most)
	}
	w.times++
	w.until, w.last = now.Add(max(d, asked)), o
	return w.until
}
