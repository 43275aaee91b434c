package resourcemetrics_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/metrics/pkg/apis/metrics"

	"github.com/weir-metrics/weir/api/resourcemetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// versionPaths are the paths of the versions.
var versionPaths = []string{"/apis/metrics.k8s.io/v1", apiPath}

// TestVersionsAgree reads both versions at the same time in many rounds, between which nodes are
// read, pods come and go, and nodes stop to answer. The answers must differ in the version alone.
func TestVersionsAgree(t *testing.T) {
	w := newFixture()
	fill(t, w, 6, 12, 2)
	config := serve(t, w.options())
	scheme, err := resourcemetrics.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	r := rand.New(rand.NewPCG(5, 207))
	answers := map[string]bool{}
	for round := range 40 {
		changeOneNode(t, w, r, round)
		for _, path := range []string{
			"/nodes", "/nodes/node-0001", "/nodes/nobody", "/pods", "/namespaces/team-07/pods", "/pods?labelSelector=app%3Dapp-0000", "/pods?limit=3",
			"/namespaces/team-03/pods/app-0000-7c5ddbdf54-00103", "/namespaces/team-03/pods/app-0000-7c5ddbdf54-00303", "/nodes?fieldSelector=metadata.name%3Dnode-0002",
		} {
			for _, accept := range []string{"application/json", asTable, "application/vnd.kubernetes.protobuf", "application/yaml"} {
				var both [2]string
				var wait sync.WaitGroup
				for i, version := range versionPaths {
					wait.Go(func() {
						response, body := get(t, config, version+path, "Accept", accept)
						text := string(body)
						if response.StatusCode == 200 && strings.HasSuffix(accept, "protobuf") {
							text = asInternal(t, codecs.UniversalDecoder(metrics.SchemeGroupVersion), body)
						}
						both[i] = fmt.Sprintf("%d\n%q\n%s", response.StatusCode, response.Header.Values("Warning"), text)
					})
				}
				wait.Wait()
				answers[both[0]] = true
				want := strings.ReplaceAll(both[1], "metrics.k8s.io/v1beta1", "metrics.k8s.io/v1")
				if diff := cmp.Diff(want, both[0]); diff != "" {
					t.Fatalf("round %d, %s as %q (-v1beta1 +v1):\n%s", round, path, accept, diff)
				}
			}
		}
	}
	if len(answers) < 400 {
		t.Errorf("only %d different answers: the data did not change", len(answers))
	}
}

// changeOneNode reads one node again, with other numbers and at times without an answer or
// without some of its pods.
func changeOneNode(t *testing.T, w *fixture, r *rand.Rand, round int) {
	t.Helper()
	name := metric.NodeName(fmt.Sprintf("node-%04d", r.IntN(6)))
	b := batch(name)
	b.Began, b.Ended = noon.Add(time.Duration(round)*time.Millisecond), noon.Add(time.Duration(round)*time.Millisecond)
	if r.IntN(5) == 0 {
		b.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: fmt.Errorf("deadline exceeded")}
		w.write(t, b)
		return
	}
	measured(b, nodeEntity(name), time.Second, 15*time.Second, r.Float64()*4e9, r.Float64()*(8<<30))
	var change cluster.FactsChange
	for _, p := range w.facts.PodsOn(name) {
		if r.IntN(4) == 0 {
			next := *p
			next.Phase = []cluster.Phase{cluster.Running, cluster.Succeeded}[r.IntN(2)]
			change.Pods = append(change.Pods, &next)
		}
		for _, c := range p.Containers {
			if r.IntN(10) > 0 {
				measured(b, container(p, c.Name), time.Duration(r.IntN(10_000))*time.Millisecond, 15*time.Second, r.Float64()*1e9, float64(r.IntN(1<<18))*4096)
			}
		}
	}
	change.Synced, change.At = true, noon
	w.facts = w.facts.With(change)
	w.write(t, b)
}

// asInternal decodes an object of any version and writes it without its version.
func asInternal(t *testing.T, decoder runtime.Decoder, body []byte) string {
	o, err := runtime.Decode(decoder, body)
	if err != nil {
		t.Errorf("decode: %v", err)
		return ""
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// TestTypedClients reads the same pod and nodes with the clients of both versions.
func TestTypedClients(t *testing.T) {
	config := serve(t, village(t).options())
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		c, _ := client(t, config, contentType)
		old, err := c.MetricsV1beta1().PodMetricses("shop").Get(t.Context(), "web-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stable, err := c.MetricsV1().PodMetricses("shop").Get(t.Context(), "web-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(stable.Containers) != 2 || stable.Window != old.Window || stable.Containers[0].Usage.Cpu().Cmp(*old.Containers[0].Usage.Cpu()) != 0 {
			t.Errorf("%s: v1 has %+v, v1beta1 has %+v", contentType, stable, old)
		}
		nodes, err := c.MetricsV1().NodeMetricses().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 1 || nodes.Items[0].Usage.Memory().String() != "3Gi" {
			t.Errorf("%s: nodes of v1 are %+v, %v", contentType, nodes, err)
		}
	}
}
