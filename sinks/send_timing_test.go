package sinks_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/otlp"
	"github.com/weir-metrics/weir/sinks/push"
	"github.com/weir-metrics/weir/sinks/remotewrite"
)

// BenchmarkSend sends rounds of 1,000 nodes with 30 pods of 2 containers to a receiver that discards
// them. It reports the time for one sample, until the receiver has it, and the memory that the sink
// keeps of an entity. With fewer nodes, all that is kept would be in the processor's cache.
func BenchmarkSend(b *testing.B) {
	for name, open := range map[string]func(push.Options) (pusher, error){
		"remotewrite": func(o push.Options) (pusher, error) { return remotewrite.New(remotewrite.Options{Options: o}) },
		"otlp":        func(o push.Options) (pusher, error) { return otlp.New(otlp.Options{Options: o}) },
	} {
		b.Run(name, func(b *testing.B) { benchmarkSend(b, open) })
	}
}

// pusher is a sink that sends.
type pusher interface {
	Write(context.Context, *metric.Batch) error
	Flush(longest time.Duration)
	Run(context.Context) error
}

func benchmarkSend(b *testing.B, open func(push.Options) (pusher, error)) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			b.Error(err)
		}
		w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", strconv.Itoa(1))
	}))
	defer receiver.Close()
	s, err := open(push.Options{URL: receiver.URL + "/write", Queue: 1 << 30, Grace: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	batches := make([]*metric.Batch, 1000)
	samples, entities := 0, 0
	for n := range batches {
		batches[n] = nodeBatch(n)
		entities += len(batches[n].Samples)
		for i := range batches[n].Samples {
			samples += batches[n].Samples[i].Values.Len()
		}
	}
	before := heap()
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error)
	rounds := 0
	b.ReportAllocs()
	for b.Loop() {
		if rounds++; rounds == 2 {
			go func() { ended <- s.Run(ctx) }()
		}
		for _, batch := range batches {
			advance(batch, 15*time.Second)
			if err := s.Write(ctx, batch); err != nil {
				b.Fatal(err)
			}
		}
	}
	if rounds == 1 {
		go func() { ended <- s.Run(ctx) }()
	}
	s.Flush(0)
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rounds*samples), "ns/sample")
	b.ReportMetric(float64(heap()-before)/float64(entities), "B/entity")
	runtime.KeepAlive(s)
	runtime.KeepAlive(batches)
}

// heap returns how many bytes are alive.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// nodeBatch returns a batch of a node with 30 pods of 2 containers.
func nodeBatch(n int) *metric.Batch {
	node := metric.NodeName(fmt.Sprintf("node-%04d", n))
	batch := &metric.Batch{Source: "s", Node: node, Ended: ended, Interval: 15 * time.Second, Resolution: time.Millisecond}
	add := func(e metric.Entity) {
		s := batch.Add(e)
		for _, g := range []metric.Group{metric.CPU, metric.Memory, metric.Spec} {
			s.Times[g], s.Reasons[g] = ended.UnixNano(), metric.Measured
		}
		for i, id := range []metric.ID{metric.CPUUsage, metric.CPUUsageRate, metric.MemoryWorkingSet, metric.CPURequest, metric.CPULimit, metric.MemoryRequest, metric.MemoryLimit, metric.Uptime} {
			s.Values.Set(id, 1e8/float64(1+i))
		}
	}
	add(metric.Entity{Kind: metric.Node, Node: node})
	for p := range 30 {
		e := metric.Entity{Kind: metric.Pod, Node: node, Namespace: metric.Namespace(fmt.Sprintf("team-%02d", p%10)), Pod: metric.PodName(fmt.Sprintf("app-%04d-%03d-7c5ddbdf54-x2x4z", n, p))}
		add(e)
		for c := range 2 {
			e.Kind, e.Name = metric.Container, fmt.Sprintf("container-%d", c)
			add(e)
		}
	}
	return batch
}

// advance makes a batch the one of a later round.
func advance(b *metric.Batch, by time.Duration) {
	b.Ended = b.Ended.Add(by)
	for i := range b.Samples {
		s := &b.Samples[i]
		for g := range s.Times {
			if s.Times[g] != 0 {
				s.Times[g] += int64(by)
			}
		}
		s.Rates[metric.CPU] = metric.Window{End: s.Times[metric.CPU], Length: by}
		cpu, _ := s.Values.Get(metric.CPUUsage)
		s.Values.Set(metric.CPUUsage, cpu+1e9)
	}
}
