package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	promconfig "github.com/prometheus/common/config"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sinks/otlp"
	"github.com/weir-metrics/weir/sinks/push"
	"github.com/weir-metrics/weir/sinks/remotewrite"
)

// partLog is a list of what parts did, in order.
type partLog struct {
	mu   sync.Mutex
	list []string
}

func (r *partLog) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, fmt.Sprintf(format, args...))
}

// part returns a part that runs until its context ends.
func (r *partLog) part(name string, ends EndPhase) Part {
	return Part{
		Name: name, Ends: ends,
		Run:   func(ctx context.Context) error { <-ctx.Done(); r.add("%s ends", name); return nil },
		Close: func() error { r.add("%s closes", name); return nil },
	}
}

func TestPartsEndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r partLog
		ctx, cancel := context.WithCancel(t.Context())
		file := Part{Name: "file", Close: func() error { r.add("file closes"); return nil }}
		ended := make(chan error)
		go func() {
			ended <- Run(ctx, []Part{r.part("remote write", EndsLast), r.part("pipeline", 0), file, r.part("server", EndsFirst)})
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
		want := []string{"server ends", "pipeline ends", "remote write ends", "server closes", "file closes", "pipeline closes", "remote write closes"}
		if !slices.Equal(r.list, want) {
			t.Errorf("got %v, want %v", r.list, want)
		}
	})
}

// If one part ends, all end, and the error names it.
func TestOnePartEnds(t *testing.T) {
	for want, run := range map[string]func(context.Context) error{
		"guard: no disk":       func(context.Context) error { return errors.New("no disk") },
		"guard: ended unasked": func(context.Context) error { return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			var r partLog
			err := Run(t.Context(), []Part{r.part("server", EndsFirst), {Name: "guard", Run: run}, r.part("pipeline", 0)})
			if err == nil || err.Error() != want {
				t.Errorf("got error %v, want %s", err, want)
			}
			if got := strings.Join(r.list, ", "); got != "server ends, pipeline ends, pipeline closes, server closes" {
				t.Errorf("got %s", got)
			}
		})
	}
}

// Without a part that ends first, the others end at once.
func TestNoPartEndsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r partLog
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		broken := Part{Name: "file", Close: func() error { return errors.New("full") }}
		if err := Run(ctx, []Part{broken, r.part("pipeline", 0)}); err == nil || err.Error() != "close file: full" {
			t.Errorf("got error %v, want that the file cannot be closed", err)
		}
	})
}

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
// be in the write-ahead logs afterwards, so it was queued before the last flush.
func TestLastRoundIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &process{plan: &plan{Resolution: time.Hour}, log: zap.NewNop(), registry: prometheus.NewRegistry(), memory: memory.New(memory.Options{})}
		w.providers = []manager.Provider{uptimes{}}
		options := func() push.Options {
			return push.Options{URL: "http://127.0.0.1:1/write", WAL: t.TempDir(), HTTP: promconfig.DefaultHTTPClientConfig}
		}
		rw, ot := options(), options()
		if err := errors.Join(openRemoteWrite(w, remotewrite.Options{Options: rw}), openOTLP(w, otlp.Options{Options: ot})); err != nil {
			t.Fatal(err)
		}
		began := make(chan struct{}, len(w.sinks))
		for i := range w.sinks {
			w.sinks[i].Sink = lateSink{w.sinks[i].Sink, began, ctx.Done()}
		}
		if err := w.openPipeline(ctx); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- Run(ctx, w.parts) }()
		for range w.sinks {
			<-began
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, file := range []string{filepath.Join(rw.WAL, "*.remotewrite"), filepath.Join(ot.WAL, "*.otlp")} {
			if all, err := filepath.Glob(file); err != nil || len(all) != 1 {
				t.Errorf("%s: %d requests in the log, %v; want that of the last round", filepath.Base(file), len(all), err)
			}
		}
	})
}
