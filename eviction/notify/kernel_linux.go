package notify

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// kernel has the active watches in one epoll set, and blocks a thread in epoll_wait. It does not
// use Go's poller: a pressure trigger is reset as soon as it is polled, so Go's poller would
// consume the notice.
type kernel struct {
	report func(time.Time, NoticeSource)
	epoll  int
	wakeFD int // an eventfd that wakes run

	mu struct {
		sync.Mutex
		closed  bool
		token   int32                  // the token of the newest descriptor
		tokens  map[int32]activeWatch  // the watches in the epoll set, by token
		watches map[string]activeWatch // all watches, by key
	}
}

// activeWatch is a watch that is registered with the kernel. The caller of its methods has locked
// k.mu.
type activeWatch interface {
	// check returns an error if the watch no longer works.
	check() error
	// readNotice returns what happened; false if nothing did.
	readNotice() (NoticeSource, bool, error)
	// close closes the descriptors of the watch.
	close()
}

// wakeToken is the token of wakeFD. The tokens of watches begin with 1.
const wakeToken = 0

func newKernel(put func(time.Time, NoticeSource)) (*kernel, error) {
	k := &kernel{report: put, wakeFD: -1}
	k.mu.tokens, k.mu.watches = map[int32]activeWatch{}, map[string]activeWatch{}
	var err error
	if k.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("create epoll: %w", err)
	}
	if k.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: wakeToken}
		err = unix.EpollCtl(k.epoll, unix.EPOLL_CTL_ADD, k.wakeFD, &event)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create eventfd: %w", err), k.close())
	}
	return k, nil
}

// update makes watches the active watches.
func (k *kernel) update(watches []Watch) (errs []error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.closed {
		return []error{errors.New("the notifier is closed")}
	}
	wanted := make(map[string]bool, len(watches))
	for _, w := range watches {
		wanted[w.key()] = true
	}
	for key := range k.mu.watches {
		if !wanted[key] {
			k.remove(key)
		}
	}
	for _, w := range watches {
		h, ok := k.mu.watches[w.key()]
		if ok {
			err := h.check()
			if err == nil {
				continue
			}
			if !outOfResources(err) {
				k.remove(w.key())
			}
			if !cgroupRemoved(err) {
				errs = append(errs, &WatchError{w, err})
				continue
			}
			// A new cgroup may have the name of the removed one.
		}
		h, err := k.open(w)
		if err != nil {
			errs = append(errs, &WatchError{w, err})
			continue
		}
		k.mu.watches[w.key()] = h
	}
	return errs
}

func (k *kernel) open(w Watch) (activeWatch, error) {
	t, ok := w.(StallTrigger)
	if !ok {
		return nil, unsupported("the kernel sends no notice of it")
	}
	return openTrigger(k, t)
}

// add adds a descriptor to the epoll set, and returns the token of its events.
func (k *kernel) add(fd int, events uint32, h activeWatch) (int32, error) {
	k.mu.token++
	event := unix.EpollEvent{Events: events, Fd: k.mu.token}
	if err := unix.EpollCtl(k.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return 0, fmt.Errorf("add to epoll: %w", err)
	}
	k.mu.tokens[k.mu.token] = h
	return k.mu.token, nil
}

// removeToken removes the token of a closed descriptor. The close also removed the descriptor from
// the epoll set. An event that is still queued for the token is ignored.
func (k *kernel) removeToken(token int32) { delete(k.mu.tokens, token) }

// remove closes a watch and removes it.
func (k *kernel) remove(key string) {
	h := k.mu.watches[key]
	delete(k.mu.watches, key)
	h.close()
}

// run reports the notices of the kernel until the context ends.
func (k *kernel) run(ctx context.Context) error {
	events := make([]unix.EpollEvent, 16)
	for ctx.Err() == nil {
		n, err := unix.EpollWait(k.epoll, events, -1)
		at := time.Now()
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			k.handleEvent(at, e.Fd)
		}
	}
	return nil
}

// handleEvent reads one descriptor that has an event.
func (k *kernel) handleEvent(at time.Time, token int32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if token == wakeToken {
		drainEventfd(k.wakeFD)
		return
	}
	// A descriptor that was closed in between no longer has a token.
	if h, ok := k.mu.tokens[token]; ok {
		source, changed, err := h.readNotice()
		k.handleNotice(at, source, changed, err)
	}
}

// handleNotice reports the notice of a watch. It removes a watch if its cgroup was removed, because
// the descriptor would stay ready forever. The next Update reports other errors.
func (k *kernel) handleNotice(at time.Time, s NoticeSource, changed bool, err error) {
	if cgroupRemoved(err) {
		s.Gone, changed = true, true
		k.remove(s.Watch.key())
	}
	if changed {
		k.report(at, s)
	}
}

// wake makes run return from epoll_wait.
func (k *kernel) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(k.wakeFD, one[:]) // a full eventfd also wakes run
}

func (k *kernel) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.closed {
		return nil
	}
	k.mu.closed = true
	for key := range k.mu.watches {
		k.remove(key)
	}
	err := unix.Close(k.epoll)
	if k.wakeFD >= 0 {
		err = errors.Join(err, unix.Close(k.wakeFD))
	}
	return err
}

// cgroupRemoved reports whether the cgroup of an open file was removed.
func cgroupRemoved(err error) bool { return errors.Is(err, unix.ENODEV) }

// outOfResources reports whether descriptors or memory are exhausted. The watch then keeps its old
// figure.
func outOfResources(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.ENOSPC)
}

// drainEventfd clears an eventfd, and reports whether it had a count.
func drainEventfd(fd int) bool {
	var count [8]byte
	_, err := unix.Read(fd, count[:])
	return err == nil
}

// kernelFile is an open kernel file that is read repeatedly from its start. It is not an os.File,
// because Go's poller must not poll it (see kernel).
type kernelFile struct {
	path string
	fd   int
	buf  []byte
}

func openFile(path string, flags int) (*kernelFile, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return &kernelFile{path: path, fd: fd}, nil
	}
}

// read returns the content of the file, which is valid until the next read.
func (f *kernelFile) read() ([]byte, error) {
	f.buf = f.buf[:0]
	for {
		f.buf = slices.Grow(f.buf, 4096)
		n, err := unix.Pread(f.fd, f.buf[len(f.buf):cap(f.buf)], int64(len(f.buf)))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, &os.PathError{Op: "read", Path: f.path, Err: err}
		case n == 0:
			return f.buf, nil
		default:
			f.buf = f.buf[:len(f.buf)+n]
		}
	}
}

func (f *kernelFile) write(b []byte) error {
	if _, err := unix.Write(f.fd, b); err != nil {
		return &os.PathError{Op: "write", Path: f.path, Err: err}
	}
	return nil
}

func (f *kernelFile) close() {
	if f != nil {
		_ = unix.Close(f.fd)
	}
}

// fileMissing reports whether an open failed because the directory has no such file.
func fileMissing(path string, err error) bool {
	if !errors.Is(err, unix.ENOENT) {
		return false
	}
	_, err = os.Stat(filepath.Dir(path))
	return err == nil
}
