package resource_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/test/payloadtest"
)

// reference parses body with Prometheus' own parser. It returns the values of each entity and
// metric, in the order of their lines: "shop/web/web cpu/usage" → 383757177783 at
// 1795234949671000000.
func reference(body []byte) (map[string][]reading, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	want := map[string][]reading{}
	for name, f := range families {
		kind, rest, _ := strings.Cut(name, "_")
		id, ok := map[string]metric.ID{
			"cpu_usage_seconds_total":  metric.CPUUsage,
			"memory_working_set_bytes": metric.MemoryWorkingSet,
			"swap_usage_bytes":         metric.MemorySwap,
			"swap_limit_bytes":         metric.SwapLimit,
		}[rest]
		if !ok {
			continue
		}
		for _, m := range f.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			e := metric.Entity{Kind: metric.Node, Node: payloadtest.Node}
			switch kind {
			case "container":
				e.Kind, e.Name = metric.Container, labels["container"]
			case "pod":
				e.Kind = metric.Pod
			}
			e.Namespace, e.Pod = metric.Namespace(labels["namespace"]), metric.PodName(labels["pod"])
			v := m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
			if id == metric.CPUUsage {
				v = math.Round(v * 1e9)
			}
			key := fmt.Sprint(e, " ", id)
			want[key] = append(want[key], newReading(id, v, m.GetTimestampMs()*1e6))
		}
	}
	return want, nil
}

// reading is a value and its time, in nanoseconds since the Unix epoch.
type reading struct {
	Value float64
	At    int64
}

// newReading omits the time of swap. The time of its group is that of the working set, and a kubelet
// that has not read swap writes 0 with the current time.
func newReading(id metric.ID, v float64, at int64) reading {
	if id == metric.MemorySwap {
		at = 0
	}
	return reading{v, at}
}

// readings returns what the parser found in the same form.
func readings(b *metric.Batch) map[string][]reading {
	got := map[string][]reading{}
	for i := range b.Samples {
		s := &b.Samples[i]
		for id, v := range s.Values.All() {
			key := fmt.Sprint(s.Entity, " ", id)
			got[key] = append(got[key], newReading(id, v, s.Times[id.Describe().Group]))
		}
	}
	return got
}

func TestCapturesAgreeWithReferenceParser(t *testing.T) {
	p := resource.New()
	values := 0
	payloadtest.Each(t, "resource.prom", 335, func(path string, body []byte) {
		b, err := payloadtest.Repeatable(t, p, resource.New(), body, payloadtest.Request())
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		got := readings(b)
		for _, of := range got {
			values += len(of)
		}
		for i := range b.Samples {
			if s := &b.Samples[i]; s.Received != 0 {
				t.Errorf("%s: %v: some times are not the node's", path, s.Entity)
			}
		}
		want, err := reference(body)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-reference +got):\n%s", path, diff)
		}
	})
	// This number was counted with grep over all captures.
	if want := 3918 + 3918 + 1583 + 3895 + 3*335 + 2658 + 2658 + 2654; values != want {
		t.Errorf("got %d values in all captures, want %d", values, want)
	}
}

func web() metric.Entity {
	return metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "web", Name: "web"}
}

func TestExactValues(t *testing.T) {
	b, err := payloadtest.Repeatable(t, resource.New(), resource.New(), payloadtest.Capture(t, "08-kubelet-restart/00/resource.prom"), payloadtest.Request())
	if err != nil {
		t.Fatal(err)
	}
	s := payloadtest.Find(b, web())
	if len(s) != 1 {
		t.Fatalf("got %d samples of shop/web/web, want 1", len(s))
	}
	payloadtest.Want(t, s[0], metric.CPUUsage, 383757177783)
	payloadtest.Want(t, s[0], metric.MemoryWorkingSet, 23584768)
	payloadtest.Want(t, s[0], metric.MemorySwap, 0)
	payloadtest.Want(t, s[0], metric.SwapLimit, 67108864)
	if got, want := s[0].Times[metric.CPU], int64(1795234949671e6); got != want {
		t.Errorf("CPU time is %d, want %d", got, want)
	}
	want := metric.Instance{Start: 1795227036533464400, Origin: metric.StartReported, Processes: -1}
	if s[0].Instance != want {
		t.Errorf("instance is %+v, want %+v", s[0].Instance, want)
	}
	node := payloadtest.Find(b, metric.Entity{Kind: metric.Node})
	payloadtest.Want(t, node[0], metric.CPUUsage, 10873277663533)
	payloadtest.Want(t, node[0], metric.MemoryWorkingSet, 4187791360)
}

