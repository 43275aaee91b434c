package simulator

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weir-metrics/weir/test/capture"
)

func captured(t *testing.T, name string) []byte {
	t.Helper()
	return capture.Read(t, "01-steady/00/"+name)
}

// families parses text with Prometheus' parser.
func families(t *testing.T, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	f, err := p.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return f
}

// shape returns the text without its numbers: every comment, and after it the
// label names of its lines, each combination once.
func shape(text []byte) (lines []string) {
	seen := map[string]bool{}
	for l := range strings.Lines(string(text)) {
		l = strings.TrimSpace(l)
		if !strings.HasPrefix(l, "#") {
			name, rest, labelled := strings.Cut(l, "{")
			if !labelled {
				name, _, _ = strings.Cut(name, " ")
			}
			var labels []string
			for _, part := range strings.Split(rest, `",`) {
				label, _, ok := strings.Cut(part, `="`)
				if ok {
					labels = append(labels, label)
				}
			}
			stamped := len(strings.Fields(l[strings.LastIndexByte(l, '}')+1:]))
			if !labelled {
				stamped = len(strings.Fields(l)) - 1
			}
			l = name + " " + strings.Join(labels, ",") + " " + []string{"", "value", "value time"}[stamped]
		}
		if !seen[l] {
			seen[l] = true
			lines = append(lines, l)
		}
	}
	return lines
}

func TestResourceHasTheShapeOfTheCapture(t *testing.T) {
	f := newFleet(t, Options{})
	want, got := shape(captured(t, "resource.prom")), shape(f.Payload("node-0001", Resource, start))
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("/metrics/resource (-capture +simulated):\n%s", d)
	}
}

func TestCAdvisorHasTheShapeOfTheCapture(t *testing.T) {
	f := newFleet(t, Options{})
	// Simulated nodes have no non-volatile memory.
	notHere := func(l string) bool { return strings.Contains(l, "machine_nvm_capacity") }
	want := slices.DeleteFunc(shape(captured(t, "cadvisor.prom")), notHere)
	got := shape(f.Payload("node-0001", CAdvisor, start))
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("/metrics/cadvisor (-capture +simulated):\n%s", d)
	}
}

// keysOf returns every path of member names in a JSON document, in the order of
// their first appearance.
func keysOf(t *testing.T, doc []byte) (paths []string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(doc))
	seen := map[string]bool{}
	var value func(path string)
	value = func(path string) {
		tok, err := d.Token()
		if err != nil {
			t.Fatalf("parse: %v", err)
		}
		switch tok {
		case json.Delim('{'):
			for d.More() {
				name, err := d.Token()
				if err != nil {
					t.Fatalf("parse: %v", err)
				}
				p := path + "." + name.(string)
				if !seen[p] {
					seen[p] = true
					paths = append(paths, p)
				}
				value(p)
			}
			d.Token()
		case json.Delim('['):
			for d.More() {
				value(path + "[]")
			}
			d.Token()
		}
	}
	value("")
	slices.Sort(paths)
	return paths
}

