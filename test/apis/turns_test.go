//go:build e2e

package apis

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// The servers of metrics.k8s.io: a namespace and the Service in it.
var (
	ours   = named{"weir-system", "weir"}
	theirs = named{"metrics-server", "metrics-server"}
)

// turns makes tests wait for each other if they want different servers for
// metrics.k8s.io. Tests that want the same server run in parallel.
type turns struct {
	mu      sync.Mutex
	who     named         // the server, while users > 0
	users   int           // tests that use it
	changed chan struct{} // closed when the last of them ends
}

// take waits for a turn with the server who. The first test of the turn calls
// do before the others continue.
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

// give ends a test's turn. The last test of a turn calls undo before the next
// turn.
func (u *turns) give(undo func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.users--; u.users == 0 {
		undo()
		close(u.changed)
	}
}

// resourceMetricsFrom registers a Service for metrics.k8s.io until the end of
// the test. It waits for tests that want another one.
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

// register makes who serve v1beta1. v1 is registered for weir only: metrics-server does not serve it.
func (w *testCluster) register(ctx context.Context, t *testing.T, who named) {
	t.Helper()
	if who == theirs {
		if _, stderr, err := w.Kubectl(ctx, "delete", "apiservice", "v1.metrics.k8s.io", "--ignore-not-found"); err != nil {
			t.Errorf("delete the APIService of v1: %v: %s", err, stderr)
		}
	} else if err := w.Apply(ctx, fmt.Sprintf(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.metrics.k8s.io"},`+
		`"spec":{"group":"metrics.k8s.io","version":"v1","groupPriorityMinimum":100,"versionPriority":50,"insecureSkipTLSVerify":true,`+
		`"service":{"namespace":%q,"name":%q,"port":443}}}`, who.namespace, who.name)); err != nil {
		t.Errorf("apply the APIService of v1: %v", err)
	}
	_, stderr, err := w.Kubectl(ctx, "patch", "apiservice", "v1beta1.metrics.k8s.io", "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"service":{"namespace":%q,"name":%q,"port":443}}}`, who.namespace, who.name))
	if err != nil {
		t.Errorf("patch the APIService: %v: %s", err, stderr)
	}
}
