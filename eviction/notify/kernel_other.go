//go:build !linux

package notify

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// kernel gives no notices on this operating system.
type kernel struct{}

func newKernel(func(time.Time, NoticeSource)) (*kernel, error) { return &kernel{}, nil }

func (*kernel) update(watches []Watch) (errs []error) {
	for _, w := range watches {
		errs = append(errs, &WatchError{w, errors.New(runtime.GOOS + " has no such notice; only Linux has")})
	}
	return errs
}

func (*kernel) run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (*kernel) wake()        {}
func (*kernel) close() error { return nil }
