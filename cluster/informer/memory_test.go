package informer

import (
	"context"
	"fmt"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/simulator"
	"github.com/weir-metrics/weir/test/simulator/apiserver"
)

// podBytes is how much memory the facts of a pod with two containers may use, including the
// indexes.
const podBytes = 820

// TestMemoryOfFacts watches 30,000 pods through a real watch, as weir does, and measures the memory
// in use afterwards.
func TestMemoryOfFacts(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	const nodes, pods = 1000, 30
	fleet, err := simulator.New(simulator.Options{Nodes: nodes, Pods: pods, Containers: 2, Seed: 1, Start: time.Now()})
	must(t, err)
	api := apiserver.New(apiserver.Options{Fleet: fleet, Port: 10250})
	server := httptest.NewServer(api)
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- api.Run(ctx) }()
	defer func() { <-ended }()

	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{
		ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
	}})
	must(t, err)
	before := live()
	c := NewForClient(client, Options{})
	go func() { ended <- c.Run(ctx) }()
	defer func() { <-ended }()
	defer cancel()
	deadline := time.After(time.Minute)
	for f := c.Facts(); f == nil || !f.Synced; f = c.Facts() {
		select {
		case <-c.Changed():
		case <-deadline:
			t.Fatal("the facts have not synced in a minute")
		}
	}
	after := live()
	f := c.Facts()
	if f.Nodes() != nodes || f.Pods() != nodes*pods || len(f.PodsOn("node-0500")) != pods {
		t.Fatalf("got %d nodes and %d pods, want %d and %d", f.Nodes(), f.Pods(), nodes, nodes*pods)
	}
	perPod := float64(after-before) / (nodes * pods)
	t.Logf("%.0f bytes a pod, nodes and connections included", perPod)
	if perPod > podBytes {
		t.Errorf("facts cost %.0f bytes a pod, want at most %d", perPod, podBytes)
	}
	runtime.KeepAlive(f)
}

// TestMemoryOfGonePods converts the pods of Jobs, one after the other, in a cluster that has one pod.
// Each Job's labels and names are its own.
func TestMemoryOfGonePods(t *testing.T) {
	const gone, most = 20_000, 2 << 20
	c := NewForClient(fake.NewClientset(), Options{})
	facts, err := FactsFromPods([]byte(`{"items": [{"metadata": {"namespace": "shop", "name": "web"}}]}`), time.Now())
	must(t, err)
	c.facts.Store(facts)
	convert := c.converter()
	before := live()
	for i := range gone {
		name, uid := fmt.Sprint("backup-", i), fmt.Sprintf("6f9a3c1e-0f0b-4a53-9d53-%012d", i)
		p := pod(name+"-x7x7x", uid, "n1")
		p.Labels = map[string]string{"batch.kubernetes.io/job-name": name, "job-name": name, "batch.kubernetes.io/controller-uid": uid, "controller-uid": uid}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: name, Controller: new(true)}}
		convert(p)
	}
	grown := live() - before
	runtime.KeepAlive(convert)
	t.Logf("%d kB are kept of %d pods that are gone", grown>>10, gone)
	if grown > most {
		t.Errorf("%d kB are kept of %d pods that are gone, want at most %d", grown>>10, gone, most>>10)
	}
}

// live returns the bytes of the heap that are in use.
func live() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkConvert measures the cost of one watch event of a pod, without its decoding.
func BenchmarkConvert(b *testing.B) {
	p := pod("web-5d4f8c7b9-x7x7x", "6f9a3c1e-0f0b-4a53-9d53-0b4c1f9a7d11", "n1")
	shared := newPool()
	b.ReportAllocs()
	for b.Loop() {
		podFacts(p, time.Time{}, shared)
	}
}

// BenchmarkApply measures one publication after one of 150,000 pods has changed.
func BenchmarkApply(b *testing.B) {
	var c cluster.FactsChange
	for i := range 150_000 {
		c.Pods = append(c.Pods, podFacts(pod(fmt.Sprint("web-", i), fmt.Sprint("uid-", i), fmt.Sprint("n", i/30)), time.Time{}, newPool()))
	}
	var none *cluster.Facts
	f := none.With(c)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		p := *c.Pods[i%len(c.Pods)]
		p.Ready = cluster.ReadyTrue
		change := pending{pods: map[metric.PodRef]*cluster.Pod{p.PodRef: &p}, listedNodes: true, listedPods: true}
		f, _ = change.apply(f)
		i += 7919
	}
}
