// Package sinks_test tests the contract that every sink must meet.
package sinks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/exp/api/remote"
	writev2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"
	"github.com/prometheus/common/config"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/weir-metrics/weir/api/clustermetrics"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/log"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sinks/otlp"
	"github.com/weir-metrics/weir/sinks/push"
	"github.com/weir-metrics/weir/sinks/recorder"
	"github.com/weir-metrics/weir/sinks/remotewrite"
)

// sink is the interface that the manager calls.
type sink interface {
	Write(ctx context.Context, b *metric.Batch) error
}

// The exposition on /metrics/cluster is not a sink: it reads the snapshots of memory.
var _ clustermetrics.MetricsReader = (*memory.Snapshot)(nil)

// tested is an open sink.
type tested struct {
	sink
	// show returns the output of the sink as text. The caller calls it at least once.
	show func() string
	// closes says that show closes the sink, so that it can be called only once.
	closes bool
}

// sinks returns the functions that open each sink.
func sinks() map[string]func(*testing.T) tested {
	text := func(o log.Options) func(*testing.T) tested {
		return func(*testing.T) tested {
			out := new(bytes.Buffer)
			return tested{sink: log.New(out, o), show: out.String}
		}
	}
	inMemory := func(o memory.Options) func(*testing.T) tested {
		return func(*testing.T) tested {
			m := memory.New(o)
			return tested{sink: m, show: func() string { return shown(m) }}
		}
	}
	return map[string]func(*testing.T) tested{
		"log":                     text(log.Options{Verbose: true}),
		"log as JSON":             text(log.Options{Verbose: true, Format: log.JSON}),
		"memory":                  inMemory(memory.Options{}),
		"memory, full":            inMemory(memory.Options{MaxEntities: 1}),
		"recorder":                openRecorder,
		"remote write":            func(t *testing.T) tested { return openRemoteWrite(t, "") },
		"remote write with a log": func(t *testing.T) tested { return openRemoteWrite(t, t.TempDir()) },
		"OTLP":                    openOTLP,
	}
}

// recorderSink gives a recorder the batches that other sinks get. The manager calls Record
// with the batch that the source filled.
type recorderSink struct{ *recorder.Sink }

func (s recorderSink) Write(ctx context.Context, b *metric.Batch) error {
	return s.Record(ctx, b, nil, ended)
}

func openRecorder(t *testing.T) tested {
	path := filepath.Join(t.TempDir(), "run.weirrec")
	s, err := recorder.Open(recorder.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return tested{sink: recorderSink{s}, closes: true, show: func() string {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		r, err := recording.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var out bytes.Buffer
		for {
			f, err := r.Next()
			if errors.Is(err, io.EOF) {
				return out.String()
			}
			if err != nil {
				t.Fatal(err)
			}
			if b := f.Batch; b != nil {
				fmt.Fprintln(&out, b.Source, b.Node, b.Err, b.Verdicts)
				for i := range b.Samples {
					s := &b.Samples[i]
					fmt.Fprintln(&out, s.Entity, s.Instance, s.Times, s.Reasons, s.Rates, maps.Collect(s.Values.All()))
				}
			}
		}
	}}
}

func openRemoteWrite(t *testing.T, wal string) tested {
	var r receiver
	server := httptest.NewServer(remote.NewWriteHandler(&r, remote.MessageTypes{remote.WriteV2MessageType}))
	t.Cleanup(server.Close)
	s, err := remotewrite.New(remotewrite.Options{Options: push.Options{URL: server.URL + "/write", WAL: wal, HTTP: config.DefaultHTTPClientConfig}})
	if err != nil {
		t.Fatal(err)
	}
	return tested{sink: s, closes: true, show: func() string {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // Run sends the queue before it ends
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
		return r.text.String()
	}}
}

// openOTLP opens a sink whose receiver stores the data points as text.
func openOTLP(t *testing.T) tested {
	var text bytes.Buffer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		unzipped, err := gzip.NewReader(r.Body)
		var message collectorpb.ExportMetricsServiceRequest
		if err == nil {
			var body []byte
			if body, err = io.ReadAll(unzipped); err == nil {
				err = proto.Unmarshal(body, &message)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
		fmt.Fprintln(&text, prototext.MarshalOptions{Multiline: true}.Format(&message))
	}))
	t.Cleanup(server.Close)
	s, err := otlp.New(otlp.Options{Options: push.Options{URL: server.URL, HTTP: config.DefaultHTTPClientConfig}})
	if err != nil {
		t.Fatal(err)
	}
	return tested{sink: s, closes: true, show: func() string {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // Run sends the queue before it ends
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
		return text.String()
	}}
}

// receiver stores the messages of remote write 2.0 as text.
type receiver struct{ text bytes.Buffer }

// Store satisfies the library's handler, which calls it with the uncompressed message.
func (r *receiver) Store(req *http.Request, _ remote.WriteMessageType) (*remote.WriteResponse, error) {
	response := remote.NewWriteResponse()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return response, err
	}
	var message writev2.Request
	if err := proto.Unmarshal(body, &message); err != nil {
		return response, err
	}
	for _, series := range message.Timeseries {
		for _, n := range series.LabelsRefs {
			fmt.Fprint(&r.text, message.Symbols[n], " ")
		}
		for _, sample := range series.Samples {
			fmt.Fprintln(&r.text, sample.Timestamp, sample.Value)
		}
		response.Add(remote.WriteResponseStats{Samples: len(series.Samples)})
	}
	return response, nil
}

