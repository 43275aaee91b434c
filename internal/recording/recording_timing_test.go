package recording_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
)

// usual returns rounds of one node like those of a kubelet's /metrics/resource: 30 pods with 2
// containers, CPU to the microsecond, memory in pages, times to the millisecond.
func usual(rounds int) []*metric.Batch {
	r := rand.New(rand.NewPCG(1, 2))
	var all []*metric.Batch
	cpu, memory := make([]int64, 60), make([]int64, 60)
	for i := range 60 {
		cpu[i], memory[i] = r.Int64N(1e9)*1e3, r.Int64N(1e5)*4096
	}
	for n := range rounds {
		at := began.Add(time.Duration(n)*15*time.Second + time.Duration(r.Int64N(1e6)))
		b := &metric.Batch{
			Source: "kubelet:resource", Node: "node-1", Began: at, Ended: at.Add(time.Duration(r.Int64N(1e7))), Interval: 15 * time.Second,
			Resolution: time.Millisecond, Bytes: 20_000 + r.IntN(100), NodeTime: at.Truncate(time.Second).UnixNano(), Cores: 8,
		}
		for i := range 60 {
			s := b.Add(metric.Entity{Kind: metric.Container, Node: "node-1", Namespace: "shop", Pod: metric.PodName(fmt.Sprintf("web-7d9c6f6b5-%05d", i/2)), Name: []string{"app", "proxy"}[i%2]})
			s.Instance.Start, s.Instance.Origin = began.Add(-time.Hour).UnixNano(), metric.StartReported
			cpu[i] += r.Int64N(2e6) * 1e3
			if r.IntN(2) == 0 {
				memory[i] = max(0, memory[i]+(r.Int64N(200)-100)*4096)
			}
			t := at.UnixMilli()*1e6 - r.Int64N(10_000)*1e6
			s.Times[metric.CPU], s.Times[metric.Memory] = t, t
			s.Values.Set(metric.CPUUsage, float64(cpu[i]))
			s.Values.Set(metric.MemoryWorkingSet, float64(memory[i]))
		}
		all = append(all, b)
	}
	return all
}

func BenchmarkWrite(b *testing.B) {
	batches := usual(100)
	samples, size := 0, int64(0)
	b.ReportAllocs()
	for b.Loop() {
		w := must(recording.NewWriter(io.Discard, recording.Options{Begin: began}))
		for _, batch := range batches {
			if err := w.Round(batch, nil, batch.Ended); err != nil {
				b.Fatal(err)
			}
			samples += len(batch.Samples)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		size += w.Size()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(samples), "ns/sample")
	b.ReportMetric(float64(size)/float64(samples), "bytes/sample")
}

func BenchmarkRead(b *testing.B) {
	var file bytes.Buffer
	w := must(recording.NewWriter(&file, recording.Options{Begin: began}))
	for _, batch := range usual(100) {
		if err := w.Round(batch, nil, batch.Ended); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	samples := 0
	b.ReportAllocs()
	for b.Loop() {
		r := must(recording.NewReader(bytes.NewReader(file.Bytes())))
		for {
			f, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			if f.Kind == recording.Round {
				samples += len(f.Batch.Samples)
			}
		}
		r.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(samples), "ns/sample")
}
