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

// kernel has the active triggers, and blocks a thread in poll. It does not use Go's poller: a trigger
// is reset as soon as it is polled, so Go's poller would consume the notice.
type kernel struct {
	report func(time.Time, NoticeSource)
	wakeFD int // an eventfd that makes poll return

	mu struct {
		sync.Mutex
		closed   bool
		triggers map[StallTrigger]int // the descriptors of the pressure files
	}
}

func newKernel(report func(time.Time, NoticeSource)) (*kernel, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("create eventfd: %w", err)
	}
	k := &kernel{report: report, wakeFD: fd}
	k.mu.triggers = map[StallTrigger]int{}
	return k, nil
}

// update makes watches the active watches.
func (k *kernel) update(watches []Watch) (errs []error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.closed {
		return []error{errors.New("the notifier is closed")}
	}
	wanted := map[StallTrigger]bool{}
	for _, w := range watches {
		t, ok := w.(StallTrigger)
		if !ok {
			errs = append(errs, &WatchError{w, errors.New("the kernel sends no notice of it")})
			continue
		}
		wanted[t] = true
		if _, ok := k.mu.triggers[t]; ok {
			continue
		}
		fd, err := openTrigger(t)
		if err != nil {
			errs = append(errs, &WatchError{t, err})
			continue
		}
		k.mu.triggers[t] = fd
	}
	for t := range k.mu.triggers {
		if !wanted[t] {
			k.remove(t)
		}
	}
	k.wake()
	return errs
}

// openTrigger registers a trigger with the kernel, and returns the descriptor to poll.
func openTrigger(t StallTrigger) (int, error) {
	fd, err := unix.Open(t.Path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		if _, err = unix.Write(fd, fmt.Appendf(nil, "%s %d %d\x00", t.share(), t.Stall.Microseconds(), t.Window.Microseconds())); err != nil {
			_ = unix.Close(fd)
		}
	}
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP):
		return 0, fmt.Errorf("%w: the kernel keeps no pressure stall information (it needs Linux 4.20, CONFIG_PSI, and psi=1 at boot where that is not the default)", err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return 0, fmt.Errorf("%w: before Linux 6.5 a trigger needs CAP_SYS_RESOURCE, and the file must be writable", err)
	case errors.Is(err, unix.EINVAL):
		return 0, fmt.Errorf("%w: before Linux 5.13 the kernel does not report when all tasks wait for a processor", err)
	}
	return fd, err
}

// remove closes a trigger. The caller has locked k.mu.
func (k *kernel) remove(t StallTrigger) {
	_ = unix.Close(k.mu.triggers[t])
	delete(k.mu.triggers, t)
}

// run reports the notices of the kernel until the context ends.
func (k *kernel) run(ctx context.Context) error {
	for ctx.Err() == nil {
		files, triggers := k.polled()
		_, err := unix.Poll(files, -1)
		at := time.Now()
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("poll: %w", err)
		case files[0].Revents != 0:
			var count [8]byte
			_, _ = unix.Read(k.wakeFD, count[:]) // resets it
		}
		for i, t := range triggers {
			k.handle(at, t, files[i+1])
		}
	}
	return nil
}

// polled returns what to poll: wakeFD, and then the file of each trigger.
func (k *kernel) polled() (files []unix.PollFd, triggers []StallTrigger) {
	k.mu.Lock()
	defer k.mu.Unlock()
	files = append(files, unix.PollFd{Fd: int32(k.wakeFD), Events: unix.POLLIN})
	for t, fd := range k.mu.triggers {
		files, triggers = append(files, unix.PollFd{Fd: int32(fd), Events: unix.POLLPRI}), append(triggers, t)
	}
	return files, triggers
}

// handle reports a notice if the trigger has one. A file that is gone would make each poll return at
// once. So its trigger is removed, and the next Update tries to open it again.
func (k *kernel) handle(at time.Time, t StallTrigger, file unix.PollFd) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if fd, ok := k.mu.triggers[t]; !ok || int32(fd) != file.Fd {
		return // it was removed while it was polled
	}
	switch {
	case file.Revents&unix.POLLERR != 0:
		k.remove(t)
	case file.Revents&unix.POLLPRI != 0:
		k.report(at, NoticeSource{Watch: t})
	}
}

// wake makes poll return.
func (k *kernel) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(k.wakeFD, one[:]) // a full eventfd also wakes poll
}

func (k *kernel) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.closed {
		return nil
	}
	k.mu.closed = true
	for t := range k.mu.triggers {
		k.remove(t)
	}
	return unix.Close(k.wakeFD)
}
