package custommetrics

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/externalmetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
)

const rulesOverTime = `metrics:
- {name: memory_p95_5m, for: pod, overTime: {metric: memory_working_set_bytes, function: p95, window: 5m}}
- {name: memory_p50_5m, for: pod, overTime: {metric: memory_working_set_bytes, function: p50, window: 5m}}
- {name: memory_p0_5m, for: pod, overTime: {metric: memory_working_set_bytes, function: p0, window: 5m}}
- {name: memory_mean_5m, for: pod, overTime: {metric: memory_working_set_bytes, function: mean, window: 5m}}
- {name: memory_max_5m, for: pod, overTime: {metric: memory_working_set_bytes, function: max, window: 5m}}
- {name: memory_max_15m, for: pod, overTime: {metric: memory_working_set_bytes, function: max, window: 15m}}
- {name: memory_mean_1m, for: pod, overTime: {metric: memory_working_set_bytes, function: mean, window: 1m}}
- {name: cpu_mean_5m, for: pod, overTime: {metric: cpu_usage_cores, function: mean, window: 5m}}
- {name: memory_working_set_bytes, for: node, overTime: {metric: memory_working_set_bytes, function: max, window: 5m}}
`

const mebi = 1 << 20

// remembered is a node with pods that were read every 15 s for six minutes. In the last five minutes the
// memory of a pod grew from 64 MiB by 64 MiB a read; before, it was 10 GiB. web-1 is young: an earlier pod
// had its name.
func remembered(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{sink: memory.New(memory.Options{})}
	running := func(name string, started time.Time) *cluster.Pod {
		return &cluster.Pod{
			PodRef: metric.PodRef{Namespace: "shop", Name: metric.PodName(name)}, UID: metric.PodUID(name), Node: "n1", Phase: cluster.Running,
			Labels: map[string]string{"app": "web"}, Started: started,
			Containers: []cluster.Container{{Name: "app", State: cluster.StateRunning}, {Name: "proxy", State: cluster.StateRunning}},
		}
	}
	lost := running("web-lost", noon.Add(-time.Hour))
	lost.Node = "n2"
	w.facts = w.facts.With(cluster.FactsChange{
		Synced: true, At: noon, Nodes: []*cluster.Node{{Name: "n1", Ready: true}, {Name: "n2"}},
		Pods: []*cluster.Pod{running("web-0", noon.Add(-time.Hour)), running("web-1", noon.Add(-100*time.Second)), lost},
	})
	for k := 23; k >= 0; k-- {
		age := time.Duration(k) * 15 * time.Second
		used := float64(20-k) * 64 * mebi
		if k >= 20 {
			used = 10 << 30
		}
		b := batch("n1")
		b.Began, b.Ended = noon.Add(-age), noon.Add(-age)
		add(b, metric.Entity{Kind: metric.Node, Node: "n1"}, age, 0, map[metric.ID]float64{metric.MemoryWorkingSet: 2 * used})
		for _, name := range []string{"web-0", "web-1"} {
			e := pod("n1", "shop", name)
			add(b, e, age, 15*time.Second, map[metric.ID]float64{metric.MemoryWorkingSet: used, metric.CPUUsageRate: 1e9})
			for _, c := range []string{"app", "proxy"} {
				add(b, container(e, c), age, 15*time.Second, map[metric.ID]float64{metric.MemoryWorkingSet: used / 2, metric.CPUUsageRate: 5e8})
			}
		}
		w.write(t, b)
	}
	away := batch("n2")
	away.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: errors.New("deadline exceeded")}
	away.Verdicts = append(away.Verdicts, metric.Verdict{
		Entity: pod("n2", "shop", "web-lost"), Group: metric.Memory, Reason: metric.NodeTimeout, Evidence: metric.Evidence{Err: away.Err},
	})
	w.write(t, away)
	return w
}

