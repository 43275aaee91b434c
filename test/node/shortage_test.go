//go:build e2e

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/test/cluster/harness"
)

// A shortage is the lack of one resource. Pods can be made to use that
// resource.
type shortage struct {
	name      string
	signal    string
	condition corev1.NodeConditionType
	// victim is the pod that must be evicted (see cast).
	victim string
	// kubelet is the kubelet's threshold. weir's threshold is higher by margin.
	kubelet, margin int64
	// near is the distance above a threshold at which weir reads again what pods
	// use.
	near int64
	// unit is a small amount of the resource.
	unit int64
	// available returns the available amount.
	available func() (int64, error)
	// take returns the request that makes a pod use n of the resource in total.
	// taken returns a pod's usage in the kubelet's statistics.
	take  func(n int64) string
	taken func(*stats.PodStats) *uint64
}

// used returns a pod's usage in the kubelet's statistics, which lag behind. The
// kubelet ranks pods by it.
func (w *testCluster) used(ctx context.Context, s *shortage, uid types.UID) (int64, error) {
	out, _, err := w.Kubectl(ctx, "get", "--raw", "/api/v1/nodes/"+w.Node()+"/proxy/stats/summary")
	if err != nil {
		return 0, err
	}
	var summary stats.Summary
	if err := json.Unmarshal([]byte(out), &summary); err != nil {
		return 0, fmt.Errorf("read the kubelet's summary: %w", err)
	}
	for i := range summary.Pods {
		if p := &summary.Pods[i]; p.PodRef.UID == string(uid) {
			if used := s.taken(p); used != nil {
				return int64(*used), nil
			}
		}
	}
	return 0, errors.New("the kubelet has no statistics of it")
}

func (s *shortage) weir() int64 { return s.kubelet + s.margin }

// step returns how much a pod takes at once when little more is left than is wanted.
func (s *shortage) step() int64 { return s.unit / 4 }

func (w *testCluster) memoryShortage() *shortage {
	s := &shortage{
		name: "memory", signal: "memory.available", condition: corev1.NodeMemoryPressure,
		victim:  "greedy-memory",
		kubelet: w.memory, margin: 1024 * mi, unit: 100 * mi, near: 500 * mi,
		available: func() (int64, error) {
			use, err := harness.MachineUse()
			return w.capacity - use.WorkingSet, err
		},
		take: func(n int64) string { return fmt.Sprintf("/hold?bytes=%d", n) },
		taken: func(p *stats.PodStats) *uint64 {
			if p.Memory == nil {
				return nil
			}
			return p.Memory.WorkingSetBytes
		},
	}
	if w.v2 {
		s.margin, s.unit, s.near = 300*mi, 40*mi, 150*mi
		s.available = w.availableOnV2
	}
	return s
}

// availableOnV2 returns what the kubelet calls memory.available where the root
// cgroup has no usage: all memory without what programs and the page cache
// have, but for the inactive part of the cache.
func (w *testCluster) availableOnV2() (int64, error) {
	text, err := w.readFile(context.Background(), "/sys/fs/cgroup/memory.stat")
	if err != nil {
		return 0, err
	}
	f := fields(text)
	return w.capacity - (f["anon"] + f["file"] - f["inactive_file"]), nil
}

func (w *testCluster) diskShortage(t *testing.T) *shortage {
	s := &shortage{
		name: "disk", signal: "nodefs.available", condition: corev1.NodeDiskPressure,
		victim:  "greedy-disk",
		kubelet: kubeletBytes, margin: 200 * mi, unit: 60 * mi, near: diskBytes / 100,
		available: w.statfs(t, func(s *unix.Statfs_t) int64 { return int64(s.Bavail) * s.Bsize }),
		take:      func(n int64) string { return fmt.Sprintf("/fill?dir=/data&bytes=%d", n) },
		taken: func(p *stats.PodStats) *uint64 {
			if p.EphemeralStorage == nil {
				return nil
			}
			return p.EphemeralStorage.UsedBytes
		},
	}
	if w.v2 {
		s.available = w.statfsOnV2("%a %S")
		n, err := s.available()
		if err != nil {
			t.Fatal(err)
		}
		w.inGuest(t, fmt.Sprintf("fallocate -l %d /ballast", n-diskBytes))
		t.Cleanup(func() { w.inGuest(t, "rm /ballast") })
		s.near = 3 * diskBytes / 100 // the disk is three times as large
	}
	return s
}

// statfsOnV2 returns a function that reads numbers of the virtual machine's disk, in a format of
// stat, and multiplies them.
func (w *testCluster) statfsOnV2(format string) func() (int64, error) {
	return func() (int64, error) {
		text, err := w.GuestOutput(context.Background(), "stat", "--file-system", "--format="+format, "/var/lib/kubelet")
		if err != nil {
			return 0, err
		}
		product := int64(1)
		for _, field := range strings.Fields(text) {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read %q: %w", text, err)
			}
			product *= n
		}
		return product, nil
	}
}

