// Package background runs beside a test what the test needs: a server, a loop.
package background

import (
	"context"
	"sync"
	"testing"
)

// Run calls run in a goroutine until stop is called, or until the end of the test. Both wait until run has
// returned, and fail the test if it returned an error.
func Run(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("what ran beside the test returned %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
