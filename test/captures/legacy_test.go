package captures

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/test/capture"
)

// TestTwoPathsOneContainer replays the case for which weir was written: an old
// kubelet reports one container with two cgroup paths, created 20.5 s apart. In
// every order of arrival one container must be served, with 250 millicores and
// 180 MiB, and the other path must have a verdict. weir does not read that
// endpoint; the test uses its numbers for identity.
func TestTwoPathsOneContainer(t *testing.T) {
	var bodies [2]map[string]json.RawMessage
	for i, name := range []string{"round1.json", "round2.json"} {
		if err := json.Unmarshal(capture.Read(t, "00-stats-container/"+name), &bodies[i]); err != nil {
			t.Fatal(err)
		}
	}
	want := metric.Entity{Kind: metric.Container, Node: "n", Namespace: "backend", Pod: "neo-staging-web-v201-dqxj5", Name: "neo-web"}
	kept := map[metric.CgroupPath]int{}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 4))
		pipeline := processors.New(processors.Options{})
		b := &metric.Batch{Source: "legacy", Node: "n", Interval: time.Minute, Resolution: time.Nanosecond}
		for i := range bodies {
			b.Reset()
			now := time.Now().Add(time.Duration(i) * time.Minute)
			b.Began, b.Ended = now, now
			addContainers(t, bodies[i], r, b)
			pipeline.Identity.Process(nil, b, now)
			pipeline.Rate.Process(nil, b, now)
		}
		var served, lost int
		for i := range b.Samples {
			s := &b.Samples[i]
			if s.Entity != want {
				continue
			}
			if s.Rejected() {
				lost++
				continue
			}
			served++
			kept[s.Instance.Path]++
			cpu, _ := s.Values.Get(metric.CPUUsageRate)
			memory, _ := s.Values.Get(metric.MemoryWorkingSet)
			if cpu != 250e6 || memory != 180<<20 || !s.Servable(metric.CPU) || !s.Servable(metric.Memory) {
				t.Errorf("seed %d: %v nanocores (%v), %v bytes, want 250e6 and 180 MiB", seed, cpu, s.Reasons[metric.CPU], memory)
			}
		}
		verdicts := 0
		for i := range b.Verdicts {
			if v := &b.Verdicts[i]; v.Entity == want && v.Group == metric.CPU && v.Reason.Layer() == metric.LayerIdentity && v.Evidence.Other.Path != "" {
				verdicts++
			}
		}
		if served != 1 || lost != 1 || verdicts != 1 {
			t.Errorf("seed %d: %d served, %d turned away, %d verdicts that name the duplicate; want 1 each", seed, served, lost, verdicts)
		}
	}
	if len(kept) != 1 {
		t.Errorf("kept now one path, now the other: %v", kept)
	}
}

// addContainers adds a sample for each container in an old kubelet's answer of
// /stats/container/, in a random order.
func addContainers(t *testing.T, answer map[string]json.RawMessage, r *rand.Rand, b *metric.Batch) {
	t.Helper()
	paths := slices.Sorted(maps.Keys(answer)) // so that the order depends only on the seed
	r.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	for _, path := range paths {
		var c struct {
			ID   string
			Spec struct {
				Created time.Time `json:"creation_time"`
				Labels  map[string]string
			}
			Stats []struct {
				Timestamp time.Time
				CPU       struct{ Usage struct{ Total float64 } }
				Memory    struct {
					WorkingSet float64 `json:"working_set"`
				}
			}
		}
		if err := json.Unmarshal(answer[path], &c); err != nil {
			t.Fatal(err)
		}
		e := metric.Entity{Kind: metric.Node, Node: "n"}
		if name := c.Spec.Labels["io.kubernetes.container.name"]; name != "" {
			e.Kind, e.Name = metric.Container, name
			e.Namespace = metric.Namespace(c.Spec.Labels["io.kubernetes.pod.namespace"])
			e.Pod = metric.PodName(c.Spec.Labels["io.kubernetes.pod.name"])
		}
		s := b.Add(e)
		s.Instance = metric.Instance{
			ID: metric.ContainerID(c.ID), Path: metric.CgroupPath(path), Processes: -1,
			Start: c.Spec.Created.UnixNano(), Origin: metric.StartReported,
		}
		read := c.Stats[len(c.Stats)-1]
		s.Times[metric.CPU], s.Times[metric.Memory] = read.Timestamp.UnixNano(), read.Timestamp.UnixNano()
		s.Values.Set(metric.CPUUsage, read.CPU.Usage.Total)
		s.Values.Set(metric.MemoryWorkingSet, read.Memory.WorkingSet)
	}
}
