package kubeletapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// A summary has a rate only if the pipeline measured it.
func TestRateIsServedIfMeasured(t *testing.T) {
	w := newFixture()
	_, app := w.pod("web", 10)
	app.Reasons[metric.CPU] = metric.TooYoung
	var got stats.Summary
	if err := json.Unmarshal(serve(t, handler(t, &w.Batch, kubeletapi.Options{}), kubeletapi.SummaryPath), &got); err != nil {
		t.Fatal(err)
	}
	if rate := got.Pods[0].CPU.UsageNanoCores; rate == nil || *rate != 25e7 {
		t.Errorf("the pod's rate is %v, want 0.25 cores", rate)
	}
	if cpu := got.Pods[0].Containers[0].CPU; cpu.UsageNanoCores != nil || *cpu.UsageCoreNanoSeconds != 9e9 {
		t.Errorf("of the young container there is %+v, want its counter alone", cpu)
	}
}

// In a summary the counters come from the round and the rest from the newer read of Base.
func TestSummaryOverBase(t *testing.T) {
	w := newFixture()
	w.pod("web", 10)
	root := w.add(metric.Entity{Kind: metric.System, Name: "/kubepods"}, "/kubepods", "", "", 50)
	root.Values.Set(metric.CPUPressureSome, 3e6)
	now := metav1.Unix(read/1e9+5, 0)
	n := func(v uint64) *uint64 { return &v }
	fresh := func(working uint64) *stats.MemoryStats {
		return &stats.MemoryStats{Time: now, WorkingSetBytes: n(working), PageFaults: n(70)}
	}
	base := func(context.Context) (*stats.Summary, error) {
		return &stats.Summary{
			Node: stats.NodeStats{
				NodeName: "as-vitals-knows-it", Memory: fresh(111), Fs: &stats.FsStats{Time: now, AvailableBytes: n(5)},
				SystemContainers: []stats.ContainerStats{{Name: "pods", Memory: fresh(99), CPU: &stats.CPUStats{
					Time: now, PSI: &stats.PSIStats{Some: stats.PSIData{Total: 4000, Avg10: 1.5}},
				}}},
			},
			Pods: []stats.PodStats{
				{PodRef: stats.PodReference{UID: "began-since", Namespace: "shop", Name: "new"}, Memory: fresh(1)},
				{PodRef: stats.PodReference{UID: "nobody-knows"}, Memory: fresh(1)},
				{PodRef: stats.PodReference{UID: uid + "web"}, Memory: &stats.MemoryStats{Time: now, WorkingSetBytes: n(2)},
					VolumeStats: []stats.VolumeStats{{Name: "data", FsStats: stats.FsStats{UsedBytes: n(3)}}},
					Containers: []stats.ContainerStats{{Name: "app", Logs: &stats.FsStats{UsedBytes: n(4)}},
						{Name: "just-begun", Memory: fresh(6)}}},
			},
		}, errors.New("one volume could not be read")
	}
	var got stats.Summary
	if err := json.Unmarshal(serve(t, handler(t, &w.Batch, kubeletapi.Options{Base: base}), kubeletapi.SummaryPath), &got); err != nil {
		t.Fatal(err)
	}
	var reported []string
	addLine := func(format string, args ...any) { reported = append(reported, fmt.Sprintf(format, args...)) }
	cpu := func(c *stats.CPUStats) string {
		if c == nil {
			return "no CPU"
		}
		return fmt.Sprintf("CPU %d ns at %s", *c.UsageCoreNanoSeconds, c.Time.UTC().Format("15:04:05"))
	}
	memory := func(m *stats.MemoryStats) string {
		return fmt.Sprintf("%d bytes, %d faults at %s", *m.WorkingSetBytes, *m.PageFaults, m.Time.UTC().Format("15:04:05"))
	}
	addLine("%s: %s; %s; %d free", got.Node.NodeName, cpu(got.Node.CPU), memory(got.Node.Memory), *got.Node.Fs.AvailableBytes)
	for _, c := range got.Node.SystemContainers {
		addLine("%s: %s, stalled %d µs, %v%%; %s", c.Name, cpu(c.CPU), c.CPU.PSI.Some.Total, c.CPU.PSI.Some.Avg10, memory(c.Memory))
	}
	for _, p := range got.Pods {
		addLine("%s/%s %s: %s; %s; %d volumes", p.PodRef.Namespace, p.PodRef.Name, p.PodRef.UID, cpu(p.CPU), memory(p.Memory), len(p.VolumeStats))
		for _, c := range p.Containers {
			addLine("  %s: %s; %s; logs %t", c.Name, cpu(c.CPU), memory(c.Memory), c.Logs != nil)
		}
	}
	want(t, reported,
		"node1: CPU 100000000000 ns at 04:00:00; 111 bytes, 70 faults at 04:00:05; 5 free",
		"pods: CPU 50000000000 ns at 04:00:00, stalled 3000 µs, 1.5%; 99 bytes, 70 faults at 04:00:05",
		"shop/new began-since: no CPU; 1 bytes, 70 faults at 04:00:05; 0 volumes",
		// Memory without page faults is not used, because the page faults would be of another time.
		"shop/web "+uid+"web: CPU 10000000000 ns at 04:00:00; 10485760 bytes, 7 faults at 04:00:00; 1 volumes",
		"  app: CPU 9000000000 ns at 04:00:00; 9437184 bytes, 7 faults at 04:00:00; logs true",
		"  just-begun: no CPU; 6 bytes, 70 faults at 04:00:05; logs false",
	)
}

