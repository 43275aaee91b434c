// Package payloadtest helps to test the parsers: it has the captured payloads
// of a real kubelet, and comparisons of batches.
package payloadtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/test/capture"
)

// Node is the node of all captures.
const Node metric.NodeName = "node1"

// Received is the time at which Request says that a payload was received, in
// nanoseconds since the Unix epoch.
var Received = time.Date(2026, 11, 21, 4, 22, 40, 0, time.UTC).UnixNano()

// Request returns a request for tests that need no special one.
func Request() payload.Request {
	return payload.Request{Node: Node, Expect: Node, Received: Received}
}

// Each calls do for every captured payload with that file name, such as
// "resource.prom". path is the path below the captures without the extension.
// The test fails if there are fewer than want.
func Each(t testing.TB, name string, want int, do func(path string, body []byte)) {
	t.Helper()
	paths := append(capture.Glob(t, "*/*/"+name), capture.Glob(t, "*/*/*/"+name)...)
	paths = slices.DeleteFunc(paths, func(file string) bool { return !answered(t, file) })
	if len(paths) < want {
		t.Fatalf("got %d captures of %s, want at least %d", len(paths), name, want)
	}
	slices.Sort(paths)
	for _, file := range paths {
		do(file, capture.Read(t, file))
	}
}

// answered reports whether the kubelet sent a captured file completely, without
// an error in its status or in the payload.
func answered(t testing.TB, file string) bool {
	t.Helper()
	if bytes.Contains(capture.Read(t, file), []byte("\nresource_scrape_error 1")) {
		return false
	}
	body, found := capture.Find(t, path.Join(path.Dir(file), "meta.json"))
	if !found {
		return true
	}
	var meta struct {
		Endpoints map[string]struct{ Status int }
	}
	if err := json.Unmarshal(body, &meta); err != nil {
		t.Fatal(err)
	}
	return meta.Endpoints[path.Base(file)].Status == http.StatusOK
}

// Capture returns one captured payload by its path below the captures, such as
// "01-steady/00/resource.prom".
func Capture(t testing.TB, path string) []byte {
	t.Helper()
	return capture.Read(t, path)
}

// Parser is the interface of all parsers.
type Parser interface {
	Parse(body []byte, req payload.Request, b *metric.Batch) error
}

// Repeatable parses body with p twice and with other once, and fails unless all
// three results are equal. It returns the batch and the error. Every sample
// must have an entity and only values of its level, which must not be negative
// and must have a time. There must not be more samples than the request allows.
func Repeatable(t testing.TB, p, other Parser, body []byte, req payload.Request) (*metric.Batch, error) {
	t.Helper()
	var first, second, third metric.Batch
	err := p.Parse(body, req, &first)
	again := p.Parse(body, req, &second)
	fresh := other.Parse(body, req, &third)
	if fmt.Sprint(err) != fmt.Sprint(again) || fmt.Sprint(err) != fmt.Sprint(fresh) {
		t.Fatalf("errors differ from parse to parse: %v; %v; %v", err, again, fresh)
	}
	if diff := cmp.Diff(Lines(&first), Lines(&second)); diff != "" {
		t.Fatalf("the second parse differs from the first (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(Lines(&first), Lines(&third)); diff != "" {
		t.Fatalf("a fresh parser differs (-first +fresh):\n%s", diff)
	}
	if limit := req.Limit() + 1; len(first.Samples) > limit {
		t.Fatalf("got %d samples, want at most %d", len(first.Samples), limit)
	}
	for i := range first.Samples {
		s := &first.Samples[i]
		if s.Entity.Kind == metric.Cluster || s.Entity.Node != req.Node {
			t.Fatalf("sample %d is of %v on node %q", i, s.Entity, s.Entity.Node)
		}
		for id, v := range s.Values.All() {
			if d := id.Describe(); !d.Kinds.Has(s.Entity.Kind) {
				t.Fatalf("%v has %v, which its level does not", s.Entity, id)
			} else if s.Times[d.Group] == 0 {
				t.Fatalf("%v has %v without a time", s.Entity, id)
			}
			if !(v >= 0) {
				t.Fatalf("%v: %v is %v", s.Entity, id, v)
			}
		}
	}
	return &first, err
}

// Lines returns a batch as text for comparisons, with a line for each sample.
func Lines(b *metric.Batch) []string {
	lines := make([]string, 0, len(b.Samples))
	for i := range b.Samples {
		s := &b.Samples[i]
		var sb strings.Builder
		fmt.Fprintf(&sb, "%v %+v times=%v received=%b rates=%v", s.Entity, s.Instance, s.Times, s.Received, s.Rates)
		for id, v := range s.Values.All() {
			fmt.Fprintf(&sb, " %v=%v", id, v)
		}
		lines = append(lines, sb.String())
	}
	return lines
}

// Find returns the samples of e, on any node.
func Find(b *metric.Batch, e metric.Entity) []*metric.Sample {
	var found []*metric.Sample
	for i := range b.Samples {
		if got := b.Samples[i].Entity; cmp.Equal(got, e, cmpopts.IgnoreFields(metric.Entity{}, "Node")) {
			found = append(found, &b.Samples[i])
		}
	}
	return found
}

// Want fails unless the value of id in s is want.
func Want(t testing.TB, s *metric.Sample, id metric.ID, want float64) {
	t.Helper()
	if got, ok := s.Values.Get(id); !ok || got != want {
		t.Errorf("%v: %v is %v (present: %v), want %v", s.Entity, id, got, ok, want)
	}
}

// WantAbsent fails if s has a value for any of ids.
func WantAbsent(t testing.TB, s *metric.Sample, ids ...metric.ID) {
	t.Helper()
	for _, id := range ids {
		if got, ok := s.Values.Get(id); ok {
			t.Errorf("%v: %v is %v, want none", s.Entity, id, got)
		}
	}
}

// NoAllocations fails if another parse of body allocates memory.
func NoAllocations(t *testing.T, p Parser, body []byte) {
	t.Helper()
	var b metric.Batch
	parse := func() {
		b.Reset()
		if err := p.Parse(body, Request(), &b); err != nil {
			t.Fatal(err)
		}
	}
	parse()
	if got := testing.AllocsPerRun(50, parse); got != 0 {
		t.Errorf("parsing an unchanged payload of %d bytes: %v allocations, want 0", len(body), got)
	}
}

// Benchmark parses body repeatedly, and reports the cost per pod.
func Benchmark(b *testing.B, p Parser, body []byte) {
	b.Helper()
	var batch metric.Batch
	if err := p.Parse(body, Request(), &batch); err != nil {
		b.Fatal(err)
	}
	pods := map[metric.PodRef]bool{}
	for i := range batch.Samples {
		if ref := batch.Samples[i].Entity.PodRef(); ref.Name != "" {
			pods[ref] = true
		}
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		if err := p.Parse(body, Request(), &batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(pods)), "ns/pod")
	b.ReportMetric(float64(len(batch.Samples)), "samples")
}

// Seeds adds some captured payloads with that file name, and parts of them, to
// a fuzz corpus.
func Seeds(f *testing.F, name string) {
	f.Helper()
	for i, path := range capture.Glob(f, "0[1238]*/0[05]/"+name) {
		body := capture.Read(f, path)
		// Whole payloads make the fuzzer slow, and some parts are enough.
		from := (i * 997) % max(len(body)-2000, 1)
		f.Add(body[:min(len(body), 1500)])
		f.Add(body[from:min(len(body), from+2000)])
	}
}
