//go:build e2e

package faults

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/weir-metrics/weir/test/commands"
	"github.com/weir-metrics/weir/test/promtest"
)

// secure returns the URL of a weir's HTTPS port, and the arguments that open it.
func secure(t *testing.T) (url string, arguments []string) {
	t.Helper()
	address := promtest.Address(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return "https://" + address, []string{"--secure-port=" + port, "--bind-address=127.0.0.1", "--authentication-skip-lookup", "--shutdown-delay-duration=2s"}
}

// lists counts the LISTs of metrics.k8s.io that a caller made, each over a connection of its own unless
// reuse is set.
type lists struct {
	mu      sync.Mutex
	made    int
	failed  []error
	slowest time.Duration
	fewest  int           // pods of a LIST
	oldest  time.Duration // of a pod, to a second
}

// ask sends LISTs until ctx ends, and waits for the last one.
func (l *lists) ask(ctx context.Context, url, token string, reuse bool, pause time.Duration) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: !reuse}}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		began := time.Now()
		list, err := commands.ListPods(context.WithoutCancel(ctx), client, url, token)
		now := time.Now()
		l.mu.Lock()
		if l.made++; err != nil {
			l.failed = append(l.failed, err)
		} else {
			if l.made-len(l.failed) == 1 || len(list.Items) < l.fewest {
				l.fewest = len(list.Items)
			}
			for i := range list.Items {
				l.oldest = max(l.oldest, now.Sub(list.Items[i].Timestamp.Time))
			}
		}
		l.slowest = max(l.slowest, now.Sub(began))
		l.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// check fails the test if a LIST failed or lacked a pod, or if one had a number older than two intervals.
func (l *lists) check(t *testing.T, pods int) {
	t.Helper()
	if l.made == 0 || len(l.failed) > 0 {
		t.Errorf("%d of %d LISTs failed: %v", len(l.failed), l.made, l.failed)
	}
	if l.fewest != pods {
		t.Errorf("a LIST had %d pods, want %d", l.fewest, pods)
	}
	if most := 2*interval + time.Second; l.oldest > most { // timestamps are whole seconds
		t.Errorf("a LIST had a number that was %v old, want at most %v", l.oldest, most)
	}
}