// parse parses the lines as a payload without a line feed at the end.
func parse(t *testing.T, lines ...string) (*metric.Batch, error) {
	t.Helper()
	return payloadtest.Repeatable(t, resource.New(), resource.New(), []byte(strings.Join(lines, "\n")+"\n"), payloadtest.Request())
}

const (
	webLabels  = `{container="web",namespace="shop",pod="web"}`
	cpuLine    = `container_cpu_usage_seconds_total` + webLabels
	memoryLine = `container_memory_working_set_bytes` + webLabels
	startLine  = `container_start_time_seconds` + webLabels
)

func TestTwoLinesAreTwoSamples(t *testing.T) {
	b, err := parse(t,
		cpuLine+" 10.5 1795234949671",
		cpuLine+" 3 1795234950000",
		memoryLine+" 100 1795234949671",
		memoryLine+" 200 1795234950000",
		startLine+" 1.795227e+09",
	)
	if err != nil {
		t.Fatal(err)
	}
	s := payloadtest.Find(b, web())
	if len(s) != 2 {
		t.Fatalf("got %d samples, want 2", len(s))
	}
	payloadtest.Want(t, s[0], metric.CPUUsage, 10.5e9)
	payloadtest.Want(t, s[0], metric.MemoryWorkingSet, 100)
	payloadtest.Want(t, s[1], metric.CPUUsage, 3e9)
	payloadtest.Want(t, s[1], metric.MemoryWorkingSet, 200)
	for _, s := range s {
		if s.Instance.Start != 0 || s.Instance.Origin != metric.StartUnknown {
			t.Errorf("one start line for two samples: got start %d, want none", s.Instance.Start)
		}
	}
}

func TestTwoLinesWithTwoStarts(t *testing.T) {
	b, err := parse(t,
		cpuLine+" 10 1795234949671", cpuLine+" 3 1795234950000",
		startLine+" 1.795227e+09", startLine+" 1.795228e+09",
	)
	if err != nil {
		t.Fatal(err)
	}
	s := payloadtest.Find(b, web())
	if got, want := [2]int64{s[0].Instance.Start, s[1].Instance.Start}, [2]int64{1795227e12, 1795228e12}; got != want {
		t.Errorf("got starts %v, want %v", got, want)
	}
}

func TestLoneLineOfTwoGoesByItsTime(t *testing.T) {
	b, err := parse(t,
		cpuLine+" 10 1795234949671", cpuLine+" 3 1795234950000",
		memoryLine+" 200 1795234950000",
	)
	if err != nil {
		t.Fatal(err)
	}
	s := payloadtest.Find(b, web())
	payloadtest.WantAbsent(t, s[0], metric.MemoryWorkingSet)
	payloadtest.Want(t, s[1], metric.MemoryWorkingSet, 200)
}

