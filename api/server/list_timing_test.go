package server_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/resourcemetrics"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/aggregate"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/test/simulator"
)

// stored fills a sink with a simulated cluster of 30 pods for each node, with two containers each.
// It returns the sink, the cluster facts and the last read of each node. The sink and the facts
// share no strings for names, as when both come over the network.
func stored(b *testing.B, nodes int, now time.Time) (*memory.Sink, *cluster.Facts, []*metric.Batch) {
	b.Helper()
	fleet, err := simulator.New(simulator.Options{Nodes: nodes, Start: now.Add(-time.Hour)})
	if err != nil {
		b.Fatal(err)
	}
	labels := map[string]map[string]string{} // shared, as in package cluster
	change := cluster.FactsChange{Synced: true, At: now}
	for _, n := range fleet.Nodes() {
		change.Nodes = append(change.Nodes, &cluster.Node{Name: metric.NodeName(n.Name), Ready: true, Labels: n.Labels()})
		for _, p := range n.PodsAt(nil, now) {
			f := &cluster.Pod{
				PodRef: metric.PodRef{Namespace: metric.Namespace(p.Namespace), Name: metric.PodName(p.Name)},
				UID:    metric.PodUID(p.UID()), Node: metric.NodeName(n.Name), Phase: cluster.Running, Labels: p.Labels(),
			}
			if shared := labels[f.Labels["app"]]; shared != nil {
				f.Labels = shared
			}
			labels[f.Labels["app"]] = f.Labels
			for _, c := range p.Containers {
				f.Containers = append(f.Containers, cluster.Container{Name: c.Name, State: cluster.StateRunning, ID: metric.ContainerID(c.ID(now))})
			}
			change.Pods = append(change.Pods, f)
		}
	}
	facts := (*cluster.Facts)(nil).With(change)
	sink := memory.New(memory.Options{})
	processor := aggregate.New()
	var last []*metric.Batch
	for _, n := range fleet.Nodes() {
		node := metric.NodeName(n.Name)
		for _, at := range []time.Time{now.Add(-15 * time.Second), now} {
			batch := &metric.Batch{Source: "kubelet", Node: node, Interval: 15 * time.Second, Resolution: time.Millisecond, Began: at, Ended: at}
			add := func(e metric.Entity, cpu, used int64) {
				s := batch.Add(e)
				for _, g := range []metric.Group{metric.CPU, metric.Memory} {
					s.Times[g], s.Reasons[g] = at.UnixNano(), metric.Measured
				}
				s.Rates[metric.CPU] = metric.Window{End: at.UnixNano(), Length: 15 * time.Second}
				s.Values.Set(metric.CPUUsageRate, float64(cpu%1e10)/15)
				s.Values.Set(metric.MemoryWorkingSet, float64(used))
			}
			add(metric.Entity{Kind: metric.Node, Node: node}, n.CPU(at), n.Memory(at))
			for _, p := range n.PodsAt(nil, at) {
				for _, c := range p.Containers {
					add(metric.Entity{
						Kind: metric.Container, Node: node, Name: strings.Clone(c.Name),
						Namespace: metric.Namespace(strings.Clone(p.Namespace)), Pod: metric.PodName(strings.Clone(p.Name)),
					}, c.CPU(at), c.Memory(at))
				}
			}
			processor.Process(facts, batch, at)
			if err := sink.Write(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			if at.Equal(now) {
				last = append(last, batch)
			}
		}
	}
	return sink, facts, last
}

// meanwhile is about how many of 1,000 nodes are read during one LIST.
const meanwhile = 4

// BenchmarkList is one request to metrics.k8s.io for a cluster of 30,000 pods, over HTTP/2 and TLS,
// by a client that discards the answer. Some nodes are read between two requests.
func BenchmarkList(b *testing.B) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	sink, facts, reads := stored(b, 1000, now)
	scheme, err := resourcemetrics.NewScheme()
	if err != nil {
		b.Fatal(err)
	}
	c := newCluster(b)
	var some metric.PodRef
	var app string
	for _, p := range facts.PodsOn("node-0500") {
		if p.Namespace != "kube-system" {
			some, app = p.PodRef, p.Labels["app"]
		}
	}
	var said atomic.Pointer[cluster.Facts]
	said.Store(facts)
	token := c.user("u", "list pods.metrics.k8s.io", "list nodes.metrics.k8s.io", "list pods.metrics.k8s.io "+string(some.Namespace), "get pods.metrics.k8s.io "+some.String())
	r := start(b, c, func(o *server.Options, config *server.Config) {
		fresh := server.NewOptions()
		o.Authorization.AllowCacheTTL, o.Authentication.CacheTTL = fresh.Authorization.AllowCacheTTL, fresh.Authentication.CacheTTL
		config.Schemes, config.OpenAPI = append(config.Schemes, scheme), append(config.OpenAPI, resourcemetrics.OpenAPIDefinitions)
	}, func(s *server.Server) {
		err := resourcemetrics.Install(s.Generic(), resourcemetrics.Options{
			Snapshot: func() resourcemetrics.UsageReader { return sink.Snapshot() },
			Facts:    said.Load,
			Sources:  func() []explain.SourceState { return nil },
			Now:      func() time.Time { return now.Add(time.Second) },
		})
		if err != nil {
			b.Fatal(err)
		}
	})
	const protobuf = "application/vnd.kubernetes.protobuf"
	in := "/namespaces/" + string(some.Namespace) + "/pods"
	for _, q := range []struct {
		name, path, accept, encoding string
		changes                      int // pods that change between two requests, and as many pods that start
	}{
		{"JSON", "/pods", "application/json", "", 0},
		{"JSON gzip", "/pods", "application/json", "gzip", 0},
		{"protobuf", "/pods", protobuf, "", 0},
		{"protobuf gzip", "/pods", protobuf, "gzip", 0},
		{"protobuf changing", "/pods", protobuf, "", 3},
		{"application", in + "?labelSelector=app%3D" + app, "application/json", "", 0},
		{"namespace", in, "application/json", "", 0},
		{"pod", in + "/" + string(some.Name), "application/json", "", 0},
		{"nodes", "/nodes", "application/json", "", 0},
	} {
		b.Run(q.name, func(b *testing.B) {
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, DisableCompression: true}
			defer transport.CloseIdleConnections()
			request := httptest.NewRequest(http.MethodGet, fmt.Sprintf("https://%s/apis/metrics.k8s.io/v1beta1%s", r.Address(), q.path), nil)
			request.RequestURI = ""
			bearer(token)(request, nil)
			request.Header.Set("Accept", q.accept)
			if q.encoding != "" {
				request.Header.Set("Accept-Encoding", q.encoding)
			}
			b.ReportAllocs()
			var size int64
			began := cpuTime(b)
			next := 0
			for b.Loop() {
				for range meanwhile {
					was := reads[next]
					ended := was.Ended.Add(was.Interval)
					read := &metric.Batch{Source: was.Source, Node: was.Node, Interval: was.Interval, Resolution: was.Resolution, Began: ended, Ended: ended, Samples: was.Samples}
					if err := sink.Write(b.Context(), read); err != nil {
						b.Fatal(err)
					}
					reads[next] = read
					next = (next + 1) % len(reads)
				}
				if q.changes > 0 {
					change := cluster.FactsChange{Synced: true, At: now}
					for i := range q.changes {
						pod := *said.Load().PodsOn(reads[(next+i)%len(reads)].Node)[0]
						young := pod // no node has measured it yet
						young.Name += "-young"
						change.Pods = append(change.Pods, &pod, &young)
					}
					said.Store(said.Load().With(change))
				}
				response, err := transport.RoundTrip(request)
				if err != nil {
					b.Fatal(err)
				}
				if size, err = io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
					b.Fatalf("answered %d: %v", response.StatusCode, err)
				}
				response.Body.Close()
			}
			b.ReportMetric(float64(size), "B/answer")
			b.ReportMetric((cpuTime(b)-began).Seconds()*1000/float64(b.N), "cpu-ms/op") // of server and client
		})
	}
}

// cpuTime returns how much CPU time this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
