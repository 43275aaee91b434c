package log_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/log"
	"github.com/weir-metrics/weir/test/cmptest"
)

func batch() *metric.Batch {
	b := &metric.Batch{Source: "kubelet:resource", Node: "n1", Ended: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)}
	b.Began = b.Ended.Add(-12345678 * time.Nanosecond)
	app := metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: "app"}
	s := b.Add(app)
	s.Values.Set(metric.CPUUsageRate, 250000001)
	s.Values.Set(metric.MemoryWorkingSet, 4096)
	s.Reasons[metric.CPU], s.Reasons[metric.Memory], s.Reasons[metric.Network] = metric.Measured, metric.Ambiguous, metric.NotApplicable
	b.Add(app).Reject(metric.OlderStart)
	s = b.Add(metric.Entity{Kind: metric.System, Node: "n1", Name: "/odd\x1b[31m\nname"})
	s.Values.Set(metric.CPUUsageRate, 7)
	s.Reasons[metric.CPU] = metric.FirstSample
	for _, r := range []metric.Reason{metric.NoData, metric.FirstSample, metric.FirstSample} {
		b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: app, Reason: r})
	}
	b.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: errors.New("a\nb")}
	return b
}

func written(t *testing.T, o log.Options, b *metric.Batch) string {
	t.Helper()
	var out bytes.Buffer
	if err := log.New(&out, o).Write(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestText(t *testing.T) {
	first := `2026-01-02T03:04:05.006Z kubelet:resource n1: 3 samples, 1 with numbers, 1 rejected in 12.3ms; missing: 2 FirstSample, 1 NoData; error: "NodeTimeout: a\nb"` + "\n"
	cmptest.Equal(t, "terse", first, written(t, log.Options{}, batch()))
	want := first +
		"  shop/web/app cpu/usage_rate=0.250000001 memory/working_set=4096; memory Ambiguous, network NotApplicable\n" +
		"  shop/web/app rejected: OlderStart\n" +
		`  system/odd\x1b[31m name; cpu FirstSample` + "\n"
	cmptest.Equal(t, "verbose", want, written(t, log.Options{Verbose: true}, batch()))
}

func TestJSON(t *testing.T) {
	want := `{"time":"2026-01-02T03:04:05.006Z","source":"kubelet:resource","node":"n1","samples":3,"measured":1,"rejected":1,"missing":{"FirstSample":2,"NoData":1},"seconds":0.012345678,"error":"NodeTimeout: a\nb"}
{"time":"2026-01-02T03:04:05.006Z","kind":"container","node":"n1","namespace":"shop","pod":"web","name":"app","values":{"cpu/usage_rate":0.250000001,"memory/working_set":4096},"reasons":{"memory":"Ambiguous","network":"NotApplicable"}}
`
	got := written(t, log.Options{Format: log.JSON, Verbose: true}, batch())
	if !strings.HasPrefix(got, want) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != 4 {
		t.Fatalf("got %d lines, want 4", len(lines))
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestErrors(t *testing.T) {
	if err := log.New(broken{}, log.Options{}).Write(context.Background(), batch()); err == nil || err.Error() != "write log: disk full" {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := log.New(broken{}, log.Options{}).Write(ctx, batch()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
}

// parse parses the text after the name and colon of a sink.
func parse(t *testing.T, spec string) (log.Options, error) {
	t.Helper()
	config, query, _ := strings.Cut(spec, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return log.ParseOptions(config, values)
}

func TestParseOptions(t *testing.T) {
	for spec, want := range map[string]log.Options{
		"":                           {},
		"?verbose":                   {Verbose: true},
		"?format=json&verbose=false": {Format: log.JSON},
	} {
		if got, err := parse(t, spec); err != nil || got != want {
			t.Errorf("%q: got %+v %v, want %+v", spec, got, err, want)
		}
	}
	for spec, want := range map[string]string{
		"?colour=red": `no option is called "colour": there are format, verbose`,
		"?format=xml": `option format: no format is called "xml": there are text and json`,
		"/var/log/x":  `there is no configuration before the question mark, got "/var/log/x": write log:?format=json`,
	} {
		if _, err := parse(t, spec); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", spec, err, want)
		}
	}
}

// BenchmarkWrite writes one node's batch.
func BenchmarkWrite(b *testing.B) {
	batch := batch()
	for len(batch.Samples) < 91 {
		batch.Add(metric.Entity{}).CopyFrom(&batch.Samples[0])
	}
	for _, o := range []log.Options{{Format: log.Text}, {Format: log.Text, Verbose: true}, {Format: log.JSON, Verbose: true}} {
		b.Run(string(o.Format)+map[bool]string{true: "/verbose"}[o.Verbose], func(b *testing.B) {
			s := log.New(io.Discard, o)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Write(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