func shown(m *memory.Sink) string {
	var out bytes.Buffer
	snap := m.Snapshot()
	for k := range metric.Kind(metric.NumKinds) {
		for s := range snap.Samples(k) {
			fmt.Fprintln(&out, s.Entity, s.Instance, s.Times, s.Reasons, maps.Collect(s.Values.All()))
			fmt.Fprintln(&out, snap.History(s.Entity, metric.CPUUsageRate, time.Unix(0, 0), time.Unix(1e10, 0)))
		}
	}
	for v, since := range snap.Verdicts() {
		fmt.Fprintln(&out, v, since)
	}
	for st := range snap.Sources() {
		fmt.Fprintln(&out, st)
	}
	return out.String()
}

var ended = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// batches returns the kinds of batches that a sink may get.
func batches() map[string]*metric.Batch {
	full := func(node metric.NodeName, nodes ...metric.NodeName) *metric.Batch {
		b := &metric.Batch{Source: "s", Node: node, Began: ended, Ended: ended, Interval: 15 * time.Second, Resolution: time.Millisecond}
		for _, n := range nodes {
			for _, e := range []metric.Entity{
				{Kind: metric.Node, Node: n},
				{Kind: metric.Pod, Node: n, Namespace: "a", Pod: "p"},
				{Kind: metric.Container, Node: n, Namespace: "a", Pod: "p", Name: "c"},
				{Kind: metric.Node, Node: n, Part: "interface:eth0"},
			} {
				s := b.Add(e)
				s.Times[metric.CPU], s.Reasons[metric.CPU] = ended.UnixNano(), metric.Measured
				s.Rates[metric.CPU] = metric.Window{End: ended.UnixNano(), Length: 15 * time.Second}
				s.Values.Set(metric.CPUUsageRate, 1e9)
			}
			twin := metric.Entity{Kind: metric.Pod, Node: n, Namespace: "a", Pod: "p"}
			b.Add(twin).Reject(metric.OldPod)
			b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: twin, Reason: metric.OldPod, Evidence: metric.Evidence{Rule: "uid"}})
		}
		return b
	}
	failed := full("n")
	failed.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: context.DeadlineExceeded}
	partial := full("n", "n")
	partial.Err = errors.New("half of it")
	return map[string]*metric.Batch{
		"full": full("n", "n"), "empty": full("n"), "failed": failed, "partial": partial,
		"of many nodes": full("", "n1", "n2"), "of many nodes, empty": full(""), "zero": {},
	}
}

// copyOf returns a batch that shares no memory with b.
func copyOf(b *metric.Batch) *metric.Batch {
	c := &metric.Batch{
		Source: b.Source, Node: b.Node, Began: b.Began, Ended: b.Ended, Interval: b.Interval, Resolution: b.Resolution,
		Err: b.Err, Verdicts: append([]metric.Verdict(nil), b.Verdicts...),
	}
	for i := range b.Samples {
		c.Add(b.Samples[i].Entity).CopyFrom(&b.Samples[i])
	}
	return c
}

// each runs do with each sink and each batch.
func each(t *testing.T, do func(t *testing.T, open func(*testing.T) tested, b *metric.Batch)) {
	for name, open := range sinks() {
		for which, b := range batches() {
			t.Run(name+"/"+which, func(t *testing.T) { do(t, open, b) })
		}
	}
}

// Several sinks read a batch at the same time: none may change it.
func TestWriteDoesNotChangeTheBatch(t *testing.T) {
	each(t, func(t *testing.T, open func(*testing.T) tested, b *metric.Batch) {
		s := open(t)
		want := copyOf(b)
		for range 2 {
			if err := s.Write(context.Background(), b); err != nil {
				t.Fatal(err)
			}
		}
		s.show()
		options := cmp.Options{
			cmp.Transformer("numbers", func(v metric.Values) map[metric.ID]float64 { return maps.Collect(v.All()) }),
			cmpopts.IgnoreUnexported(metric.Sample{}, metric.Batch{}), cmpopts.EquateErrors(), cmpopts.EquateEmpty(),
		}
		if diff := cmp.Diff(want, b, options); diff != "" {
			t.Errorf("the batch changed (-before +after):\n%s", diff)
		}
	})
}

// A batch is filled again after Write: a sink may keep nothing of it. If show closes the
// sink, a second sink shows what the first one has before the batch changes.
func TestWriteDoesNotKeepTheBatch(t *testing.T) {
	each(t, func(t *testing.T, open func(*testing.T) tested, b *metric.Batch) {
		s := open(t)
		before := s
		if s.closes {
			before = open(t)
		}
		for _, s := range []tested{s, before} {
			if err := s.Write(context.Background(), b); err != nil {
				t.Fatal(err)
			}
			if !s.closes {
				break
			}
		}
		want := before.show()
		if want == "" && len(b.Samples) > 0 {
			t.Error("the sink shows nothing of a batch with samples")
		}
		for i := range b.Samples {
			sample := &b.Samples[i]
			for id := range metric.NumMetrics {
				sample.Values.Set(id, -1)
			}
			values := sample.Values
			*sample = metric.Sample{Values: values, Entity: metric.Entity{Name: "changed"}}
		}
		for i := range b.Verdicts {
			b.Verdicts[i] = metric.Verdict{Entity: metric.Entity{Name: "changed"}}
		}
		b.Source, b.Node, b.Err = "changed", "changed", nil
		if diff := cmp.Diff(want, s.show()); diff != "" {
			t.Errorf("what the sink has changed with the batch (-before +after):\n%s", diff)
		}
	})
}

// Write returns when its context has ended.
func TestWriteEndsWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, open func(*testing.T) tested, b *metric.Batch) {
		s := open(t)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Write(ctx, b); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want nil or %v", err, context.Canceled)
		}
		s.show()
	})
}
