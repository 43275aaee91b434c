package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// pause waits for ctx to end. It also reaps processes: process 1 of a pod's
// shared process namespace inherits those that other containers leave behind.
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

// reap reads the status of every child that has ended. Signals merge, so there
// may be several children for one signal.
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
