package kubeletapi_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/cadvisor"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
	"github.com/weir-metrics/weir/test/capture"
)

// parser is the common interface of weir's parsers for the endpoints of a kubelet.
type parser interface {
	Parse(body []byte, req payload.Request, b *metric.Batch) error
}

// endpoint is one endpoint of a kubelet, with weir's parser for it.
type endpoint struct {
	path, capture string
	new           func() parser
	clock         time.Duration
}

var (
	ofResource = endpoint{kubeletapi.ResourcePath, "resource.prom", func() parser { return resource.New() }, resource.Clock}
	ofSummary  = endpoint{kubeletapi.SummaryPath, "summary.json", func() parser { return summary.New() }, summary.Clock}
	ofCAdvisor = endpoint{kubeletapi.CAdvisorPath, "cadvisor.prom", func() parser { return cadvisor.New() }, cadvisor.Clock}
)

const node = "node1"

// parse reads a payload as a weir server does.
func (e endpoint) parse(t *testing.T, body []byte) *metric.Batch {
	t.Helper()
	b := &metric.Batch{Source: "host", Node: node, Resolution: e.clock, Ended: time.Unix(1795227300, 0)}
	if err := e.new().Parse(body, payload.Request{Node: node, Expect: node, Received: b.Ended.UnixNano()}, b); err != nil {
		t.Fatalf("%s does not parse: %v\n%s", e.path, err, body)
	}
	return b
}

// get sends a request to h.
func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// serve returns the answer of h to a request that must succeed.
func serve(t *testing.T, h http.Handler, path string) []byte {
	t.Helper()
	w := get(t, h, path)
	if w.Code != http.StatusOK {
		t.Fatalf("GET %s: %d\n%s", path, w.Code, w.Body)
	}
	return w.Body.Bytes()
}

// handler returns a handler that serves a round.
func handler(t *testing.T, b *metric.Batch, o kubeletapi.Options) *kubeletapi.Handler {
	t.Helper()
	setCAdvisor(&o, b)
	o.Newest = kubeletapi.NewNewest(b.Source)
	if err := o.Newest.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return kubeletapi.NewHandler(o)
}

// captures returns the captured payloads of an endpoint, by path.
func captures(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	paths := capture.Glob(t, pattern)
	if len(paths) == 0 {
		t.Fatalf("no captures of %s", pattern)
	}
	all := map[string][]byte{}
	for _, path := range paths {
		all[path] = capture.Read(t, path)
	}
	return all
}

// numbers formats the values of samples for comparison: each value with its entity, its time
// rounded down to a multiple of clock, and the start of its instance.
func numbers(b *metric.Batch, clock time.Duration, keep func(*metric.Sample, metric.ID) bool) []string {
	var all []string
	for i := range b.Samples {
		s := &b.Samples[i]
		for id, v := range s.Values.All() {
			if !keep(s, id) {
				continue
			}
			at := s.Times[id.Describe().Group]
			all = append(all, fmt.Sprintf("%v %v=%.0f at %d, began %d", s.Entity, id, v, at-at%int64(clock), s.Instance.Start/1e9))
		}
	}
	slices.Sort(all)
	return all
}

// If an agent serves the answers of a kubelet, a weir server reads the same values from both.
func TestServesWhatAKubeletSaid(t *testing.T) {
	for _, c := range []struct {
		endpoint
		keep func(*metric.Sample, metric.ID) bool
	}{
		{ofResource, func(_ *metric.Sample, id metric.ID) bool { return id != metric.Uptime }},
		{ofSummary, func(s *metric.Sample, id metric.ID) bool {
			kind, _, _ := strings.Cut(s.Entity.Part, ":")
			switch id.Describe().Group {
			case metric.CPU, metric.Memory, metric.Network:
				return s.Entity.Kind != metric.System && (kind == "" || kind == "interface")
			case metric.IO:
				return s.Entity.Kind != metric.System && id != metric.IOPressureFull // if some is absent, so is full
			case metric.Filesystem:
				return s.Entity.Kind == metric.Node && kind == "" // Base reads those of pods and containers
			}
			return id == metric.ProcessCount && s.Entity.Kind == metric.Pod
		}},
	} {
		t.Run(c.capture, func(t *testing.T) {
			for path, body := range captures(t, "01-steady/0*/"+c.capture) {
				want := c.parse(t, body)
				got := c.parse(t, serve(t, handler(t, want, kubeletapi.Options{}), c.path))
				a, b := numbers(want, c.clock, c.keep), numbers(got, c.clock, c.keep)
				if len(a) < 100 {
					t.Fatalf("%s: only %d numbers", path, len(a))
				}
				if diff := cmp.Diff(a, b); diff != "" {
					t.Fatalf("%s (-kubelet +agent):\n%s", path, diff)
				}
			}
		})
	}
}

// Families have the names, types and labels of a kubelet.
func TestLooksAsAKubeletDoes(t *testing.T) {
	for _, body := range captures(t, "01-steady/00/resource.prom") {
		theirs := shape(t, body)
		ours := shape(t, serve(t, handler(t, ofResource.parse(t, body), kubeletapi.Options{}), kubeletapi.ResourcePath))
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Errorf("(-kubelet +agent):\n%s", diff)
		}
	}
}

// shape formats the type, help and labels of each family, and whether it has a timestamp.
func shape(t *testing.T, body []byte) map[string]string {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string]string{}
	for name, f := range all {
		labels := map[string]bool{}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				labels[l.GetName()] = true
			}
		}
		shapes[name] = fmt.Sprintf("%v %v dated=%t", f.GetType(), slices.Sorted(maps.Keys(labels)), f.Metric[0].TimestampMs != nil)
	}
	return shapes
}
