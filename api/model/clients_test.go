package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/metrics/pkg/apis/metrics/v1alpha1"

	"github.com/weir-metrics/weir/test/cmptest"
)

// These types are what old clients decode, as the clients declared them.
type (
	clientPoint struct {
		Timestamp  time.Time `json:"timestamp"`
		Value      uint64    `json:"value"`
		FloatValue *float64  `json:"floatValue,omitempty"`
	}
	clientResult struct {
		Metrics         []clientPoint `json:"metrics"`
		LatestTimestamp time.Time     `json:"latestTimestamp"`
	}
	clientResultList struct {
		Items []clientResult `json:"items"`
	}
)

// heapster is the path where clients found Heapster: behind the API server's proxy.
const heapster = "/api/v1/proxy/namespaces/kube-system/services/http:heapster:"

// proxied serves the village behind the path of the API server's proxy.
func proxied(t *testing.T) string {
	t.Helper()
	v, facts := village(t)
	server := httptest.NewServer(http.StripPrefix(heapster, handlerOf(v, facts)))
	t.Cleanup(server.Close)
	return server.URL + heapster
}

// fetch decodes the answer at a path, as a client does.
func fetch(t *testing.T, base, path string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: got %s, want 200", path, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
}

// TestDashboard draws the graph of several pods as the Kubernetes dashboard does: it adds points
// with the same Unix second.
func TestDashboard(t *testing.T) {
	base := proxied(t)
	pods := []string{"web-1", "web-2"}
	var list clientResultList
	fetch(t, base, "/api/v1/model/namespaces/shop/pod-list/"+strings.Join(pods, ",")+"/metrics/memory/working_set", &list)
	if len(list.Items) != len(pods) {
		t.Fatalf("got %d results, want one for each of %d pods", len(list.Items), len(pods))
	}
	// The CPU of the two nodes, read at different seconds, on one graph.
	sum := map[int64]uint64{}
	for _, node := range []string{"n1", "n2"} {
		var result clientResult
		fetch(t, base, "/api/v1/model/nodes/"+node+"/metrics/cpu/usage_rate", &result)
		for _, p := range result.Metrics {
			sum[p.Timestamp.Unix()] += p.Value
		}
	}
	at := func(s time.Duration) int64 { return noon.Add(s * time.Second).Unix() }
	want := map[int64]uint64{at(0): 1500, at(15): 1650, at(30): 1800, at(45): 1950, at(60): 2050}
	cmptest.Equal(t, "millicores of both nodes by second", want, sum)
}

// TestHPAOfOldCPU computes what the HPA of Kubernetes 1.4 to 1.8 computed for CPU: the mean over
// pods of the sum over containers.
func TestHPAOfOldCPU(t *testing.T) {
	selector, err := labels.Parse("app=web,tier in (front,back)")
	if err != nil {
		t.Fatal(err)
	}
	params := url.Values{"labelSelector": {selector.String()}}
	var list v1alpha1.PodMetricsList
	fetch(t, proxied(t), fmt.Sprintf("/apis/metrics/v1alpha1/namespaces/%s/pods?%s", "shop", params.Encode()), &list)
	got := map[string]int64{}
	for _, m := range list.Items {
		for _, c := range m.Containers {
			cpu, found := c.Usage[corev1.ResourceCPU]
			if !found {
				t.Fatalf("no cpu for container %v in pod %v/%v", c.Name, m.Namespace, m.Name)
			}
			got[m.Name] += cpu.MilliValue()
		}
		if m.Timestamp.Time.IsZero() || m.Window.Duration != interval {
			t.Errorf("%s: measured at %v over %v, want a time and %v", m.Name, m.Timestamp, m.Window.Duration, interval)
		}
	}
	// web-2 has no rate yet: it is absent, and the HPA reports it as missing.
	cmptest.Equal(t, "millicores by pod", map[string]int64{"web-1": 140}, got)
}

// TestHPAOfOldMetric computes what the HPA computed for other metrics: the mean of the last minute
// of each pod.
func TestHPAOfOldMetric(t *testing.T) {
	base := proxied(t)
	mean := func(path string) []float64 {
		var list clientResultList
		start := url.Values{"start": {now.Add(-5 * time.Minute).In(time.FixedZone("", 3600)).Format(time.RFC3339)}}
		fetch(t, base, path+"?"+start.Encode(), &list)
		var means []float64
		for _, result := range list.Items {
			var sum float64
			var n int
			for _, p := range result.Metrics {
				if !p.Timestamp.Add(time.Minute).After(result.LatestTimestamp) {
					continue
				}
				n++
				if p.FloatValue != nil {
					sum += *p.FloatValue
				} else {
					sum += float64(p.Value)
				}
			}
			if n > 0 {
				means = append(means, sum/float64(n))
			}
		}
		return means
	}
	// The last minute of web-1 is its four newest points: 110 to 140 millicores.
	cmptest.Equal(t, "millicores", []float64{125}, mean("/api/v1/model/namespaces/shop/pod-list/web-1,web-2/metrics/cpu/usage_rate"))
	cmptest.Equal(t, "bytes a second", []float64{1234.5}, mean("/api/v1/model/namespaces/shop/pod-list/web-1/metrics/network/rx_rate"))
}

// TestKubectlTopOfOld reads nodes as kubectl top did before metrics.k8s.io.
func TestKubectlTopOfOld(t *testing.T) {
	base := proxied(t)
	var list v1alpha1.NodeMetricsList
	fetch(t, base, "/apis/metrics/v1alpha1/nodes?labelSelector=", &list)
	var one v1alpha1.NodeMetrics
	fetch(t, base, "/apis/metrics/v1alpha1/nodes/n2", &one)
	if len(list.Items) != 2 || list.Items[1].Name != "n2" {
		t.Fatalf("got %+v, want n1 and n2", list.Items)
	}
	for _, m := range []v1alpha1.NodeMetrics{list.Items[1], one} {
		if cpu, memory := m.Usage.Cpu().MilliValue(), m.Usage.Memory().Value(); cpu != 650 || memory != 650<<20 {
			t.Errorf("n2: got %d millicores and %d bytes, want 650 and %d", cpu, memory, 650<<20)
		}
	}
}
