package notify_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-metrics/weir/eviction/notify"
	"github.com/weir-metrics/weir/test/background"
)

// recordedNotices is a notice with the time at which it was passed on.
type recordedNotices struct {
	notify.Notice
	when time.Time
}

// listen runs a notifier until the test ends.
func listen(t testing.TB, o notify.Options) (*notify.Notifier, <-chan recordedNotices) {
	t.Helper()
	n, err := notify.New(o)
	if err != nil {
		t.Fatal(err)
	}
	notices := make(chan recordedNotices, 1000)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	background.Run(t, func(ctx context.Context) error {
		return n.Run(ctx, func(_ context.Context, notice notify.Notice) {
			notices <- recordedNotices{notice, time.Now()}
		})
	})
	return n, notices
}

// update calls Update and joins its errors.
func update(n *notify.Notifier, watches ...notify.Watch) error {
	return errors.Join(n.Update(watches...)...)
}

// await returns the first source that want accepts.
func await(t testing.TB, notices <-chan recordedNotices, what string, want func(notify.NoticeSource) bool) (notify.NoticeSource, recordedNotices) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case n := <-notices:
			for _, s := range n.Sources {
				if want(s) {
					return s, n
				}
			}
		case <-late:
			t.Fatalf("no notice of %s", what)
		}
	}
}