func TestSummaryHasTheShapeOfTheCapture(t *testing.T) {
	f := newFleet(t, Options{})
	got := f.Payload("node-0001", Summary, start)
	volume := func(p string) bool { return strings.Contains(p, ".volume") }
	want := slices.DeleteFunc(keysOf(t, captured(t, "summary.json")), volume)
	// In the capture, the system container "pods" has available memory and the
	// daemons have no limit.
	if d := cmp.Diff(want, keysOf(t, got)); d != "" {
		t.Errorf("/stats/summary (-capture +simulated):\n%s", d)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, got, "", " "); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(indented.String(), string(got)); d != "" {
		t.Errorf("the summary is not written as the kubelet writes it, a space a level (-want +got):\n%s", d)
	}
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.Label {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// TestResourceIsExact checks that with Fresh, at whole milliseconds, every
// counter is exactly the Truth at its timestamp.
func TestResourceIsExact(t *testing.T) {
	f := newFleet(t, Options{Nodes: 4, Pods: 12, Containers: 3, Fresh: true})
	checked := 0
	for round := range 20 {
		now := start.Add(time.Duration(round) * 13337 * time.Millisecond)
		for _, n := range f.Nodes() {
			truth := map[string]Usage{}
			for _, u := range n.Truth(now, now) {
				truth[u.Namespace+"/"+u.Pod+"/"+u.Container] = u
			}
			all := families(t, f.Append(nil, n, Resource, now))
			for _, m := range all["container_cpu_usage_seconds_total"].Metric {
				l := labelsOf(m)
				u := truth[l["namespace"]+"/"+l["pod"]+"/"+l["container"]]
				if got, want := m.Counter.GetValue(), float64(u.CPUTo)/1e9; got != want {
					t.Errorf("%v: got %v, truth is %v", l, got, want)
				}
				if got := m.GetTimestampMs(); got != now.UnixMilli() {
					t.Errorf("%v: got time %d, want %d", l, got, now.UnixMilli())
				}
				checked++
			}
			for _, m := range all["container_memory_working_set_bytes"].Metric {
				l := labelsOf(m)
				if got, want := m.Gauge.GetValue(), float64(truth[l["namespace"]+"/"+l["pod"]+"/"+l["container"]].Memory); got != want {
					t.Errorf("memory of %v: got %v, truth is %v", l, got, want)
				}
			}
			if got, want := all["node_cpu_usage_seconds_total"].Metric[0].Counter.GetValue(), float64(n.CPU(now))/1e9; got != want {
				t.Errorf("cpu of %s: got %v, truth is %v", n.Name, got, want)
			}
		}
	}
	if want := 20 * 4 * 12 * 3; checked != want {
		t.Errorf("checked %d counters, want %d", checked, want)
	}
}

// TestRateOverAWindowIsTheTrueRate checks rates without Fresh: two readings of
// one line give (C(t2)-C(t1))/(t2-t1), except for the rounding of their times
// to milliseconds.
func TestRateOverAWindowIsTheTrueRate(t *testing.T) {
	f := newFleet(t, Options{Pods: 10})
	n := f.Nodes()[0]
	type observation struct {
		ms  int64
		cpu float64
	}
	last := map[string]observation{}
	checked := 0
	for now := start; now.Before(start.Add(10 * time.Minute)); now = now.Add(15 * time.Second) {
		for _, m := range families(t, f.Append(nil, n, Resource, now))["container_cpu_usage_seconds_total"].Metric {
			l := labelsOf(m)
			name := l["namespace"] + "/" + l["pod"] + "/" + l["container"]
			cur := observation{m.GetTimestampMs(), m.Counter.GetValue()}
			if age := now.UnixMilli() - cur.ms; age < 0 || age > 15000 {
				t.Fatalf("%s is %d ms old, want 0 to 15000", name, age)
			}
			prev, ok := last[name]
			last[name] = cur
			if !ok || cur.ms == prev.ms {
				continue
			}
			rate := (cur.cpu - prev.cpu) / float64(cur.ms-prev.ms) * 1000
			for _, u := range n.Truth(time.UnixMilli(prev.ms), time.UnixMilli(cur.ms)) {
				if u.Namespace+"/"+u.Pod+"/"+u.Container != name {
					continue
				}
				// The error is at most a millisecond at each end, at the container's peak.
				peak := 0.8 * float64(n.Cores) / 20
				if off := math.Abs(rate - u.Rate); off > peak*0.002/(float64(cur.ms-prev.ms)/1000) {
					t.Errorf("%s: rate %v over [%d, %d], truth %v", name, rate, prev.ms, cur.ms, u.Rate)
				}
				checked++
			}
		}
	}
	if checked < 500 {
		t.Errorf("checked %d rates, want at least 500", checked)
	}
}

// TestSummaryCutsTimesToSeconds checks that the value is that of the exact
// time, and that the reported time is rounded down to the second.
func TestSummaryCutsTimesToSeconds(t *testing.T) {
	f := newFleet(t, Options{Fresh: true})
	now := start.Add(90*time.Second + 987654321)
	var s struct {
		Node struct {
			NodeName string
			CPU      struct {
				Time                 time.Time
				UsageCoreNanoSeconds int64
			}
		}
		Pods []struct {
			PodRef     struct{ Name, Namespace, UID string }
			Containers []struct {
				Name string
				CPU  struct {
					Time                 time.Time
					UsageCoreNanoSeconds int64
				}
			}
		}
	}
	if err := json.Unmarshal(f.Payload("node-0001", SummaryCPUMemory, now), &s); err != nil {
		t.Fatal(err)
	}
	n := f.Node("node-0001")
	if s.Node.NodeName != n.Name || s.Node.CPU.UsageCoreNanoSeconds != n.CPU(now) || !s.Node.CPU.Time.Equal(now.Truncate(time.Second)) {
		t.Errorf("node: got %+v, want %s, %d at %v", s.Node, n.Name, n.CPU(now), now.Truncate(time.Second))
	}
	if len(s.Pods) != len(n.Pods()) {
		t.Fatalf("got %d pods, want %d", len(s.Pods), len(n.Pods()))
	}
	for i, p := range n.Pods() {
		got := s.Pods[i]
		if got.PodRef.UID != p.ReportedUID() || got.PodRef.Name != p.Name {
			t.Errorf("pod %d: got %+v, want %s %s", i, got.PodRef, p.Name, p.ReportedUID())
		}
		for j, c := range p.Containers {
			if got := got.Containers[j].CPU; got.UsageCoreNanoSeconds != c.CPU(now) || !got.Time.Equal(now.Truncate(time.Second)) {
				t.Errorf("%s/%s: got %+v, want %d at %v", p.Name, c.Name, got, c.CPU(now), now.Truncate(time.Second))
			}
		}
	}
}

func TestEndpointsAgree(t *testing.T) {
	f := newFleet(t, Options{Nodes: 2})
	now := start.Add(time.Minute)
	for _, n := range f.Nodes() {
		resource := map[string]float64{}
		for _, m := range families(t, f.Append(nil, n, Resource, now))["container_cpu_usage_seconds_total"].Metric {
			l := labelsOf(m)
			resource[l["namespace"]+"/"+l["pod"]+"/"+l["container"]] = m.Counter.GetValue()
		}
		fromCAdvisor := map[string]float64{}
		for _, m := range families(t, f.Append(nil, n, CAdvisor, now))["container_cpu_usage_seconds_total"].Metric {
			l := labelsOf(m)
			if l["container"] != "" {
				fromCAdvisor[l["namespace"]+"/"+l["pod"]+"/"+l["container"]] = m.Counter.GetValue()
				if !strings.HasSuffix(strings.TrimSuffix(l["id"], ".scope"), l["name"]) {
					t.Errorf("cgroup %q does not end in its ID %q", l["id"], l["name"])
				}
			}
		}
		if d := cmp.Diff(resource, fromCAdvisor); d != "" {
			t.Errorf("/metrics/resource and /metrics/cadvisor (-resource +cadvisor):\n%s", d)
		}
		var legacy map[string]struct {
			ID    string
			Spec  struct{ Labels map[string]string }
			Stats []struct {
				CPU struct{ Usage struct{ Total int64 } }
			}
		}
		if err := json.Unmarshal(f.Append(nil, n, StatsContainer, now), &legacy); err != nil {
			t.Fatal(err)
		}
		fromLegacy := map[string]float64{}
		for _, c := range legacy {
			if name := c.Spec.Labels["io.kubernetes.container.name"]; name != "" && name != "POD" {
				fromLegacy[c.Spec.Labels["io.kubernetes.pod.namespace"]+"/"+c.Spec.Labels["io.kubernetes.pod.name"]+"/"+name] = float64(c.Stats[0].CPU.Usage.Total) / 1e9
			}
		}
		if d := cmp.Diff(resource, fromLegacy); d != "" {
			t.Errorf("/metrics/resource and /stats/container (-resource +legacy):\n%s", d)
		}
	}
}

func TestAppendKeepsWhatIsThere(t *testing.T) {
	f := newFleet(t, Options{Nodes: 2}, "garbage node=node-0002 style=binary")
	for e := range Endpoint(numEndpoints) {
		n := f.Node("node-0001")
		alone := f.Append(nil, n, e, start)
		both := f.Append([]byte("before"), n, e, start)
		if string(both) != "before"+string(alone) {
			t.Errorf("%v: appending changes what is appended", e)
		}
		if again := f.Append(nil, n, e, start); !bytes.Equal(alone, again) {
			t.Errorf("%v: two answers of one moment differ", e)
		}
	}
}