// readRules returns the rules in text.
func readRules(t *testing.T, text string) *externalmetrics.Provider {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := externalmetrics.New(externalmetrics.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestOverTime asks for functions of weir's memory as an autoscaler does.
func TestOverTime(t *testing.T) {
	config := serveRules(t, remembered(t), readRules(t, rulesOverTime))
	c, warnings := client(t, config)
	ask(t, c, []question{
		{"Pod shop/web-0", "memory_mean_5m", "", "Pod shop/web-0 672Mi at 0s over 300s"},
		{"Pod shop/web-0", "memory_max_5m", "", "Pod shop/web-0 1280Mi at 0s over 300s"},
		{"Pod shop/web-0", "memory_p50_5m", "", "Pod shop/web-0 672Mi at 0s over 300s"},
		{"Pod shop/web-0", "memory_p0_5m", "", "Pod shop/web-0 64Mi at 0s over 300s"},
		// 0.95 × 19 = 18.05: between the 19th and the 20th of 20 values.
		{"Pod shop/web-0", "memory_p95_5m", "", fmt.Sprintf("Pod shop/web-0 %d at 0s over 300s", int64(math.Round(19.05*64*mebi)))},
		{"Pod shop/web-0", "memory_mean_1m", "", "Pod shop/web-0 1184Mi at 0s over 60s"},
		{"Pod shop/web-0", "memory_max_15m", "", "Pod shop/web-0 10Gi at 0s over 900s"},
		{"Pod shop/web-0", "memory_max_5m", "container=app", "Pod shop/web-0 640Mi at 0s over 300s"},
		{"Pod shop/web-0", "memory_max_5m", "device=a", "memory_max_5m has no label device: a metric selector can choose by container"},
		// Not the values of the earlier pod of this name.
		{"Pod shop/web-1", "memory_mean_5m", "", "Pod shop/web-1 1088Mi at 0s over 300s"},
		{"Pod shop/web-1", "memory_max_15m", "", "Pod shop/web-1 1280Mi at 0s over 900s"},
		{"Pod shop/web-lost", "memory_max_5m", "", "shop/web-lost has no memory_max_5m: the node did not answer in time (NodeTimeout)"},
		{"Pod shop/none", "memory_max_5m", "", "there is no pod shop/none"},
		{"Pod shop/web-0", "memory_max_10m", "", "pods have no metric memory_max_10m: no rule defines it; GET /apis/custom.metrics.k8s.io/v1beta2 lists those there are"},
		// The rule of nodes has the name of a metric of the catalogue, which pods still have.
		{"Node n1", "memory_working_set_bytes", "", "Node n1 2560Mi at 0s over 300s"},
		{"Pod shop/web-0", "memory_working_set_bytes", "", "Pod shop/web-0 1280Mi at 0s over 0s"},
	})
	warnings.Take()
	got := list(t, c.NamespacedMetrics("shop"), "Pod", "app=web", "memory_max_5m", "")
	if want := "Pod shop/web-0 1280Mi at 0s over 300s\nPod shop/web-1 1280Mi at 0s over 300s"; got != want {
		t.Errorf("the list of pods\n got %s\nwant %s", got, want)
	}
	said := strings.Join(warnings.Take(), "\n")
	if want := "1 of 3 pods have no memory_max_5m: 1 NodeTimeout"; !strings.Contains(said, want) {
		t.Errorf("warnings of the list: got %q, want %q in them", said, want)
	}
	v, err := c.NamespacedMetrics("shop").GetForObject(schema.GroupKind{Kind: "Pod"}, "web-0", "cpu_mean_5m", mustParse(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Value.AsApproximateFloat64(); math.Abs(got-1) > 1e-5 {
		t.Errorf("mean of one core in each read: got %v, want 1 within the history's 4 millionths", got)
	}
}

// TestOverTimeIsDiscovered lists only what rules define, and explains a pod without a value.
func TestOverTimeIsDiscovered(t *testing.T) {
	w := remembered(t)
	rules := readRules(t, rulesOverTime)
	d, err := discovery.NewDiscoveryClientForConfig(serveRules(t, w, rules))
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.ServerResourcesForGroupVersion("custom.metrics.k8s.io/v1beta2")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range l.APIResources {
		if strings.HasPrefix(r.Name, "pods/memory_") && strings.HasSuffix(r.Name, "m") {
			got = append(got, strings.TrimPrefix(r.Name, "pods/memory_"))
		}
	}
	if want := "p95_5m p50_5m p0_5m mean_5m max_5m max_15m mean_1m"; strings.Join(got, " ") != want {
		t.Errorf("listed of pods' memory over time: got %v, want %s", got, want)
	}

	o := w.options()
	o.Rules = rules
	p := New(o)
	pods := schema.GroupResource{Resource: "pods"}
	if p.HasRule(pods, "memory_max_5m") {
		t.Error("memory_max_5m needs a request to another server, want none: it is in memory")
	}
	f, missing := p.WhyNoSeries(t.Context(), metric.PodRef{Namespace: "shop", Name: "web-lost"}, "memory_max_5m", nil)
	if !missing || f.Reason != "NodeTimeout" || f.Message == "" || f.Advice == "" {
		t.Errorf("web-lost: got %+v, %v; want NodeTimeout with a message and advice", f, missing)
	}
	if f, missing := p.WhyNoSeries(t.Context(), metric.PodRef{Namespace: "shop", Name: "web-0"}, "memory_max_5m", nil); missing {
		t.Errorf("web-0: got %+v, want a value", f)
	}
	// Without rules there is none.
	if _, err := New(w.options()).newRequest(provider.CustomMetricInfo{GroupResource: pods, Metric: "memory_max_5m"}, "shop", nil); err == nil {
		t.Error("without rules memory_max_5m is there, want an error")
	}
}
