//go:build linux

package vitals

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/sources/host/kernel"
)

// window is the shortest time a rate is computed over. Notices of the kernel can come within
// milliseconds of each other, which is too short to tell who uses the processors.
const window = time.Second

// sight is a counter of processor time, in nanoseconds, when it was read.
type sight struct {
	at    time.Time
	value uint64
}

// rate remembers two sights that are at least a window apart, so that one of them is that old
// at any later read. The zero rate remembers none.
type rate struct{ older, newer sight }

// next takes a sight and returns the rate since an earlier one, in nanocores; false if none is old
// enough.
func (r *rate) next(now sight) (uint64, bool) {
	if r.newer.at.IsZero() || now.value < r.newer.value || now.at.Before(r.newer.at) {
		*r = rate{newer: now}
		return 0, false
	}
	since := r.older
	if now.at.Sub(r.newer.at) >= window {
		since, r.older, r.newer = r.newer, r.newer, now
	}
	if since.at.IsZero() {
		return 0, false
	}
	return uint64(float64(now.value-since.value) / now.at.Sub(since.at).Seconds()), true
}

// readCPU reads a pod's processor time; nil where version 1 does not count it.
func (r *round) readCPU(c *cgroup) (*stats.CPUStats, error) {
	if r.version == &versions[0] && r.cpu == "" {
		return nil, nil
	}
	data, err := r.read(&c.cpu, c.dir)
	if err != nil {
		return nil, ignoreGone(err) // each hierarchy of version 1 has cgroups of its own
	}
	parse := kernel.ParseUint
	if r.version == &versions[1] {
		parse = kernel.ParseCPUStat
	}
	n, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.cpu.name, err)
	}
	now := sight{time.Now(), n}
	s := &stats.CPUStats{Time: metav1.NewTime(now.at), UsageCoreNanoSeconds: &n}
	if rate, ok := c.rate.next(now); ok {
		s.UsageNanoCores = &rate
	}
	return s, nil
}