func TestTolerates(t *testing.T) {
	const ts = 1795234949671
	f := func(line string, want float64, wantTime int64) {
		t.Helper()
		b, err := parse(t, line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			return
		}
		s := payloadtest.Find(b, web())
		if len(s) != 1 {
			t.Errorf("%s: got %d samples, want 1", line, len(s))
			return
		}
		payloadtest.Want(t, s[0], metric.CPUUsage, want)
		if got := s[0].Times[metric.CPU]; got != wantTime {
			t.Errorf("%s: got time %d, want %d", line, got, wantTime)
		}
		if got, want := s[0].Received != 0, wantTime == payloadtest.Received; got != want {
			t.Errorf("%s: time marked as ours: %v, want %v", line, got, want)
		}
	}
	f(cpuLine+" 7 1795234949671", 7e9, ts*1e6)
	f(cpuLine+" 7 1795234949671\r", 7e9, ts*1e6)
	f(cpuLine+"\t7\t1795234949671 ", 7e9, ts*1e6)
	f(" "+cpuLine+"   7   1795234949671", 7e9, ts*1e6)
	f(cpuLine+" 7", 7e9, payloadtest.Received)
	f(cpuLine+" 7 0", 7e9, payloadtest.Received)
	f(cpuLine+" 7\r", 7e9, payloadtest.Received)
	f(cpuLine+` 7 # {trace_id="x"} 0.5`, 7e9, payloadtest.Received)
	f(cpuLine+` 7 1795234949.671 # {trace_id="x"} 0.5`, 7e9, ts*1e6)
	f(cpuLine+" 7 1795234949", 7e9, 1795234949e9)
	f(cpuLine+" 7 1795234949671\n# EOF", 7e9, ts*1e6)
	f("# anything at all {\n#\n\n"+cpuLine+" 7 1795234949671", 7e9, ts*1e6)
	f("unknown_family{a=\"}\"} 1\nunknown_family{a=\"b\"} 2\nother 3 4\n"+cpuLine+" 7", 7e9, payloadtest.Received)
	f(`{"a family in quotes",x="y"} 1`+"\n"+cpuLine+" 7", 7e9, payloadtest.Received)
	f(`container_cpu_usage_seconds_total { pod = "web" , container="web", namespace="shop",more="\\\"\n", } 7`, 7e9, payloadtest.Received)
	f(cpuLine+" 1.16690143900000001e+02", 116690143900, payloadtest.Received)
	f(cpuLine+" 9007199.254740991", 9007199254740991, payloadtest.Received)
	f(cpuLine+" .000000001", 1, payloadtest.Received)
	f(cpuLine+" 0", 0, payloadtest.Received)
	f(cpuLine+" 1e-30", 0, payloadtest.Received)
}

func TestEscapedLabels(t *testing.T) {
	b, err := parse(t, `pod_cpu_usage_seconds_total{namespace="a\\b",pod="\"c\"\nd"} 1`)
	if err != nil {
		t.Fatal(err)
	}
	if len(payloadtest.Find(b, metric.Entity{Kind: metric.Pod, Namespace: `a\b`, Pod: "\"c\"\nd"})) != 1 {
		t.Errorf("got %v, want one pod with its escapes resolved", payloadtest.Lines(b))
	}
}

func TestWhatIsNoMeasurementIsAbsent(t *testing.T) {
	for _, v := range []string{"NaN", "+Inf", "-Inf", "-1", "nan", "1e400", "0x1p-2", "0X1.8p3"} {
		b, err := parse(t, cpuLine+" "+v+" 1795234949671", memoryLine+" 5 1795234949671")
		if err != nil {
			t.Errorf("%s: %v", v, err)
			continue
		}
		s := payloadtest.Find(b, web())
		if len(s) != 1 {
			t.Fatalf("%s: got %d samples, want 1", v, len(s))
		}
		payloadtest.WantAbsent(t, s[0], metric.CPUUsage)
		payloadtest.Want(t, s[0], metric.MemoryWorkingSet, 5)
		if s[0].Times[metric.CPU] != 0 {
			t.Errorf("%s: CPU has a time without a value", v)
		}
	}
}

func TestBadPayloads(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		var b metric.Batch
		err := resource.New().Parse([]byte(body), payloadtest.Request(), &b)
		var read *metric.ReadError
		if !errors.As(err, &read) || read.Reason != metric.NodeBadPayload {
			t.Errorf("%q: got error %v, want NodeBadPayload", body, err)
			return
		}
		if got := read.Err.Error(); got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
		if len(b.Samples) != 0 {
			t.Errorf("%q: got %d samples, want none", body, len(b.Samples))
		}
	}
	good := cpuLine + " 7\n"
	f("", `line 1 (offset 0): no family of /metrics/resource: end of payload`)
	f("# HELP only\n", `line 1 (offset 0): no family of /metrics/resource: "# HELP only"`)
	f("<html><body>\n502</body></html>", `line 1 (offset 0): no metric name: "<html><body>"`)
	f("404 page not found\n", `line 1 (offset 0): no metric name: "404 page not found"`)
	f("Unauthorized", `line 1 (offset 12): neither labels nor a value: end of payload`)
	f(good+cpuLine+"\n", `line 2 (offset 113): no value: "{container=\"web\",namespace=\"shop\",pod=\"web\"}"`)
	f(good+cpuLine+" x\n", `line 2 (offset 158): not a number: "x"`)
	f(good+cpuLine+" 1 2 3\n", `line 2 (offset 162): more than a value and a time: "3"`)
	f(good+cpuLine+" 1e\n", `line 2 (offset 158): not a number: "1e"`)
	f(good+`container_cpu_usage_seconds_total{container="we`, `line 2 (offset 113): a label value without a closing quote: "{container=\"we"`)
	f(good+`container_cpu_usage_seconds_total{container`, `line 2 (offset 113): labels without a closing brace: "{container"`)
	f(good+`container_cpu_usage_seconds_total{container} 7`, `line 2 (offset 113): not a list of labels: "{container} 7"`)
	f(good+cpuLine+` 7`, `line 2 (offset 159): the last line has no line feed: the payload is not complete: end of payload`)
	f(good+strings.Repeat("x", 100)+"\n", `line 2 (offset 180): neither labels nor a value: ""`)
}

