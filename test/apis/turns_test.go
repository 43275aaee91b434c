//go:build e2e

package apis

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// who answers for metrics.k8s.io: a namespace and the Service in it.
var (
	ours   = named{"weir-system", "weir"}
	theirs = named{"metrics-server", "metrics-server"}
)

// turns have tests wait for each other that want another server to answer for
// metrics.k8s.io. Those that want the same one run side by side.
type turns struct {
	mu      sync.Mutex
	who     named         // answers, while users > 0
	users   int           // tests that count on it
	changed chan struct{} // closed when the last of them ends
}

// take waits until it is the turn of those who want who. The first of them does do
// before the others go on.
func (u *turns) take(ctx context.Context, who named, do func()) error {
	for {
		u.mu.Lock()
		if u.users == 0 {
			u.who, u.changed = who, make(chan struct{})
			do()
		}
		if u.who == who {
			u.users++
			u.mu.Unlock()
			return nil
		}
		changed := u.changed
		u.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// give ends one's turn. The last of those who want a server does undo before the
// next have theirs.
func (u *turns) give(undo func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.users--; u.users == 0 {
		undo()
		close(u.changed)
	}
}

// resourceMetricsFrom has the API server ask a Service for metrics.k8s.io until the
// test ends. It waits for tests that want another.
func (w *testCluster) resourceMetricsFrom(t *testing.T, who named) {
	t.Helper()
	if err := w.answers.take(t.Context(), who, func() { w.register(t.Context(), t, who) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.answers.give(func() { w.register(context.Background(), t, ours) })
	})
	eventually(t, "the API server asks "+who.name, time.Minute, func() error {
		_, stderr, err := w.Kubectl(t.Context(), "top", "nodes")
		if err != nil {
			return fmt.Errorf("%w: %s", err, stderr)
		}
		return nil
	})
}

func (w *testCluster) register(ctx context.Context, t *testing.T, who named) {
	t.Helper()
	_, stderr, err := w.Kubectl(ctx, "patch", "apiservice", "v1beta1.metrics.k8s.io", "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"service":{"namespace":%q,"name":%q,"port":443}}}`, who.namespace, who.name))
	if err != nil {
		t.Errorf("patch the APIService: %v: %s", err, stderr)
	}
}
