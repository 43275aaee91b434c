//go:build linux

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockFile locks a file, which it creates if it does not exist, and returns a
// function that unlocks it. The kernel also unlocks it when the process ends.
// The process that has the lock may remove the file before it unlocks it. If
// another process has the lock, lockFile calls waiting once, unless waiting is
// nil.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("take lock: %w", err)
	}
	var lockFile *os.File
	err = poll(ctx, 100*time.Millisecond, func() (done bool, err error) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return false, err
		}
		defer func() {
			if !done {
				f.Close()
			}
		}()
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case errors.Is(err, unix.EWOULDBLOCK):
			if waiting != nil {
				waiting()
				waiting = nil
			}
			return false, nil
		case err != nil:
			return false, err
		}
		lockFile = f
		return current(f, path), nil // the process that had the lock may have removed the file
	})
	if err != nil {
		return nil, fmt.Errorf("take lock %s: %w", path, err)
	}
	return func() { lockFile.Close() }, nil
}

// current reports whether path is still the file that is open as f.
func current(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(opened, there)
}

// poll calls f until it returns done or an error, or ctx ends. Real processes
// have no other way to show that they are ready.
func poll(ctx context.Context, every time.Duration, f func() (done bool, err error)) error {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		if done, err := f(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
		}
	}
}

// removeAll removes a folder. It tries again while the kernel still unmounts
// something in it.
func removeAll(ctx context.Context, dir string) error {
	var last error
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	err := poll(ctx, 50*time.Millisecond, func() (bool, error) {
		last = os.RemoveAll(dir)
		return last == nil, nil
	})
	if err != nil {
		return last
	}
	return nil
}