func (w *testCluster) inodeShortage(t *testing.T) *shortage {
	available := w.statfsOnV2("%d")
	if !w.v2 {
		available = w.statfs(t, func(s *unix.Statfs_t) int64 { return int64(s.Ffree) })
	}
	return &shortage{
		name: "inodes", signal: "nodefs.inodesFree", condition: corev1.NodeDiskPressure,
		victim:  "low",
		kubelet: kubeletInodes, margin: 5000, unit: 1000, near: diskInodes / 100,
		available: available,
		take:      func(n int64) string { return fmt.Sprintf("/fill?dir=/data&files=%d", n) },
		taken: func(p *stats.PodStats) *uint64 {
			if p.EphemeralStorage == nil {
				return nil
			}
			return p.EphemeralStorage.InodesUsed
		},
	}
}

// statfs returns a function that reads a field of the node disk's file system
// statistics.
func (w *testCluster) statfs(t *testing.T, figure func(*unix.Statfs_t) int64) func() (int64, error) {
	path, err := w.NodePath("/var/lib/kubelet")
	if err != nil {
		t.Fatal(err)
	}
	return func() (int64, error) {
		var s unix.Statfs_t
		if err := unix.Statfs(path, &s); err != nil {
			return 0, fmt.Errorf("ask for the node's disk: %w", err)
		}
		return figure(&s), nil
	}
}

// press makes a pod take more until at most left is available, and again
// whenever other pods free some, until done returns nil. taken is what the pod
// has already. press returns what the pod has at the end.
func (w *testCluster) press(t *testing.T, s *shortage, filler *corev1.Pod, taken, left int64, done func() error) (by int64) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	pressed := make(chan error, 1)
	go func() { pressed <- s.press(ctx, filler, &taken, left) }()
	defer func() {
		stop()
		if err := <-pressed; err != nil {
			t.Errorf("press for %s: %v", s.signal, err)
		}
		by = taken
	}()
	eventually(t, fmt.Sprintf("press for %s", s.signal), 90*time.Second, done)
	return 0 // the return value is set above, after the pod has stopped taking more
}

func (s *shortage) press(ctx context.Context, filler *corev1.Pod, taken *int64, left int64) error {
	tick := time.NewTicker(20 * time.Millisecond * slowness)
	defer tick.Stop()
	for {
		available, err := s.available()
		if err != nil {
			return err
		}
		if over := available - left; over > 0 {
			// First take most of it in one step, then small steps. So the crossing is seen
			// when it happens, and not when much less is left.
			*taken += max(over-2*s.unit, min(over, s.step()))
			if err := sendCommand(filler, s.take(*taken)); err != nil {
				return fmt.Errorf("take %d: %w", *taken, err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// crossings has, for each threshold, when the available amount fell below it.
type crossings struct {
	mu    sync.Mutex
	first map[int64]crossing
	above map[int64]time.Time // when the last reading above began
	least int64
	read  time.Time // when the reading of least began
	err   error
}

// crossing is between the begin of the last reading above a threshold and the end of
// the first reading below. On the virtual node a reading may take longer than weir
// needs to evict.
type crossing struct {
	earliest, latest time.Time
}

// watch reads the available amount several hundred times a second until the end
// of the test.
func (s *shortage) watch(t *testing.T, thresholds ...int64) *crossings {
	c := &crossings{first: map[int64]crossing{}, above: map[int64]time.Time{}, least: 1 << 62}
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(3 * time.Millisecond * slowness)
		defer tick.Stop()
		for t.Context().Err() == nil {
			began := time.Now()
			available, err := s.available()
			ended := time.Now()
			c.mu.Lock()
			if err != nil {
				c.err = err
			} else {
				if available < c.least {
					c.least, c.read = available, began
				}
				for _, threshold := range thresholds {
					if _, ok := c.first[threshold]; ok {
						continue
					}
					if available >= threshold {
						c.above[threshold] = began
					} else {
						c.first[threshold] = crossing{earliest: c.above[threshold], latest: ended}
					}
				}
			}
			c.mu.Unlock()
			select {
			case <-t.Context().Done():
			case <-tick.C:
			}
		}
	})
	t.Cleanup(watching.Wait)
	return c
}

// of returns when a threshold was crossed, and whether it was.
func (c *crossings) of(t *testing.T, threshold int64) (at crossing, ok bool) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		t.Error(c.err)
	}
	at, ok = c.first[threshold]
	return at, ok
}

// lowest returns the smallest amount that was seen, and when its reading began.
func (c *crossings) lowest() (amount int64, read time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.least, c.read
}
