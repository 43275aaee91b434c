package main

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/buger/jsonparser"
	"github.com/go-faster/jx"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/valyala/fastjson"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/test/bench/parsers/document"
)

func loaded(t testing.TB) []payloads {
	t.Helper()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func BenchmarkParsers(b *testing.B) {
	for _, p := range loaded(b) {
		for _, c := range contenders(p.endpoint) {
			b.Run(strings.ReplaceAll(p.name+"/"+c.name, " ", "_"), func(b *testing.B) {
				decode := c.new()
				b.SetBytes(int64(len(p.bodies[0])))
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if err := decode(p.bodies[i%len(p.bodies)]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// batches returns weir's batch for each body. One parser parses them all.
func batches(t *testing.T, p payloads) []*metric.Batch {
	t.Helper()
	parser := weirParser(p.endpoint)
	var all []*metric.Batch
	for _, body := range p.bodies {
		b := &metric.Batch{}
		if err := parser.Parse(body, payload.Request{Node: "n", Received: 1}, b); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		all = append(all, b)
	}
	return all
}

// TestExpositionsAgree checks that weir's parser and textparse read the same
// numbers with the same times.
func TestExpositionsAgree(t *testing.T) {
	for _, p := range loaded(t) {
		if p.endpoint != resourceEndpoint {
			continue
		}
		for i, b := range batches(t, p) {
			got := map[string]string{}
			for k := range b.Samples {
				s := &b.Samples[k]
				for id, v := range s.Values.All() {
					at := s.Times[id.Describe().Group]
					if id == metric.MemorySwap {
						at = 0 // it has the time of the working set, which is in the same group
					}
					got[fmt.Sprint(s.Entity, " ", id)] = fmt.Sprintf("%.0f at %d", v, at/1e6)
				}
				if s.Instance.Start != 0 {
					got[fmt.Sprint(s.Entity, " start")] = fmt.Sprintf("%.6f", float64(s.Instance.Start)/1e9)
				}
			}
			want := map[string]string{}
			var l labels.Labels
			err := textparsed(p.bodies[i], labels.NewSymbolTable(), &l, func(_ []byte, ms int64, v float64) {
				expect(want, &l, ms, v)
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, round %d (-textparse +weir):\n%s", p.name, i, diff)
			}
		}
	}
}

// expect adds a series to want, in the form of TestExpositionsAgree.
func expect(want map[string]string, l *labels.Labels, ms int64, v float64) {
	name := l.Get(labels.MetricName)
	kind, family, _ := strings.Cut(name, "_")
	e := metric.Entity{Namespace: metric.Namespace(l.Get("namespace")), Pod: metric.PodName(l.Get("pod")), Name: l.Get("container"), Node: "n"}
	switch kind {
	case "container":
		e.Kind = metric.Container
	case "pod":
		e.Kind = metric.Pod
	case "node":
		e.Kind = metric.Node
	default:
		return // the kubelet's scrape error
	}
	switch family {
	case "cpu_usage_seconds_total":
		want[fmt.Sprint(e, " ", metric.CPUUsage)] = fmt.Sprintf("%.0f at %d", math.Round(v*1e9), ms)
	case "memory_working_set_bytes":
		want[fmt.Sprint(e, " ", metric.MemoryWorkingSet)] = fmt.Sprintf("%.0f at %d", v, ms)
	case "swap_usage_bytes":
		want[fmt.Sprint(e, " ", metric.MemorySwap)] = fmt.Sprintf("%.0f at 0", v)
	case "swap_limit_bytes":
		want[fmt.Sprint(e, " ", metric.SwapLimit)] = fmt.Sprintf("%.0f at %d", v, ms)
	case "start_time_seconds":
		want[fmt.Sprint(e, " start")] = fmt.Sprintf("%.6f", v)
	}
}

// TestJSONLibrariesAgree checks that every JSON library decodes the same
// document, and that those that make trees find the same numbers.
func TestJSONLibrariesAgree(t *testing.T) {
	for _, p := range loaded(t) {
		if p.endpoint != summaryEndpoint {
			continue
		}
		for i, body := range p.bodies {
			var want document.Summary
			for k, u := range unmarshalers {
				var got document.Summary
				if err := u.unmarshal(body, &got); err != nil {
					t.Fatalf("%s, round %d: %s: %v", p.name, i, u.name, err)
				}
				if k == 0 {
					want = got
				} else if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, round %d: %s differs from %s (-want +got):\n%s", p.name, i, u.name, unmarshalers[0].name, diff)
				}
			}
			total := sum(reflect.ValueOf(want))
			all, err := fastSum(&fastjson.Parser{}, body)
			if err != nil || all < total {
				t.Errorf("%s, round %d: fastjson's numbers sum to %d (%v), want at least %d", p.name, i, all, err, total)
			}
			for name, f := range map[string]func() (uint64, error){
				"simdjson-go":      func() (uint64, error) { n, _, err := simdSum(nil, body); return n, err },
				"jx":               func() (uint64, error) { return jxSum(jx.DecodeBytes(body)) },
				"jsonparser":       func() (uint64, error) { return jsonparserSum(body, jsonparser.Object) },
				"sonic's visitors": func() (uint64, error) { return visitorSum(body) },
			} {
				if got, err := f(); err != nil || got != all {
					t.Errorf("%s, round %d: %s's numbers sum to %d (%v), fastjson's to %d", p.name, i, name, got, err, all)
				}
			}
		}
	}
}

// sum returns the sum of all integers in v.
func sum(v reflect.Value) (n uint64) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			n += sum(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += sum(v.Index(i))
		}
	case reflect.Uint64:
		n = v.Uint()
	case reflect.Int64:
		n = uint64(v.Int())
	}
	return n
}

// TestSummaryAgrees checks that weir's decoder reads the numbers of the
// document.
func TestSummaryAgrees(t *testing.T) {
	for _, p := range loaded(t) {
		if p.endpoint != summaryEndpoint {
			continue
		}
		for i, b := range batches(t, p) {
			var s document.Summary
			if err := unmarshalers[0].unmarshal(p.bodies[i], &s); err != nil {
				t.Fatal(err)
			}
			want := map[string]float64{}
			node := metric.Entity{Kind: metric.Node, Node: "n"}
			numbers(want, node, &s.Node.CPU, &s.Node.Memory, &s.Node.Swap)
			for k := range s.Node.SystemContainers {
				c := &s.Node.SystemContainers[k]
				numbers(want, metric.Entity{Kind: metric.System, Node: "n", Name: c.Name}, &c.CPU, &c.Memory, &c.Swap)
			}
			for k := range s.Pods {
				pod := &s.Pods[k]
				e := metric.Entity{Kind: metric.Pod, Node: "n", Namespace: metric.Namespace(pod.PodRef.Namespace), Pod: metric.PodName(pod.PodRef.Name)}
				numbers(want, e, &pod.CPU, &pod.Memory, &pod.Swap)
				set(want, e, metric.NetworkRx, pod.Network.RxBytes)
				set(want, e, metric.NetworkTx, pod.Network.TxBytes)
				set(want, e, metric.EphemeralStorageUsage, pod.EphemeralStorage.UsedBytes)
				for j := range pod.Containers {
					c := &pod.Containers[j]
					e := e
					e.Kind, e.Name = metric.Container, c.Name
					numbers(want, e, &c.CPU, &c.Memory, &c.Swap)
					set(want, e, metric.FilesystemUsage, c.RootFS.UsedBytes)
				}
			}
			got := map[string]float64{}
			for k := range b.Samples {
				for id, v := range b.Samples[k].Values.All() {
					got[fmt.Sprint(b.Samples[k].Entity, " ", id)] = v
				}
			}
			if len(want) < 10*len(s.Pods) {
				t.Fatalf("%s: %d numbers to compare, want more", p.name, len(want))
			}
			maps.DeleteFunc(got, func(k string, _ float64) bool { _, ok := want[k]; return !ok })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, round %d (-encoding/json +weir):\n%s", p.name, i, diff)
			}
		}
	}
}

func numbers(want map[string]float64, e metric.Entity, cpu *document.CPU, memory *document.Memory, swap *document.Swap) {
	set(want, e, metric.CPUUsage, cpu.UsageCoreNanoSeconds)
	set(want, e, metric.CPUPressureSome, cpu.PSI.Some.Total*1000) // it is in microseconds
	set(want, e, metric.MemoryAvailable, memory.AvailableBytes)
	set(want, e, metric.MemoryUsage, memory.UsageBytes)
	set(want, e, metric.MemoryWorkingSet, memory.WorkingSetBytes)
	set(want, e, metric.MemoryRSS, memory.RSSBytes)
	set(want, e, metric.MemoryPageFaults, memory.PageFaults)
	set(want, e, metric.MemorySwap, swap.SwapUsageBytes)
}

// set does not add zero, because a document does not distinguish zero from a
// missing number.
func set(want map[string]float64, e metric.Entity, id metric.ID, v uint64) {
	if v != 0 {
		want[fmt.Sprint(e, " ", id)] = float64(v)
	}
}
