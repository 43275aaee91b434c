package resourcemetrics_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apimetrics "k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// strange returns a cluster with names that no API server accepts, and with extreme numbers.
func strange(t testing.TB) *fixture {
	t.Helper()
	w := newFixture()
	names := []string{
		"plain", `quote"d`, `back\slash`, "<html>&", "line\nend", "tab\t", "\x00\x1f\x7f", "ünïcødé", "世界", "\u2028\u2029", "\xff\xfe", "emoji🙂",
		strings.Repeat("n", 127), strings.Repeat("n", 128), strings.Repeat("n", 300),
	}
	amounts := []float64{0, 0.4, 1, 999, 1000, 1023, 1024, 1e6, 1 << 20, 1e9, 1.5e9, 1 << 30, 1e12, 123456789, 1e15, 1 << 50, 1e18, 1 << 62, math.MaxInt64, 1e30}
	windows := []time.Duration{0, 1, 1500, time.Millisecond, 15 * time.Second, 15*time.Second + 3*time.Millisecond, 90 * time.Minute, -time.Second}
	b := batch("n1")
	measured(b, nodeEntity("n1"), 0, 15*time.Second, 1e9, 1<<30)
	var pods []*cluster.Pod
	for i, name := range names {
		for j, namespace := range names[:4] {
			p := running(namespace, name, "n1", name, name, "b", "a")
			switch n := i + j; {
			case n%5 == 0:
				p.Labels = nil
			case n%5 == 1:
				p.Labels = map[string]string{}
			default:
				for k := range n {
					p.Labels[names[k%len(names)]+fmt.Sprint(k)] = names[(k+i)%len(names)]
				}
			}
			pods = append(pods, p)
			for k, c := range p.Containers {
				n := i*7 + j*3 + k
				measured(b, container(p, c.Name), time.Duration(n)*17*time.Second, windows[n%len(windows)], amounts[n%len(amounts)], amounts[(n/2)%len(amounts)])
			}
		}
	}
	early := running("early", "early", "n1", "early", "a")
	s := measured(b, container(early, "a"), 0, 0, 1, 1)
	s.Times[metric.CPU], s.Rates[metric.CPU] = -1, metric.Window{End: -1, Length: time.Second} // before 1970
	w.know([]*cluster.Node{
		{Name: "n1", Ready: true, Labels: map[string]string{"zone": "a", "<b>": "c"}}, {Name: "n0", Ready: true},
	}, append(pods, early))
	w.write(t, b)
	b = batch("n0")
	measured(b, nodeEntity("n0"), time.Second, 10*time.Second, 1e18, 1e18)
	w.write(t, b)
	return w
}

// TestDirect sends each request twice: once as it is answered directly, and once with a limit,
// which only makes the library write the answer. The bytes must be equal.
func TestDirect(t *testing.T) {
	large := newFixture()
	fill(t, large, 4, 200, 2)
	for name, w := range map[string]*fixture{"village": village(t), "strange": strange(t), "large": large} {
		config := serve(t, w.options())
		served := versionPaths
		if name == "large" {
			served = served[:1] // the versions differ in no way that depends on the size
		}
		paths := []string{
			"/nodes", "/nodes/n1", "/nodes/n2", "/nodes/nobody", "/pods", "/namespaces/shop/pods", "/namespaces/nowhere/pods", "/namespaces/plain/pods",
			"/namespaces/kube-system/pods/agent", "/namespaces/shop/pods/web-0", "/namespaces/shop/pods/web-1", "/namespaces/plain/pods/世界",
			"/pods?labelSelector=app%3Dweb", "/pods?labelSelector=app+in+(web,api),tier", "/pods?labelSelector=", "/pods?labelSelector=%21tier",
			"/pods?labelSelector=app%3Dapp-0000", "/nodes?labelSelector=zone%3Da", "/namespaces/shop/pods?labelSelector=app%21%3Dlost",
			// The library answers these both times.
			"/pods?labelSelector=a%3D%3D%3Db", "/pods?labelSelector=a&labelSelector=b", "/pods?fieldSelector=metadata.name%3Dweb-0", "/pods?pretty=true",
			"/pods?watch=true", "/nodes?fieldSelector=metadata.namespace%3Da", "/namespaces/shop/pods/web-0?resourceVersion=0", "/pods?resourceVersion=0",
		}
		for _, path := range paths {
			packings := []string{"identity"}
			if name == "large" {
				packings = []string{"identity", "br, gzip", "gzip;q=1"} // the library does not accept the last one
			}
			for _, accept := range []string{
				"", "application/*;q=0.5,application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json",
				"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", asTable, "application/cbor", "application/json;pretty=1", "text/csv",
			} {
				for _, packed := range packings {
					and := "?"
					if strings.Contains(path, "?") {
						and = "&"
					}
					for _, version := range served {
						got := ask(t, config, version+path, accept, packed)
						want := ask(t, config, version+path+and+"limit=7", accept, packed)
						want = strings.ReplaceAll(want, "&limit=7", "")
						if got != want {
							t.Fatalf("%s: %s%s as %q, %q (-library +direct):\n%s", name, version, path, accept, packed, cmp.Diff(want, got))
						}
					}
				}
			}
		}
	}
}

