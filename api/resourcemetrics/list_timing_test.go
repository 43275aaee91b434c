package resourcemetrics_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// fill makes w a cluster with this many nodes, pods on each and containers in each, ten pods to
// an application.
func fill(t testing.TB, w *fixture, nodes, pods, containers int) {
	t.Helper()
	var change cluster.FactsChange
	change.Synced, change.At = true, noon
	perNode := map[metric.NodeName][]*cluster.Pod{}
	labels := map[string]map[string]string{} // shared, as the informer does
	for n := range nodes {
		name := metric.NodeName(fmt.Sprintf("node-%04d", n))
		change.Nodes = append(change.Nodes, &cluster.Node{Name: name, Ready: true, Labels: map[string]string{"kubernetes.io/hostname": string(name)}})
		for i := range pods {
			var names []string
			for c := range containers {
				names = append(names, fmt.Sprintf("container-%d", c))
			}
			p := running(fmt.Sprintf("team-%02d", min(i, 20)), fmt.Sprintf("app-%04d-7c5ddbdf54-%05d", n/10, max(100, pods)*n+i), name, fmt.Sprintf("app-%04d", n/10), names...)
			p.Labels["pod-template-hash"] = "7c5ddbdf54"
			if shared := labels[p.Labels["app"]]; shared != nil {
				p.Labels = shared
			}
			labels[p.Labels["app"]] = p.Labels
			change.Pods = append(change.Pods, p)
			perNode[name] = append(perNode[name], p)
		}
	}
	w.facts = w.facts.With(change)
	r := rand.New(rand.NewPCG(1, 2))
	for name, on := range perNode {
		b := batch(name)
		measured(b, nodeEntity(name), time.Second, 15*time.Second, r.Float64()*4e9, r.Float64()*(8<<30))
		for _, p := range on {
			for _, c := range p.Containers {
				measured(b, container(p, c.Name), time.Duration(r.IntN(10_000))*time.Millisecond, 15*time.Second, r.Float64()*1e9, float64(r.IntN(1<<18))*4096)
			}
		}
		w.write(t, b)
	}
}

// BenchmarkRequests sends requests to a cluster of 30,000 pods through the API server's whole
// chain. The client does not decode.
func BenchmarkRequests(b *testing.B) {
	w := newFixture()
	fill(b, w, 1000, 30, 2)
	request(b, serve(b, w.options()), http.StatusOK, []asked{
		{"all pods/JSON", "/pods", "application/json", "identity"},
		{"all pods/JSON gzip", "/pods", "application/json", "gzip"},
		{"all pods/protobuf", "/pods", "application/vnd.kubernetes.protobuf", "identity"},
		{"all pods/CBOR", "/pods", "application/cbor", "identity"},
		{"a namespace/protobuf", "/namespaces/team-07/pods", "application/vnd.kubernetes.protobuf", "identity"},
		{"an application/protobuf", "/namespaces/team-07/pods?labelSelector=app%3Dapp-0042", "application/vnd.kubernetes.protobuf", "identity"},
		{"an application everywhere/protobuf", "/pods?labelSelector=app%3Dapp-0042", "application/vnd.kubernetes.protobuf", "identity"},
		{"an application of a large namespace/JSON", "/namespaces/team-20/pods?labelSelector=app%3Dapp-0042", "application/json", "identity"},
		{"one pod/JSON", "/namespaces/team-07/pods/app-0042-7c5ddbdf54-42107", "application/json", "identity"},
		{"nodes/JSON", "/nodes", "application/json", "identity"},
	})
}

// BenchmarkMissing sends requests to a cluster of 30,000 pods in which every tenth node does
// not answer.
func BenchmarkMissing(b *testing.B) {
	w := newFixture()
	fill(b, w, 1000, 30, 2)
	for n := range 100 {
		away := batch(metric.NodeName(fmt.Sprintf("node-%04d", 10*n)))
		away.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: errors.New("deadline exceeded")}
		w.write(b, away)
	}
	config := serve(b, w.options())
	request(b, config, http.StatusOK, []asked{
		{"all pods/protobuf", "/pods", "application/vnd.kubernetes.protobuf", "identity"},
		{"an application/protobuf", "/namespaces/team-07/pods?labelSelector=app%3Dapp-0042", "application/vnd.kubernetes.protobuf", "identity"},
	})
	request(b, config, http.StatusNotFound, []asked{
		{"one pod/JSON", "/namespaces/team-07/pods/app-0042-7c5ddbdf54-42007", "application/json", "identity"},
		{"one node/JSON", "/nodes/node-0420", "application/json", "identity"},
	})
}

// asked is a request and the format of its answer.
type asked struct{ name, path, accept, encoding string }

// request measures requests. Each must be answered with the given status.
func request(b *testing.B, config *rest.Config, status int, all []asked) {
	for _, bench := range all {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			var size int64
			for b.Loop() {
				request, _ := http.NewRequest(http.MethodGet, config.Host+apiPath+bench.path, nil)
				request.Header.Set("Accept", bench.accept)
				request.Header.Set("Accept-Encoding", bench.encoding)
				response, err := config.Transport.RoundTrip(request)
				if err != nil || response.StatusCode != status {
					b.Fatalf("got %v, %v", response, err)
				}
				size, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			b.ReportMetric(float64(size), "B/answer")
		})
	}
}

// TestBothWays compares the answers of the two ways to read pods: a scan of all, and a look-up
// of a few.
func TestBothWays(t *testing.T) {
	w := newFixture()
	fill(t, w, 10, 10, 3)
	c, _ := client(t, serve(t, w.options()), "")
	all, err := c.MetricsV1beta1().PodMetricses("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) != 100 {
		t.Fatalf("got %d pods and %v, want 100", len(all.Items), err)
	}
	for _, want := range all.Items {
		got, err := c.MetricsV1beta1().PodMetricses(want.Namespace).Get(t.Context(), want.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got.TypeMeta = metav1.TypeMeta{}
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Fatalf("%s/%s (-list +get):\n%s", want.Namespace, want.Name, diff)
		}
	}
}
