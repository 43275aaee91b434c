package captures

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/identity"
	"github.com/weir-metrics/weir/processors/rate"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/sources/kubelet/statscontainer"
)

// TestTwoPathsOneContainer is where weir began: the old kubelet reports one
// container under two cgroup paths, creation times 20.5 s apart. In every order
// of arrival there is one container, which uses 250 millicores and 180 MiB, and
// the path that lost has a verdict.
func TestTwoPathsOneContainer(t *testing.T) {
	var bodies [2]map[string]json.RawMessage
	for i, name := range []string{"round1.json", "round2.json"} {
		body, err := os.ReadFile(filepath.Join(root, "00-stats-container", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(body, &bodies[i]); err != nil {
			t.Fatal(err)
		}
	}
	want := metric.Entity{Kind: metric.Container, Node: "n", Namespace: "backend", Pod: "neo-staging-web-v201-dqxj5", Name: "neo-web"}
	kept := map[metric.CgroupPath]int{}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 4))
		p := statscontainer.New()
		ids, rates := identity.New(identity.Options{}), rate.New(rate.Options{})
		b := &metric.Batch{Source: "legacy", Node: "n", Interval: time.Minute, Resolution: statscontainer.Clock}
		for i := range bodies {
			b.Reset()
			now := time.Now().Add(time.Duration(i) * time.Minute)
			b.Began, b.Ended = now, now
			if err := p.Parse(shuffled(t, bodies[i], r), payload.Request{Node: "n", Received: now.UnixNano()}, b); err != nil {
				t.Fatal(err)
			}
			ids.Process(nil, b, now)
			rates.Process(nil, b, now)
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
			t.Errorf("seed %d: %d served, %d turned away, %d verdicts that name the rival; want 1 each", seed, served, lost, verdicts)
		}
	}
	if len(kept) != 1 {
		t.Errorf("kept now one path, now the other: %v", kept)
	}
}

// shuffled writes the members of an object in a random order.
func shuffled(t *testing.T, members map[string]json.RawMessage, r *rand.Rand) []byte {
	t.Helper()
	keys := make([]string, 0, len(members))
	for k := range members {
		keys = append(keys, k)
	}
	slices.Sort(keys) // so that the order is the seed's alone
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	body := []byte{'{'}
	for i, k := range keys {
		if i > 0 {
			body = append(body, ',')
		}
		name, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		body = append(append(append(body, name...), ':'), members[k]...)
	}
	return append(body, '}')
}
