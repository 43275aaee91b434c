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

// Options configures a Notifier. The zero value is ready to use.
type Options struct {
	// MaxInterval is the longest time between two calls. Default 10 s, the kubelet's interval.
	MaxInterval time.Duration
	// MinInterval bounds the rate of calls: of any three calls in a row, the last begins at least
	// MinInterval after the first. Two calls may follow each other at once, so a notice that comes
	// slightly too early does not delay the next one. Default 100 ms.
	MinInterval time.Duration
}

// Notifier calls a function at each notice. Several goroutines may call its methods at any time.
type Notifier struct {
	options    Options
	mailbox    *mailbox
	kernel     *kernel
	running    sync.Mutex // Run locks it
	wakeWithin atomic.Int64
}

// New returns a Notifier without watches. The caller must close it.
func New(o Options) (*Notifier, error) {
	o.MaxInterval = cmp.Or(o.MaxInterval, 10*time.Second)
	o.MinInterval = cmp.Or(o.MinInterval, 100*time.Millisecond)
	box := newMailbox()
	k, err := newKernel(box.add)
	if err != nil {
		return nil, fmt.Errorf("set up notices: %w", err)
	}
	return &Notifier{options: o, mailbox: box, kernel: k}, nil
}

// Update sets all watches of the kernel. An existing watch stays without a gap. A watch that is not
// in the list ends.
//
// The result has a *WatchError for each watch that fails; the others are active. The next Update
// tries again.
func (n *Notifier) Update(watches ...Watch) []error { return n.kernel.update(watches) }

// WakeWithin sets the timer to d once, if d is less than MaxInterval. In Run's function d counts
// from the function's return; before Run it counts from Run's start.
func (n *Notifier) WakeWithin(d time.Duration) { n.wakeWithin.Store(int64(max(d, 1))) }

// Notify gives notice of a change that the caller found by reading: of a Poll or a MemoryPoll.
func (n *Notifier) Notify(s NoticeSource) { n.mailbox.add(time.Now(), s) }

// Run calls f for every notice, one call at a time, until the context ends, and then returns nil.
// Its goroutines have ended when it returns.
func (n *Notifier) Run(ctx context.Context, f func(context.Context, Notice)) error {
	if !n.running.TryLock() {
		return errors.New("run the notifier: it runs already")
	}
	defer n.running.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		failed <- n.kernel.run(ctx)
		cancel()
	}()
	sooner := func() time.Duration { return time.Duration(n.wakeWithin.Swap(0)) }
	n.mailbox.deliver(ctx, n.options.MaxInterval, n.options.MinInterval, sooner, func(notice Notice) { f(ctx, notice) })
	n.kernel.wake()
	if err := <-failed; err != nil {
		return fmt.Errorf("wait for notices: %w", err)
	}
	return nil
}

// Close closes all descriptors. Call it after Run has returned. A second call has no effect.
func (n *Notifier) Close() error { return n.kernel.close() }
