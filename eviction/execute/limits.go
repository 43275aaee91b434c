package execute

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// pace holds pods apart.
type pace struct {
	gap, window time.Duration
	most        int
	done        []time.Time // of those in the window
	free        time.Time   // the end of the last round
}

// next returns when the next pod may go and why not now; zero if it may.
func (p *pace) next(now time.Time) (time.Time, string) {
	p.done = slices.DeleteFunc(p.done, func(t time.Time) bool { return now.Sub(t) >= p.window })
	if len(p.done) >= p.most {
		return p.done[len(p.done)-p.most].Add(p.window), fmt.Sprintf("%d pods went in the last %v, as many as may", len(p.done), p.window)
	}
	if at := p.free.Add(p.gap); !p.free.IsZero() && at.After(now) {
		return at, fmt.Sprintf("the last pod went less than %v ago", p.gap)
	}
	return time.Time{}, ""
}

// attempt is what is tried again later: another way is another attempt, so that a budget
// in the way of a soft threshold does not hold up a hard one.
type attempt struct {
	uid    types.UID
	delete bool
}

// wait is how an attempt stands.
type wait struct {
	until time.Time
	times int
	last  Outcome
}

// backoff remembers what was blocked or failed.
type backoff struct {
	most  time.Duration
	waits map[attempt]*wait
}

// next returns how an attempt stands if it is not its time yet.
func (b *backoff) next(a attempt, now time.Time) *wait {
	// One that is not decided again within its longest wait has passed.
	for key, w := range b.waits {
		if now.Sub(w.until) > b.most {
			delete(b.waits, key)
		}
	}
	if w := b.waits[a]; w != nil && w.until.After(now) {
		return w
	}
	return nil
}

// failed returns when to try again: after first, doubled for each failure before up to most, and
// at least after what the API server asked for.
func (b *backoff) failed(a attempt, now time.Time, first, most, asked time.Duration, o Outcome) time.Time {
	w := b.waits[a]
	if w == nil {
		w = &wait{}
		b.waits[a] = w
	}
	d := most
	if w.times < 30 {
		d = min(first<<w.times, most)
	}
	w.times++
	w.until, w.last = now.Add(max(d, asked)), o
	return w.until
}
