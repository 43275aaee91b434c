// Package examples_test runs the code that docs/extending.md shows, and checks that the page quotes
// the files exactly.
package examples_test

import (
	"bytes"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/api/externalmetrics/rules"
	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/docs/examples/api"
	"github.com/weir-metrics/weir/docs/examples/processor"
	"github.com/weir-metrics/weir/docs/examples/sink"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
)

// The manager can use the examples.
var (
	_ manager.Sink      = (*sink.Sink)(nil)
	_ manager.Processor = (*processor.Dropper)(nil)
	_ api.SampleReader  = (*memory.Snapshot)(nil)
)

// batch returns one round of a node with a pod.
func batch() *metric.Batch {
	now := time.Unix(1000, 0)
	b := &metric.Batch{Source: "kubelet:resource", Node: "n1", Interval: 15 * time.Second, Began: now, Ended: now}
	s := metric.Sample{Entity: metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: "web"}}
	s.Values.Set(metric.MemoryWorkingSet, 1<<20)
	s.Values.Set(metric.MemoryCache, 4096)
	s.Times[metric.Memory], s.Reasons[metric.Memory] = now.UnixNano(), metric.Measured
	b.Samples = append(b.Samples, s)
	return b
}

func TestSink(t *testing.T) {
	for least, want := range map[string]string{"0": "shop/web 1048576\n", "2e6": ""} {
		o, err := sink.ParseOptions("", url.Values{"least": {least}})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := sink.New(&out, o).Write(t.Context(), batch()); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("least=%s: wrote %q, want %q", least, got, want)
		}
	}
	if _, err := sink.ParseOptions("", url.Values{"most": {"1"}}); err == nil || !strings.Contains(err.Error(), "there are least") {
		t.Errorf("an unknown option: %v", err)
	}
}

func TestProcessor(t *testing.T) {
	b := batch()
	processor.New(processor.Options{Drop: []metric.ID{metric.MemoryCache}}).Process(nil, b, time.Unix(1000, 0))
	if v := &b.Samples[0].Values; v.Has(metric.MemoryCache) || !v.Has(metric.MemoryWorkingSet) {
		t.Errorf("cache there: %v, working set there: %v; want only the second", v.Has(metric.MemoryCache), v.Has(metric.MemoryWorkingSet))
	}
}

func TestAPI(t *testing.T) {
	m := memory.New(memory.Options{})
	if err := m.Write(t.Context(), batch()); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", api.Paths()[0], nil)
	for want, h := range map[string]*api.Handler{
		`{"shop":1}`:           {View: func() api.SampleReader { return m.Snapshot() }},
		"nothing was read yet": {View: func() api.SampleReader { return nil }},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("got %s, want %s", w.Body, want)
		}
	}
	if got := api.Rights(r); len(got) != 1 || got[0] != rights.ListPods("") {
		t.Errorf("needs %v, want to list all pods", got)
	}
}

// quote finds the name of a file and the lines that the page quotes from it.
var quote = regexp.MustCompile("(?s)From `([^`]+)`:\n+ *```go\n(.*?)\n *```\n")

func TestPageQuotesTheFiles(t *testing.T) {
	page, err := os.ReadFile("../extending.md")
	if err != nil {
		t.Fatal(err)
	}
	quotes := quote.FindAllStringSubmatch(string(page), -1)
	if want := strings.Count(string(page), "```go"); len(quotes) != want || want == 0 {
		t.Errorf("%d quotes name their file, of %d", len(quotes), want)
	}
	for _, q := range quotes {
		file, err := os.ReadFile(filepath.Join("../..", q[1]))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(file), q[2]) {
			t.Errorf("docs/extending.md quotes what %s does not say (any more):\n%s", q[1], q[2])
		}
	}
	// Every file that the page says to change must exist.
	for _, m := range regexp.MustCompile("`((?:cmd|metric|sources|sinks|processors|docs)/[a-z/]+\\.(?:go|md))`").FindAllStringSubmatch(string(page), -1) {
		if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
			t.Errorf("docs/extending.md names %s: %v", m[1], err)
		}
	}
}

// TestScalingExamples checks the manifests and rules of the examples whose commands TestExamples of
// test/apis runs, and that the rules of its cluster are those of the examples.
func TestScalingExamples(t *testing.T) {
	read := func(file string) (metrics []map[string]any) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rules.Parse(file, text); err != nil {
			t.Error(err)
		}
		var f struct {
			Metrics []map[string]any `json:"metrics"`
		}
		if err := yaml.Unmarshal(text, &f); err != nil {
			t.Fatal(err)
		}
		return f.Metrics
	}
	ofCluster := read(filepath.Join("..", "..", "test", "apis", "testdata", "weir", "rules.yaml"))
	for _, m := range ofCluster {
		delete(m, "prometheus")
	}
	files, err := filepath.Glob("hpa-*/rules.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("got %q, %v; want the rules of four examples", files, err)
	}
	for _, file := range files {
		for _, m := range read(file) {
			if !slices.ContainsFunc(ofCluster, func(o map[string]any) bool { return cmp.Equal(o, m) }) {
				t.Errorf("%s: test/apis/testdata/weir/rules.yaml has no metric %v", file, m)
			}
		}
		folder := filepath.Dir(file)
		for _, manifest := range []string{"workload.yaml", "hpa.yaml"} {
			text, err := os.ReadFile(filepath.Join(folder, manifest))
			if err != nil {
				t.Fatal(err)
			}
			strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
			for document := range strings.SplitSeq(string(text), "\n---\n") {
				if _, _, err := strict.Decode([]byte(document), nil, nil); err != nil {
					t.Errorf("%s/%s: %v", folder, manifest, err)
				}
			}
		}
	}
}
