package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// pause waits for ctx to end. Process 1 of a pod's shared process namespace
// inherits what other containers leave behind: it reaps that.
func pause(ctx context.Context) error {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	for {
		reap()
		select {
		case <-children:
		case <-ctx.Done():
			return nil
		}
	}
}

// reap takes the status of every child that has ended. Signals merge, so one
// may stand for many.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
	}
}
