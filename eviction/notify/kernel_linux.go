package notify

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// kernel holds the watches in one epoll set. It blocks a thread of its own in epoll_wait
// where Go's poller would not: a pressure trigger forgets that it was pulled as soon as it
// is polled, so it must be asked by nobody but us (Go's poller, asked to wait for the set,
// would eat the notice).
type kernel struct {
	put    func(time.Time, Source)
	follow time.Duration
	epoll  int
	kicker int // an eventfd that wakes wait

	mu struct {
		sync.Mutex
		closed bool
		token  int32           // of the last descriptor
		tokens map[int32]held  // what the set holds
		held   map[string]held // by key
	}
}

// held is a watch in force. Its methods are called with the lock held.
type held interface {
	// move makes it what is wanted now, under the same key.
	move(Watch) error
	// woken says what happened; false for nothing.
	woken() (Source, bool, error)
	// close gives back its descriptors.
	close()
}

// again is how soon a doubtful threshold is looked at anew (see threshold.doubt).
const again = 5 * time.Millisecond

// kickToken is the kicker's; the held ones count from 1.
const kickToken = 0

func newKernel(put func(time.Time, Source), follow time.Duration) (*kernel, error) {
	k := &kernel{put: put, follow: follow, kicker: -1}
	k.mu.tokens, k.mu.held = map[int32]held{}, map[string]held{}
	var err error
	if k.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("create epoll: %w", err)
	}
	if k.kicker, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: kickToken}
		err = unix.EpollCtl(k.epoll, unix.EPOLL_CTL_ADD, k.kicker, &event)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create eventfd: %w", err), k.close())
	}
	return k, nil
}

// update makes the watches those in force.
func (k *kernel) update(watches []Watch) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.closed {
		return ErrClosed
	}
	wanted := make(map[string]bool, len(watches))
	for _, w := range watches {
		wanted[w.key()] = true
	}
	for key := range k.mu.held {
		if !wanted[key] {
			k.drop(key)
		}
	}
	var errs []error
	for _, w := range watches {
		h, ok := k.mu.held[w.key()]
		if ok {
			err := h.move(w)
			if err == nil {
				continue
			}
			if !short(err) {
				k.drop(w.key())
			}
			if !gone(err) {
				errs = append(errs, &Error{w, err})
				continue
			}
			// Another cgroup may be there under the name of the removed one.
		}
		h, err := k.open(w)
		if err != nil {
			errs = append(errs, &Error{w, err})
			continue
		}
		k.mu.held[w.key()] = h
	}
	k.kick() // the wait may have had nothing to follow
	return errors.Join(errs...)
}

func (k *kernel) open(w Watch) (held, error) {
	switch w := w.(type) {
	case Threshold:
		return openThreshold(k, w)
	case Trigger:
		return openTrigger(k, w)
	case Events:
		return openEvents(k, w)
	default:
		return nil, fmt.Errorf("unknown watch %T", w)
	}
}

// add has the set wait for a descriptor, and returns the token it comes under.
func (k *kernel) add(fd int, events uint32, h held) (int32, error) {
	k.mu.token++
	event := unix.EpollEvent{Events: events, Fd: k.mu.token}
	if err := unix.EpollCtl(k.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return 0, fmt.Errorf("add to epoll: %w", err)
	}
	k.mu.tokens[k.mu.token] = h
	return k.mu.token, nil
}

// forget is for a descriptor that was closed, which also took it out of the set: nobody
// else has it. What is still on its way under the token is for nobody.
func (k *kernel) forget(token int32) { delete(k.mu.tokens, token) }

// drop ends a watch.
func (k *kernel) drop(key string) {
	h := k.mu.held[key]
	delete(k.mu.held, key)
	h.close()
}

// wait puts what the kernel tells, until the context ends.
func (k *kernel) wait(ctx context.Context) error {
	events := make([]unix.EpollEvent, 16)
	next := time.Now().Add(k.follow)
	for ctx.Err() == nil {
		n, err := unix.EpollWait(k.epoll, events, k.timeout(next))
		at := time.Now()
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			k.woken(at, e.Fd)
		}
		due := !at.Before(next)
		k.look(due)
		if due {
			next = time.Now().Add(k.follow)
		}
	}
	return nil
}

// woken hears one descriptor.
func (k *kernel) woken(at time.Time, token int32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if token == kickToken {
		drain(k.kicker)
		return
	}
	// One that was closed meanwhile has no token any more.
	if h, ok := k.mu.tokens[token]; ok {
		source, tell, err := h.woken()
		k.hear(at, source, tell, err)
	}
}

// timeout is how many milliseconds to wait at most, -1 for ever, if figures are to follow
// next then.
func (k *kernel) timeout(next time.Time) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	timeout := -1
	for _, h := range k.mu.held {
		t, ok := h.(*threshold)
		switch {
		case !ok:
		case t.doubt > 0:
			return int(again / time.Millisecond)
		case k.follow > 0:
			timeout = int(max(0, time.Until(next)+time.Millisecond-1) / time.Millisecond)
		}
	}
	return timeout
}

// look reads what the kernel does not tell of: doubtful thresholds, and, if the time has
// come, where figures follow to.
func (k *kernel) look(due bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	due = due && k.follow > 0
	for _, h := range k.mu.held {
		t, ok := h.(*threshold)
		if !ok || !due && t.doubt == 0 {
			continue
		}
		t.doubt = max(0, t.doubt-1)
		source, tell, err := t.set()
		k.hear(time.Now(), source, tell, err)
	}
}

// hear passes on what a watch tells. One whose cgroup is gone is dropped, or its
// descriptor would wake us for ever. Of other errors the next Update tells.
func (k *kernel) hear(at time.Time, s Source, tell bool, err error) {
	if gone(err) {
		s.Gone, tell = true, true
		k.drop(s.Watch.key())
	}
	if tell {
		k.put(at, s)
	}
}

// kick wakes wait.
func (k *kernel) kick() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(k.kicker, one[:]) // full is as good
}

func (k *kernel) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.closed {
		return nil
	}
	k.mu.closed = true
	for key := range k.mu.held {
		k.drop(key)
	}
	err := unix.Close(k.epoll)
	if k.kicker >= 0 {
		err = errors.Join(err, unix.Close(k.kicker))
	}
	return err
}

// gone says that the cgroup of an open file was removed.
func gone(err error) bool { return errors.Is(err, unix.ENODEV) }

// short says that there is no room for more: what is watched stays so, at its old figure.
func short(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.ENOSPC)
}

// drain clears an eventfd, and says whether anything was in it.
func drain(fd int) bool {
	var count [8]byte
	_, err := unix.Read(fd, count[:])
	return err == nil
}
