// Package sinks_test holds what every sink promises, whatever it does with
// batches.
package sinks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-metrics/weir/api/clustermetrics"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/log"
	"github.com/weir-metrics/weir/sinks/memory"
)

// sink is what the manager calls.
type sink interface {
	Write(ctx context.Context, b *metric.Batch) error
}

// The prometheus sink takes no batches: it reads what memory shows.
var _ clustermetrics.View = (*memory.Snapshot)(nil)

// under are the sinks under the contract. show returns, as text, what the sink
// made of the batches so far.
func under() map[string]func() (s sink, show func() string) {
	text := func(o log.Options) func() (sink, func() string) {
		return func() (sink, func() string) {
			out := new(bytes.Buffer)
			return log.New(out, o), out.String
		}
	}
	return map[string]func() (sink, func() string){
		"log":         text(log.Options{Verbose: true}),
		"log as JSON": text(log.Options{Verbose: true, Format: log.JSON}),
		"memory": func() (sink, func() string) {
			m := memory.New(memory.Options{})
			return m, func() string { return shown(m) }
		},
		"memory, full": func() (sink, func() string) {
			m := memory.New(memory.Options{MaxEntities: 1})
			return m, func() string { return shown(m) }
		},
	}
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
	for st := range snap.Nodes() {
		fmt.Fprintln(&out, st)
	}
	return out.String()
}

var ended = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// batches are those a sink may meet.
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

func each(t *testing.T, do func(t *testing.T, s sink, show func() string, b *metric.Batch)) {
	for name, open := range under() {
		for which, b := range batches() {
			t.Run(name+"/"+which, func(t *testing.T) {
				s, show := open()
				do(t, s, show, b)
			})
		}
	}
}

// A batch is read by several sinks at once: none may change it.
func TestWriteDoesNotChangeTheBatch(t *testing.T) {
	each(t, func(t *testing.T, s sink, _ func() string, b *metric.Batch) {
		want := copyOf(b)
		for range 2 {
			if err := s.Write(context.Background(), b); err != nil {
				t.Fatal(err)
			}
		}
		options := cmp.Options{
			cmp.Transformer("numbers", func(v metric.Values) map[metric.ID]float64 { return maps.Collect(v.All()) }),
			cmpopts.IgnoreUnexported(metric.Sample{}, metric.Batch{}), cmpopts.EquateErrors(), cmpopts.EquateEmpty(),
		}
		if diff := cmp.Diff(want, b, options); diff != "" {
			t.Errorf("the batch changed (-before +after):\n%s", diff)
		}
	})
}

// A batch is filled again after Write: nothing of it may be kept.
func TestWriteDoesNotKeepTheBatch(t *testing.T) {
	each(t, func(t *testing.T, s sink, show func() string, b *metric.Batch) {
		if err := s.Write(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		want := show()
		for i := range b.Samples {
			sample := &b.Samples[i]
			for id := range metric.NumMetrics {
				sample.Values.Set(id, -1)
			}
			values := sample.Values
			*sample = metric.Sample{Values: values, Entity: metric.Entity{Name: "spoilt"}}
		}
		for i := range b.Verdicts {
			b.Verdicts[i] = metric.Verdict{Entity: metric.Entity{Name: "spoilt"}}
		}
		b.Source, b.Node, b.Err = "spoilt", "spoilt", nil
		if diff := cmp.Diff(want, show()); diff != "" {
			t.Errorf("what the sink holds changed with the batch (-before +after):\n%s", diff)
		}
	})
}

// Write comes back when its context has ended.
func TestWriteEndsWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, s sink, _ func() string, b *metric.Batch) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Write(ctx, b); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want nothing or %v", err, context.Canceled)
		}
	})
}
