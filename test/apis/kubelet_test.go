//go:build e2e

package apis

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-metrics/weir/test/cluster/harness"
)

// counts are the CPU times that the kubelet reports for containers, by
// "pod/container", each with its timestamp.
type counts struct {
	mu sync.Mutex
	of map[string][]counted
}

// counts reads the kubelet's counters of these containers until the end of the
// test.
func (w *testCluster) counts(t *testing.T, namespace string, names []string) *counts {
	t.Helper()
	c := &counts{of: map[string][]counted{}}
	// The kubelet reads its cgroups about every ten seconds.
	background(t, 2*time.Second, func() bool {
		body, err := w.metricsResource(t.Context())
		if err == nil {
			err = c.add(body, namespace, names)
		}
		if err != nil && t.Context().Err() == nil {
			t.Errorf("read the kubelet's counts: %v", err)
		}
		return true
	})
	return c
}

// add adds the new counts of an answer.
func (c *counts) add(body, namespace string, names []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		pod, container, _ := strings.Cut(name, "/")
		_, values, ok := strings.Cut(body, fmt.Sprintf("\ncontainer_cpu_usage_seconds_total{container=%q,namespace=%q,pod=%q} ", container, namespace, pod))
		if !ok {
			continue
		}
		var seconds float64
		var milliseconds int64
		if _, err := fmt.Sscan(values, &seconds, &milliseconds); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		at, all := time.UnixMilli(milliseconds), c.of[name]
		if len(all) == 0 || at.After(all[len(all)-1].at) {
			c.of[name] = append(all, counted{at, harness.Use{CPU: time.Duration(seconds * 1e9)}})
		}
	}
	return nil
}

// has reports whether a claim is the rate between two counts of that container,
// to a thousandth. The window of a pod is that of the container whose window
// ends first. Other windows end later, by less than the longest time between
// two counts.
func (c *counts) has(name string, want claim) bool {
	const apart = 20 * time.Second
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.of[name]
	for j, end := range all {
		if end.at.Before(want.at) || end.at.Sub(want.at) > apart {
			continue
		}
		for _, begin := range all[:j] {
			window := end.at.Sub(begin.at)
			rate := 1000 * float64(end.CPU-begin.CPU) / float64(window)
			if (window-want.window).Abs() <= apart && math.Abs(rate-want.millicores) <= want.millicores/1000 {
				return true
			}
		}
	}
	return false
}

// metricsResource returns the present answer of the kubelet's
// /metrics/resource.
func (w *testCluster) metricsResource(ctx context.Context) (string, error) {
	return get(ctx, fmt.Sprintf("http://%s:10255/metrics/resource", w.NodeIP()))
}
