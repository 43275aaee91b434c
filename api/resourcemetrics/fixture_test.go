package resourcemetrics_test

import (
	"context"
	"errors"
	"testing"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/weir-metrics/weir/api/resourcemetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/aggregate"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/test/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// noon is the time of all reads. All requests are one second later.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fixture is a real memory sink, filled by the pipeline's last step, and the cluster facts.
type fixture struct {
	sink  *memory.Sink
	facts *cluster.Facts
}

func newFixture() *fixture { return &fixture{sink: memory.New(memory.Options{})} }

func (w *fixture) options() resourcemetrics.Options {
	return resourcemetrics.Options{
		Snapshot: func() resourcemetrics.UsageReader { return w.sink.Snapshot() },
		Facts:    func() *cluster.Facts { return w.facts },
		Sources:  func() []explain.SourceState { return nil },
		Now:      func() time.Time { return noon.Add(time.Second) },
	}
}

// know adds nodes and pods to the facts.
func (w *fixture) know(nodes []*cluster.Node, pods []*cluster.Pod) {
	w.facts = w.facts.With(cluster.FactsChange{Synced: true, At: noon, Nodes: nodes, Pods: pods})
}

// write aggregates b with the facts, as the pipeline does, and stores it.
func (w *fixture) write(t testing.TB, b *metric.Batch) {
	t.Helper()
	a := aggregate.New()
	before := batch(b.Node) // an earlier read, so that nothing is WarmingUp
	before.Add(nodeEntity(b.Node))
	a.Process(w.facts, before, before.Ended)
	a.Process(w.facts, b, b.Ended)
	if err := w.sink.Write(context.Background(), b); err != nil {
		t.Fatalf("write %s: %v", b.Node, err)
	}
}

func batch(node metric.NodeName) *metric.Batch {
	return &metric.Batch{Source: "kubelet:resource", Node: node, Interval: 15 * time.Second, Resolution: time.Millisecond, Began: noon, Ended: noon}
}

// measured adds a sample that was read this long before noon, over a window.
func measured(b *metric.Batch, e metric.Entity, age, window time.Duration, cpu, memory float64) *metric.Sample {
	s := b.Add(e)
	at := noon.Add(-age).UnixNano()
	for _, g := range []metric.Group{metric.CPU, metric.Memory} {
		s.Times[g], s.Reasons[g] = at, metric.Measured
	}
	s.Rates[metric.CPU] = metric.Window{End: at, Length: window}
	s.Values.Set(metric.CPUUsageRate, cpu)
	s.Values.Set(metric.MemoryWorkingSet, memory)
	return s
}

func nodeEntity(name metric.NodeName) metric.Entity {
	return metric.Entity{Kind: metric.Node, Node: name}
}

func container(p *cluster.Pod, name string) metric.Entity {
	return metric.Entity{Kind: metric.Container, Node: p.Node, Namespace: p.Namespace, Pod: p.Name, Name: name}
}

// running returns the facts of a pod with running containers.
func running(namespace, name string, node metric.NodeName, app string, containers ...string) *cluster.Pod {
	p := &cluster.Pod{
		PodRef: metric.PodRef{Namespace: metric.Namespace(namespace), Name: metric.PodName(name)},
		UID:    metric.PodUID(namespace + "-" + name), Node: node, Phase: cluster.Running, Labels: map[string]string{"app": app},
	}
	for _, c := range containers {
		p.Containers = append(p.Containers, cluster.Container{Name: c, State: cluster.StateRunning})
	}
	return p
}

// village returns a small cluster with one of each problem.
func village(t testing.TB) *fixture {
	t.Helper()
	w := newFixture()
	web0 := running("shop", "web-0", "n1", "web", "app")
	web0.Labels["tier"] = "front"
	web0.Containers = append(web0.Containers,
		cluster.Container{Name: "setup", Role: cluster.Init, State: cluster.StateTerminated, Previous: &cluster.PreviousRun{StateReason: "Completed"}},
		cluster.Container{Name: "mesh", Role: cluster.Sidecar, State: cluster.StateRunning},
	)
	web1 := running("shop", "web-1", "n1", "web", "app", "mesh")
	api := running("shop", "api", "n1", "api", "app")
	agent := running("kube-system", "agent", "n1", "agent", "agent")
	done := running("shop", "job", "n1", "job", "app")
	done.Phase = cluster.Succeeded
	waits := running("shop", "waits", "n1", "waits", "app")
	waits.Phase, waits.Containers[0].State, waits.Containers[0].Previous = cluster.Pending, cluster.StateWaiting, &cluster.PreviousRun{StateReason: "ImagePullBackOff"}
	homeless := running("shop", "homeless", "", "homeless", "app")
	homeless.Phase, homeless.Containers[0].State = cluster.Pending, cluster.StateUnknown
	crashes := running("shop", "crashes", "n1", "crashes", "app")
	crashes.Containers[0].State, crashes.Containers[0].Previous = cluster.StateWaiting, &cluster.PreviousRun{StateReason: "CrashLoopBackOff"}
	lost := running("shop", "lost", "n2", "lost", "app")
	unread := running("shop", "unread", "n3", "unread", "app")
	w.know(
		[]*cluster.Node{
			{Name: "n1", Ready: true, Labels: map[string]string{"zone": "a"}},
			{Name: "n2", Ready: true, Labels: map[string]string{"zone": "b"}},
			{Name: "n3", Ready: true, Labels: map[string]string{"zone": "c"}},
		},
		[]*cluster.Pod{web0, web1, api, agent, done, waits, homeless, crashes, lost, unread})

	b := batch("n1")
	measured(b, nodeEntity("n1"), 2*time.Second, 15*time.Second, 1_234_567_891.4, 3<<30)
	// The containers are out of order, and the sidecar's sample is the oldest.
	measured(b, container(web0, "mesh"), 5*time.Second, 20*time.Second, 500, 1<<20)
	measured(b, container(web0, "app"), 2*time.Second, 15*time.Second, 12_345_678.5, 100_000_000)
	measured(b, container(web1, "app"), 2*time.Second, 15*time.Second, 1e6, 1<<20)
	first := measured(b, container(web1, "mesh"), 2*time.Second, 0, 0, 1<<20)
	first.Values.Delete(metric.CPUUsageRate)
	first.Reasons[metric.CPU] = metric.FirstSample
	measured(b, container(api, "app"), 2*time.Second, 15*time.Second, 0, 4096)
	measured(b, container(agent, "agent"), 3*time.Second, 15*time.Second, 7e6, 8<<20)
	w.write(t, b)

	away := batch("n2")
	away.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: errors.New("get https://10.0.0.2:10250: deadline exceeded")}
	w.write(t, away)
	return w
}

// serve starts a real API server and returns the configuration of a client.
func serve(t testing.TB, o resourcemetrics.Options) *rest.Config {
	t.Helper()
	scheme, err := resourcemetrics.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return apitest.Serve(t, scheme, resourcemetrics.OpenAPIDefinitions, func(s *genericapiserver.GenericAPIServer) error {
		return resourcemetrics.Install(s, o)
	})
}

// client returns the typed client that kubectl and kube-controller-manager use. contentType is
// the format of objects that it requests; empty for JSON.
func client(t testing.TB, config *rest.Config, contentType string) (*versioned.Clientset, *apitest.Warnings) {
	t.Helper()
	w := &apitest.Warnings{}
	config = rest.CopyConfig(config)
	config.WarningHandler = w
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	c, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c, w
}