// ask returns a complete answer, with the headers that do not vary.
func ask(t *testing.T, config *rest.Config, path, accept, packed string) string {
	t.Helper()
	header := []string{"Accept-Encoding", packed, "User-Agent", "test"}
	if accept != "" {
		header = append(header, "Accept", accept)
	}
	response, body := get(t, config, path, header...)
	if response.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	var said strings.Builder
	for _, name := range []string{"Content-Type", "Content-Encoding", "Vary", "Warning", "Retry-After", "Cache-Control"} {
		fmt.Fprintf(&said, "%s: %q\n", name, response.Header.Values(name))
	}
	return fmt.Sprintf("%d\n%s%s", response.StatusCode, said.String(), body)
}

// TestDirectIsCounted checks that direct answers count in the library's metrics, and that they
// have a length if it is known before.
func TestDirectIsCounted(t *testing.T) {
	w := newFixture()
	fill(t, w, 4, 200, 2)
	config := serve(t, w.options())
	apimetrics.Register()
	counted := func() map[string]float64 {
		t.Helper()
		families, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]float64{}
		for _, f := range families {
			if f.GetName() != "apiserver_request_total" && f.GetName() != "apiserver_response_sizes" {
				continue
			}
			for _, m := range f.Metric {
				var labels []string
				for _, l := range m.Label {
					labels = append(labels, l.GetValue())
				}
				counts[f.GetName()+" "+strings.Join(labels, ",")] += m.Counter.GetValue() + m.Histogram.GetSampleSum()
			}
		}
		return counts
	}
	sizes := func(counts map[string]float64) (sum float64) {
		for name, n := range counts {
			if strings.Contains(name, "sizes") {
				sum += n
			}
		}
		return sum
	}
	growth := func(path, packed string) (map[string]float64, int64) {
		t.Helper()
		before := counted()
		response, _ := get(t, config, apiPath+path, "Accept", "application/vnd.kubernetes.protobuf", "Accept-Encoding", packed)
		after := counted()
		// A client that knows the length has the answer before it is counted.
		for end := time.Now().Add(time.Minute); sizes(after) == sizes(before) && time.Now().Before(end); {
			after = counted()
		}
		after = counted() // the sizes are counted last, and the library does not read all counters at once
		for name := range after {
			if after[name] -= before[name]; after[name] == 0 || packed == "gzip" && strings.Contains(name, "sizes") {
				delete(after, name) // the compressed sizes differ
			}
		}
		return after, response.ContentLength
	}
	for _, path := range []string{"/pods", "/namespaces/team-07/pods", "/nodes", "/nodes/node-0001", "/namespaces/team-07/pods/app-0000-7c5ddbdf54-00001"} {
		for _, packed := range []string{"identity", "gzip"} {
			got, length := growth(path, packed)
			want, byLibrary := growth(path+"?limit=7", packed)
			if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
				t.Errorf("%s, %s: counted (-library +direct):\n%s", path, packed, diff)
			}
			if path == "/pods" && packed == "identity" && (length < 1<<17 || byLibrary != -1) {
				t.Errorf("lengths %d and %d: want one said by the direct answer alone: is it direct?", length, byLibrary)
			}
		}
	}
}
