package notify

import (
	"context"
	"slices"
	"sync"
	"time"
)

// mailbox collects sources until deliver takes them as one Notice.
type mailbox struct {
	// ready has one element while the mailbox is not empty.
	ready chan struct{}
	mu    struct {
		sync.Mutex
		Notice
	}
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

// add adds a source with its time.
func (m *mailbox) add(at time.Time, s NoticeSource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.mu.Sources) == 0 {
		m.mu.At = at
		m.ready <- struct{}{} // it never blocks, because takeAll empties both
	}
	i := slices.IndexFunc(m.mu.Sources, func(o NoticeSource) bool { return o.Watch == s.Watch })
	if i < 0 {
		m.mu.Sources = append(m.mu.Sources, s)
		return
	}
	m.mu.Sources[i] = s
}

// takeAll returns all sources as one Notice, and empties the mailbox.
func (m *mailbox) takeAll() Notice {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.ready:
	default:
	}
	n := m.mu.Notice
	m.mu.Notice = Notice{}
	return n
}

// deliver calls f with the content of the mailbox until the context ends. It calls sooner at the
// start and after each call of f. If the result is not zero, it replaces the timer's interval once.
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
	var last time.Time // of the last call
	for {
		// This is the gap since the last call but one; at the start there is none.
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-m.ready:
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return
		}
		notice := m.takeAll()
		if len(notice.Sources) == 0 {
			notice = Notice{At: time.Now(), Sources: []NoticeSource{{}}}
		}
		pause.Reset(time.Until(last.Add(gap)))
		timer.Reset(floor)
		last = time.Now()
		f(notice)
		if d := wait(); d < floor {
			timer.Reset(d)
		}
	}
}
