package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Options are settings. The zero value is ready to use.
type Options struct {
	// Floor is the longest that Run stays silent. Default 10 s, as often as the kubelet
	// looks.
	Floor time.Duration
	// Gap is the shortest time from one call to the next, so that usage which sways
	// about a figure does not take all of a processor. A first notice never waits.
	// Default 100 ms.
	Gap time.Duration
	// Follow is how often thresholds follow the page cache of their cgroup, and are looked
	// at for a crossing that the kernel did not tell of: it costs a read of memory.stat
	// and of the usage each. Default 1 s; negative for only at an Update.
	Follow time.Duration
}

func (o Options) withDefaults() Options {
	o.Floor = cmp.Or(o.Floor, 10*time.Second)
	o.Gap = cmp.Or(o.Gap, 100*time.Millisecond)
	o.Follow = cmp.Or(o.Follow, time.Second)
	return o
}

// Notifier gives notice. Its methods may be called at any time, by anyone, but that Close
// must not be called from within Run's function.
type Notifier struct {
	options Options
	box     *mailbox
	kernel  *kernel
	closing context.Context
	close   context.CancelFunc
	running sync.Mutex // held by Run
	sooner  atomic.Int64
}

// New returns a Notifier that watches nothing yet. Close it.
func New(o Options) (*Notifier, error) {
	o = o.withDefaults()
	if o.Floor < 0 || o.Gap < 0 {
		return nil, fmt.Errorf("set up notices: floor %s and gap %s must not be negative", o.Floor, o.Gap)
	}
	box := newMailbox()
	k, err := newKernel(box.put, o.Follow)
	if err != nil {
		return nil, fmt.Errorf("set up notices: %w", err)
	}
	n := &Notifier{options: o, box: box, kernel: k}
	n.closing, n.close = context.WithCancel(context.Background())
	return n, nil
}

// Update says what to watch from now on, all of it. A watch that was there stays as it is,
// or moves to its new figure with no moment unwatched in between; one not named ends.
//
// What cannot be watched is told by an *Error each, joined; the others are in force. The
// next Update tries again.
//
// A Threshold that is crossed already when it is first watched, or when its figure moves,
// gives notice once: the kernel would not.
//
// Each figure that moves takes the kernel milliseconds, so call it after the decision, not
// before.
func (n *Notifier) Update(watches ...Watch) error {
	var errs []error
	seen := make(map[string]bool, len(watches))
	good := make([]Watch, 0, len(watches))
	for _, w := range watches {
		err := w.check()
		if err == nil && seen[w.key()] {
			err = errors.New("it is named twice")
		}
		if err != nil {
			errs = append(errs, &Error{w, err})
			continue
		}
		seen[w.key()] = true
		good = append(good, w)
	}
	return errors.Join(append(errs, n.kernel.update(good))...)
}

// Sooner has the timer come after d, once, if that is before the floor and nothing else
// comes: for what is due at a time known beforehand. It is for Run's function, and counts from its
// return; or it is called before Run, and counts from its start.
func (n *Notifier) Sooner(d time.Duration) { n.sooner.Store(int64(max(d, 1))) }

// Saw gives notice of what somebody else saw.
func (n *Notifier) Saw(l Look) { n.box.put(time.Now(), Source{Watch: l}) }

// Run calls f for every notice, one call at a time, until the context ends or the Notifier
// is closed; then what it started has ended. The error is nil at the end of the context,
// and ErrClosed when closed.
func (n *Notifier) Run(ctx context.Context, f func(context.Context, Notice)) error {
	if !n.running.TryLock() {
		if n.closing.Err() != nil {
			return ErrClosed
		}
		return errors.New("run the notifier: it runs already")
	}
	defer n.running.Unlock()
	if n.closing.Err() != nil {
		return ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.closing, cancel)()

	failed := make(chan error, 1)
	go func() {
		failed <- n.kernel.wait(ctx)
		cancel()
	}()
	sooner := func() time.Duration { return time.Duration(n.sooner.Swap(0)) }
	n.box.deliver(ctx, n.options.Floor, n.options.Gap, sooner, func(notice Notice) { f(ctx, notice) })
	n.kernel.kick()
	if err := <-failed; err != nil {
		return fmt.Errorf("wait for notices: %w", err)
	}
	if n.closing.Err() != nil {
		return ErrClosed
	}
	return nil
}

// Close ends Run, waits for it, and gives back all descriptors. It may be called again.
func (n *Notifier) Close() error {
	n.close()
	n.running.Lock()
	defer n.running.Unlock()
	return n.kernel.close()
}

// deliver calls f for what comes into the box, until the context ends. What sooner says, if not
// zero, is after how long the timer is to come, in place of the floor: it is asked at the start and
// after each call.
func (m *mailbox) deliver(ctx context.Context, floor, gap time.Duration, sooner func() time.Duration, f func(Notice)) {
	wait := func() time.Duration {
		if d := sooner(); d > 0 {
			return min(d, floor)
		}
		return floor
	}
	timer := time.NewTimer(wait())
	defer timer.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		// The gap since the last call; at the start there is none.
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-m.full:
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return
		}
		notice := m.fetch()
		if len(notice.Sources) == 0 {
			notice = Notice{At: time.Now(), Sources: []Source{{}}}
		}
		pause.Reset(gap)
		timer.Reset(floor)
		f(notice)
		if d := wait(); d < floor {
			timer.Reset(d)
		}
	}
}