// A static pod's UID on the node is the hash of its manifest. Base may have it with the UID of the
// API server.
func TestStaticPodIsOne(t *testing.T) {
	const hash = "4e0055337d07e43ec2b2a6916d310071"
	w := newFixture()
	w.add(metric.Entity{Kind: metric.Pod, Pod: hash}, "/kubepods/burstable/pod"+hash, hash, "", 10)
	facts := (*cluster.Facts)(nil).With(cluster.FactsChange{Synced: true, Pods: []*cluster.Pod{{
		PodRef: metric.PodRef{Namespace: "kube-system", Name: "static-node1"}, UID: uid, ConfigHash: cluster.NewConfigHash(hash), Mirror: true, Node: node,
	}}})
	base := func(context.Context) (*stats.Summary, error) {
		return &stats.Summary{Pods: []stats.PodStats{{
			PodRef:      stats.PodReference{Namespace: "kube-system", Name: "static-node1", UID: uid},
			VolumeStats: []stats.VolumeStats{{Name: "etc"}},
		}}}, nil
	}
	var got stats.Summary
	h := handler(t, &w.Batch, kubeletapi.Options{Base: base, Facts: func() *cluster.Facts { return facts }})
	if err := json.Unmarshal(serve(t, h, kubeletapi.SummaryPath), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Pods) != 1 {
		t.Fatalf("got %d pods, want 1: %+v", len(got.Pods), got.Pods)
	}
	p := got.Pods[0]
	if p.PodRef != (stats.PodReference{Namespace: "kube-system", Name: "static-node1", UID: hash}) || p.CPU == nil || len(p.VolumeStats) != 1 {
		t.Errorf("got %+v, want the pod by its hash, with CPU and its volume", p)
	}
}

// With only_cpu_and_memory the answer has what a kubelet 1.36 reports then, and Base is not called.
func TestOnlyCPUAndMemory(t *testing.T) {
	for _, whole := range captures(t, "01-steady/00/summary.json") {
		round := ofSummary.parse(t, whole)
		round.Samples[0].Instance.Path = "/"
		s := round.Add(metric.Entity{Kind: metric.System, Node: node, Name: "/kubepods"})
		s.CopyFrom(&round.Samples[0])
		s.Entity = metric.Entity{Kind: metric.System, Node: node, Name: "/kubepods"}
		s.Instance.Path = "/kubepods"
		h := handler(t, round, kubeletapi.Options{Base: func(context.Context) (*stats.Summary, error) {
			t.Error("Base was asked")
			return nil, nil
		}})
		var got []string
		for k := range keys(t, serve(t, h, kubeletapi.SummaryPath+"?only_cpu_and_memory=true")) {
			if parts := strings.Split(k, "."); len(parts) <= 2 || parts[1] == "containers" && len(parts) == 3 {
				got = append(got, k)
			}
		}
		slices.Sort(got)
		want(t, got,
			"node", "node.cpu", "node.memory", "node.nodeName", "node.startTime", "node.swap", "node.systemContainers",
			"pods", "pods.containers", "pods.containers.cpu", "pods.containers.memory", "pods.containers.name", "pods.containers.startTime",
			"pods.containers.swap", "pods.cpu", "pods.memory", "pods.podRef", "pods.startTime", "pods.swap")
	}
}

// keys returns the paths of all members of a JSON object.
func keys(t *testing.T, body []byte) map[string]bool {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	var visit func(v any, at string)
	visit = func(v any, at string) {
		switch v := v.(type) {
		case map[string]any:
			for k, below := range v {
				k = strings.TrimPrefix(at+"."+k, ".")
				all[k] = true
				visit(below, k)
			}
		case []any:
			for _, below := range v {
				visit(below, at)
			}
		}
	}
	visit(v, "")
	return all
}
