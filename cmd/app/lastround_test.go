package app

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	promconfig "github.com/prometheus/common/config"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/otlp"
	"github.com/weir-metrics/weir/sinks/push"
	"github.com/weir-metrics/weir/sinks/remotewrite"
)

// uptimes is a provider of one source, which reads the uptime of a node.
type uptimes struct{}

func (uptimes) Sources(*cluster.Facts) []manager.Spec {
	return []manager.Spec{{Name: "test/n1", Kind: "test", Node: "n1", Interval: time.Hour, Open: func() (manager.Source, error) { return uptimes{}, nil }}}
}

func (uptimes) Read(_ context.Context, b *metric.Batch) error {
	s := b.Add(metric.Entity{Kind: metric.Node, Node: "n1"})
	s.Values.Set(metric.Uptime, 1)
	return nil
}

// lateSink writes a batch a second after the signal that ends weir.
type lateSink struct {
	manager.Sink
	began  chan struct{} // gets a value when a write begins
	signal <-chan struct{}
}

func (s lateSink) Write(ctx context.Context, b *metric.Batch) error {
	s.began <- struct{}{}
	<-s.signal
	time.Sleep(time.Second)
	return s.Sink.Write(ctx, b)
}

// TestLastRoundIsKept ends weir while a round is written to its sinks. No receiver answers. The round must
// be in the write-ahead logs of all three afterwards, so it was queued before the last flush.
func TestLastRoundIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newProcess(&plan{Resolution: time.Hour, MaxReads: 1, features: newFeatures()}, io.Discard, zap.NewNop())
		w.pipeline.providers = []manager.Provider{uptimes{}}
		options := func() push.Options {
			return push.Options{URL: "http://127.0.0.1:1/write", WAL: t.TempDir(), HTTP: promconfig.DefaultHTTPClientConfig}
		}
		rw, second, ot := options(), options(), options()
		second.URL = "http://127.0.0.1:2/write"
		if err := errors.Join(openRemoteWrite(w, remotewrite.Options{Options: rw}), openRemoteWrite(w, remotewrite.Options{Options: second}), openOTLP(w, otlp.Options{Options: ot})); err != nil {
			t.Fatal(err)
		}
		if err := openRemoteWrite(w, remotewrite.Options{Options: second}); err == nil || !strings.Contains(err.Error(), second.URL+" is named twice") {
			t.Errorf("one receiver twice: got error %v, want that it is named twice", err)
		}
		began := make(chan struct{}, len(w.pipeline.sinks))
		for i := range w.pipeline.sinks {
			w.pipeline.sinks[i].Sink = lateSink{w.pipeline.sinks[i].Sink, began, ctx.Done()}
		}
		if err := w.openPipeline(ctx, w.Host); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- w.run(ctx) }()
		for range w.pipeline.sinks {
			<-began
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, file := range []string{filepath.Join(rw.WAL, "*.remotewrite"), filepath.Join(second.WAL, "*.remotewrite"), filepath.Join(ot.WAL, "*.otlp")} {
			if all, err := filepath.Glob(file); err != nil || len(all) != 1 {
				t.Errorf("%s: %d requests in the log, %v; want that of the last round", filepath.Base(file), len(all), err)
			}
		}
	})
}
