//go:build linux

package vitals

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
	"github.com/weir-metrics/weir/test/capture"
)

// TestCaptures reads the captured cgroups of a real node, and compares the figures with those of
// the kubelet at that time. The kubelet's figures were up to 15 s old, so they differ for a pod
// with changing usage. A line has the pod, the number of rounds in which both have it, the number
// of these rounds in which a figure is equal, and the largest difference of the working sets in
// percent.
func TestCaptures(t *testing.T) {
	datadriven.RunTest(t, "testdata/captures.txt", func(t *testing.T, d *datadriven.TestData) string {
		rounds := capture.Glob(t, d.Cmd+"/[0-9][0-9]")
		if len(rounds) == 0 {
			t.Fatalf("no rounds of %s", d.Cmd)
		}
		var out strings.Builder
		all := map[string]*comparison{}
		at := func(name string) *comparison {
			if all[name] == nil {
				all[name] = &comparison{}
			}
			return all[name]
		}
		every := 1
		if d.HasArg("every") {
			d.ScanArgs(t, "every", &every)
		}
		for i := 0; i < len(rounds); i += every {
			round := rounds[i]
			var kubelet stats.Summary
			captured(t, round, "summary.json", &kubelet)
			got, err := capturedMachine(t, round).Read(context.Background(), Pods)
			if err != nil {
				fmt.Fprintf(&out, "%s: %v\n", filepath.Base(round), err)
			}
			for _, k := range kubelet.Pods {
				p := find(got, metric.PodUID(k.PodRef.UID))
				if p == nil {
					fmt.Fprintf(&out, "%s: %s is only the kubelet's\n", filepath.Base(round), k.PodRef.Name)
					continue
				}
				c := at(k.PodRef.Name)
				c.memory(p.Memory, k.Memory)
				if p.ProcessStats != nil && k.ProcessStats != nil && *p.ProcessStats.ProcessCount == *k.ProcessStats.ProcessCount {
					c.processes++
				}
			}
			at("all pods").memory(got.Node.SystemContainers[0].Memory, kubelet.Node.SystemContainers[0].Memory)
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(&out, "%s: %v\n", name, all[name])
		}
		return out.String()
	})
}

// comparison counts the rounds in which the two agree.
type comparison struct {
	rounds, unknown, zero                     int
	usage, working, rss, available, processes int
	most                                      float64
}

func (c *comparison) memory(got, want *stats.MemoryStats) {
	c.rounds++
	if got == nil || want == nil || want.UsageBytes == nil {
		c.unknown++
		return
	}
	for _, one := range []struct {
		n         *int
		got, want *uint64
	}{{&c.usage, got.UsageBytes, want.UsageBytes}, {&c.working, got.WorkingSetBytes, want.WorkingSetBytes}, {&c.rss, got.RSSBytes, want.RSSBytes}, {&c.available, got.AvailableBytes, want.AvailableBytes}} {
		if value(one.got) == value(one.want) { // also equal if both are absent
			*one.n++
		}
	}
	if *want.WorkingSetBytes == 0 && *got.WorkingSetBytes > 0 {
		c.zero++
		return
	}
	c.most = max(c.most, math.Abs(float64(*got.WorkingSetBytes)/float64(*want.WorkingSetBytes)-1)*100)
}

func (c *comparison) String() string {
	s := fmt.Sprintf("%d rounds, same usage %d, working set %d, rss %d, available %d, processes %d, at most %.0f%% apart",
		c.rounds, c.usage, c.working, c.rss, c.available, c.processes, c.most)
	if c.unknown > 0 || c.zero > 0 {
		s += fmt.Sprintf("; unknown %d, zero for the kubelet %d", c.unknown, c.zero)
	}
	return s
}

// capturedMachine returns the machine of a round, with the names of the API server's pods.
func capturedMachine(t *testing.T, round string) *Reader {
	t.Helper()
	f := newFixture(t, 0)
	var cgroups []struct {
		ID       string `json:"id"`
		Usage    uint64 `json:"memory_usage_bytes"`
		Limit    uint64 `json:"memory_limit_bytes"`
		RSS      uint64 `json:"total_rss"`
		Cache    uint64 `json:"total_cache"`
		Inactive uint64 `json:"total_inactive_file"`
		Procs    int    `json:"procs"`
	}
	captured(t, round, "cgroups.json", &cgroups)
	for _, c := range cgroups {
		f.write(f.path("memory", c.ID, "cgroup.procs"), strings.Repeat("7\n", c.Procs))
		if podcgroup.Parse(metric.CgroupPath(c.ID)).Kind == podcgroup.Container {
			continue // only the memory of pods is read
		}
		f.write(f.path("memory", c.ID, "memory.usage_in_bytes"), fmt.Sprintln(c.Usage))
		f.write(f.path("memory", c.ID, "memory.limit_in_bytes"), fmt.Sprintln(c.Limit))
		f.write(f.path("memory", c.ID, "memory.stat"), memoryStatOf(0, c.RSS, c.Cache, c.Inactive))
	}
	var pods corev1.PodList
	captured(t, round, "pods.json", &pods)
	for i := range pods.Items {
		p := &pods.Items[i]
		known := PodNames{Namespace: p.Namespace, Name: p.Name, Containers: map[string]string{}}
		for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
			for _, c := range list {
				if _, id, ok := strings.Cut(c.ContainerID, "://"); ok {
					known.Containers[id] = c.Name
				}
			}
		}
		uid := metric.PodUID(p.UID)
		if hash := p.Annotations["kubernetes.io/config.hash"]; hash != "" {
			uid = metric.PodUID(hash)
		}
		f.known[uid] = known
	}
	return f.open()
}

func captured(t *testing.T, round, name string, into any) {
	t.Helper()
	if err := json.Unmarshal(capture.Read(t, filepath.Join(round, name)), into); err != nil {
		t.Fatalf("%s/%s: %v", round, name, err)
	}
}