func TestKubeletSaysItFailed(t *testing.T) {
	for _, family := range []string{"resource_scrape_error", "scrape_error"} {
		b, err := parse(t, cpuLine+" 7", family+" 1")
		var read *metric.ReadError
		if !errors.As(err, &read) || read.Reason != metric.NodeScrapeError {
			t.Errorf("%s 1: got %v, want NodeScrapeError", family, err)
		}
		if len(b.Samples) != 1 {
			t.Errorf("%s 1: got %d samples, want the one that was read", family, len(b.Samples))
		}
		if _, err := parse(t, cpuLine+" 7", family+" 0"); err != nil {
			t.Errorf("%s 0: %v", family, err)
		}
	}
}

func TestBoundOnSamples(t *testing.T) {
	var sb strings.Builder
	for i := range 10 {
		fmt.Fprintf(&sb, "pod_cpu_usage_seconds_total{namespace=\"n\",pod=\"p%d\"} 1\n", i)
	}
	sb.WriteString("node_cpu_usage_seconds_total 3\n")
	req := payloadtest.Request()
	req.MaxSamples = 4
	b, err := payloadtest.Repeatable(t, resource.New(), resource.New(), []byte(sb.String()), req)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Samples) != 5 || b.Samples[4].Entity.Kind != metric.Node {
		t.Errorf("got %v, want four pods and the node", payloadtest.Lines(b))
	}
	if len(b.Verdicts) != 4 {
		t.Fatalf("got %d verdicts, want 4: no more than samples", len(b.Verdicts))
	}
	v := b.Verdicts[0]
	if v.Entity.Pod != "p4" || v.Reason != metric.OverLimit || v.Evidence.Limit != 4 || v.Group != metric.CPU {
		t.Errorf("got verdict %+v, want OverLimit 4 for the CPU of p4", v)
	}
}

func TestNamesAreForgotten(t *testing.T) {
	p := resource.New()
	var b metric.Batch
	for i := range 1000 {
		b.Reset()
		body := fmt.Sprintf("pod_cpu_usage_seconds_total{namespace=\"n\",pod=\"p%d\"} 1\n", i)
		if err := p.Parse([]byte(body), payload.Request{Node: "n"}, &b); err != nil {
			t.Fatal(err)
		}
		if got := p.Names(); got > 10 {
			t.Fatalf("after %d rounds of one new pod each: %d names are kept, want at most 10", i+1, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	payloadtest.Seeds(f, "resource.prom")
	f.Add([]byte(cpuLine + " 1\n" + cpuLine + " 2 1795234949671\n" + startLine + " 3\nresource_scrape_error 1\n# EOF\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		req := payloadtest.Request()
		req.MaxSamples = 50
		b, err := payloadtest.Repeatable(t, resource.New(), resource.New(), body, req)
		var read *metric.ReadError
		if err != nil && !errors.As(err, &read) {
			t.Fatalf("an error without a reason: %v", err)
		}
		if read != nil && read.Reason == metric.NodeBadPayload && len(b.Samples) > 0 {
			t.Fatalf("%d samples from a payload that does not parse", len(b.Samples))
		}
	})
}

// FuzzReference checks that each value is one that Prometheus' own parser finds for the entity, in
// payloads that it accepts.
func FuzzReference(f *testing.F) {
	payloadtest.Seeds(f, "resource.prom")
	f.Add([]byte(cpuLine + " 1\n" + cpuLine + " 2 1795234949671\n" + startLine + " 3\n# EOF\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		b := new(metric.Batch)
		if resource.New().Parse(body, payloadtest.Request(), b) != nil {
			return
		}
		want, err := reference(body)
		if err != nil {
			return
		}
		for key, got := range readings(b) {
			for _, g := range got {
				// A value beyond 2^53 is rounded by both parsers, at different places.
				if !slices.ContainsFunc(want[key], func(w reading) bool { return math.Abs(g.Value-w.Value) <= w.Value/(1<<50) }) {
					t.Errorf("%s: got %v, Prometheus' parser says %v", key, g.Value, want[key])
				}
			}
		}
	})
}

// FuzzMemory checks that the state of one payload does not change the result of the next one.
func FuzzMemory(f *testing.F) {
	node := payloadtest.Capture(f, "01-steady/00/resource.prom")
	f.Add(node[:2000], node[500:2500])
	f.Add([]byte(cpuLine+" 1\n"+cpuLine+" 2 1795234949671\n"), []byte(memoryLine+" 3\n"+cpuLine+" 1\n"+startLine+" 3\n"))
	f.Add([]byte("pod_swap_usage_bytes{namespace=\"a\",pod=\"b\\\\n\"} 1\n"), []byte("pod_swap_usage_bytes{namespace=\"a\",pod=\"b\\n\"} 1\n"))
	f.Add([]byte("node_swap_usage_bytes 1\n"+cpuLine+" 1\n"), []byte(cpuLine+" 1\nnode_swap_usage_bytes{} 1\nresource_scrape_error 1\n"))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		req := payloadtest.Request()
		req.MaxSamples = 50
		p := resource.New()
		for range 2 {
			var b, before metric.Batch
			// The result of the first payload does not matter.
			_ = p.Parse(one, req, &before)
			var want metric.Batch
			wantErr := resource.New().Parse(two, req, &want)
			if err := p.Parse(two, req, &b); fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("after another payload: error %v, want %v", err, wantErr)
			}
			if diff := cmp.Diff(payloadtest.Lines(&want), payloadtest.Lines(&b)); diff != "" {
				t.Fatalf("after another payload (-alone +after):\n%s", diff)
			}
		}
	})
}

// TestMemoryOfANode checks that the names of a node need at most 8 kB in addition to the entities.
func TestMemoryOfANode(t *testing.T) {
	var sb strings.Builder
	for _, f := range []string{"cpu_usage_seconds_total", "memory_working_set_bytes", "start_time_seconds", "swap_limit_bytes", "swap_usage_bytes"} {
		for i := range 60 {
			fmt.Fprintf(&sb, "container_%s{container=\"app-%d\",namespace=\"shop-%d\",pod=\"web-n25f9wm5jq-dqv%02d\"} 1 1795234949671\n", f, i/30, i%7, i%30)
		}
	}
	for _, f := range []string{"cpu_usage_seconds_total", "memory_working_set_bytes", "swap_usage_bytes"} {
		fmt.Fprintf(&sb, "node_%s 1 1795234949671\n", f)
		for i := range 30 {
			fmt.Fprintf(&sb, "pod_%s{namespace=\"shop-%d\",pod=\"web-n25f9wm5jq-dqv%02d\"} 1 1795234949671\n", f, i%7, i)
		}
	}
	body := []byte(sb.String())
	const nodes = 200
	parsers := make([]*resource.Parser, nodes)
	var b metric.Batch
	if err := resource.New().Parse(body, payloadtest.Request(), &b); err != nil || len(b.Samples) != 91 {
		t.Fatalf("got %d samples and error %v, want 91", len(b.Samples), err)
	}
	before := heap()
	for i := range parsers {
		parsers[i] = resource.New()
		for range 2 {
			b.Reset()
			if err := parsers[i].Parse(body, payloadtest.Request(), &b); err != nil {
				t.Fatal(err)
			}
		}
	}
	entities := int64(len(b.Samples)) * int64(reflect.TypeFor[metric.Entity]().Size())
	got := (heap()-before)/nodes - entities
	t.Logf("%d bytes beside the entities' %d", got, entities)
	if got > 8000 {
		t.Errorf("a node of 30 pods of 2 containers costs %d bytes beside its entities, want at most 8000", got)
	}
	runtime.KeepAlive(parsers)
}

// heap returns the number of bytes in use on the heap.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
