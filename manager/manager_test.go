package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

const (
	interval = 15 * time.Second
	timeout  = 5 * time.Second
)

// steady returns the first fixed place of a test node more than half an interval after second,
// as time since start: its third read.
func steady(node string, start time.Time, second time.Duration) time.Duration {
	next, _ := newTimetable("test/"+node, interval).next(2, start.Add(second), start.Add(second), false)
	return next.Sub(start)
}

func TestRoundsComeAtTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		h := build(t, Options{Sinks: []NamedSink{d.named()}}, healthy().spec("a", interval, timeout))
		third := steady("a", h.start, settle)
		h.until(third + 2*interval)
		wantLines(t, "rounds", d.read(), "0s a 1", "10s a 1",
			fmt.Sprintf("%v a 1", third), fmt.Sprintf("%v a 1", third+interval), fmt.Sprintf("%v a 1", third+2*interval))

		h.wantMetric(5, "weir_rounds_total", "kind=test")
		h.wantMetric(0, "weir_skipped_rounds_total", "kind=test")
		h.wantMetric(5, "weir_stage_duration_seconds", "stage=read", "kind=test")
		h.wantMetric(5, "weir_stage_samples_out_total", "stage=read", "kind=test")
		h.wantMetric(5, "weir_stage_samples_in_total", "stage=diary", "kind=test")
		h.wantMetric(float64(time.Now().UnixNano())/1e9, "weir_source_last_success_timestamp_seconds", "kind=test")

		s := h.m.Status()
		if len(s) != 1 || s[0].Name != "test/a" || s[0].Successes != 5 || s[0].Err != nil ||
			!s[0].Began.Equal(time.Now()) || !s[0].Succeeded.Equal(time.Now()) || !s[0].Due.Equal(time.Now().Add(interval)) {
			t.Errorf("status: got %+v, want test/a with 5 successes, the last now, the next in %v", s, interval)
		}
		h.mustEnd()
	})
}

// After a round with a new container, the node is read once more before the next place.
func TestNewcomersAreLookedAtTwiceAsOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		third := steady("a", time.Now(), settle)
		young := &place{read: func(_ context.Context, round int, b *metric.Batch) error {
			if round == 3 || round == 4 {
				b.Add(metric.Entity{Kind: metric.Container, Node: b.Node, Namespace: "shop", Pod: "web", Name: "app"})
				b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: b.Samples[0].Entity, Group: metric.CPU, Reason: metric.TooYoung})
			}
			return nil
		}}
		h := build(t, Options{Sinks: []NamedSink{d.named()}}, young.spec("a", interval, timeout))
		h.until(third + 2*interval)
		wantLines(t, "rounds", d.read(), "0s a 0", "10s a 0", fmt.Sprintf("%v a 1", third),
			fmt.Sprintf("%v a 1", third+interval/2), fmt.Sprintf("%v a 0", third+interval), fmt.Sprintf("%v a 0", third+2*interval))
		h.wantMetric(0, "weir_skipped_rounds_total", "kind=test")
		h.mustEnd()
	})
}

// A round that takes longer than the interval misses rounds. The next one is at its place
// again.
func TestSlowSourceKeepsItsPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		slow := &place{read: func(_ context.Context, round int, _ *metric.Batch) error {
			if round == 3 {
				time.Sleep(20 * time.Second)
			}
			return nil
		}}
		h := build(t, Options{Sinks: []NamedSink{d.named()}}, slow.spec("a", interval, time.Minute))
		third := steady("a", h.start, settle)
		h.until(third + 2*interval)
		wantLines(t, "rounds", d.read(), "0s a 0", "10s a 0",
			fmt.Sprintf("%v a 0", third+20*time.Second), fmt.Sprintf("%v a 0", third+2*interval))
		h.wantMetric(1, "weir_skipped_rounds_total", "kind=test")
		h.mustEnd()
	})
}

func TestHangingSourceCostsOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		let := make(chan struct{})
		stuck := hanging(let)
		// There is one slot: a source that kept it would delay all others.
		h := build(t, Options{MaxReads: 1, Sinks: []NamedSink{d.named()}},
			stuck.spec("hangs", interval, timeout))
		h.until(time.Second)
		h.provide(stuck.spec("hangs", interval, timeout), healthy().spec("well", interval, timeout))
		h.until(9 * time.Second)
		// The slot is free after half a second. The round is abandoned one grace after its deadline,
		// 5 s.
		wantLines(t, "rounds", d.read(), "1s well 1", "6s hangs 0 NodeTimeout")
		h.wantMetric(1, "weir_reads_stuck", "kind=test")
		h.wantMetric(0, "weir_reads_in_flight")

		// While the read hangs the source is not read again, but each round says why.
		h.until(3 * time.Minute)
		if n := stuck.rounds.Load(); n != 1 {
			t.Errorf("reads of the hanging source: got %d, want 1", n)
		}
		failed := 0
		for _, line := range d.read() {
			if strings.HasSuffix(line, "hangs 0 NodeTimeout") {
				failed++
			}
		}
		if failed < 10 || failed > 12 {
			t.Errorf("failed rounds of the hanging source in 171 s: got %d, want 10 to 12", failed)
		}
		h.wantMetric(1, "weir_abandoned_reads_total", "kind=test")
		h.wantMetric(1, "weir_sources_failing", "kind=test")

		close(let)
		h.until(3*time.Minute + interval)
		if n := stuck.rounds.Load(); n != 2 {
			t.Errorf("reads of the source that came back: got %d, want 2", n)
		}
		h.wantMetric(0, "weir_reads_stuck", "kind=test")
		h.wantMetric(0, "weir_sources_failing", "kind=test")
		h.wantLogs("the source fails", "the source answers for the first time")
		h.mustEnd()
	})
}

// TestHangingZoneDelaysNobodyElse has 5,000 sources. A third of them hangs, refuses, or answers after
// nine seconds, for two minutes each, and changes from one to the next within one round. No number
// of the others may ever be older than two intervals.
func TestHangingZoneDelaysNobodyElse(t *testing.T) {
	const sources, interval, timeout, phase = 5000, 15 * time.Second, 10 * time.Second, 2 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		answers := func(b *metric.Batch) error {
			b.Add(metric.Entity{Kind: metric.Node, Node: b.Node})
			return nil
		}
		behaviour := []func(context.Context, *metric.Batch) error{
			func(_ context.Context, b *metric.Batch) error { return answers(b) },
			func(ctx context.Context, _ *metric.Batch) error { <-ctx.Done(); return ctx.Err() },
			func(context.Context, *metric.Batch) error { return syscall.ECONNREFUSED },
			func(_ context.Context, b *metric.Batch) error { time.Sleep(9 * time.Second); return answers(b) },
		}
		specs := make([]Spec, sources)
		last, oldest, readsOfZone := make([]time.Time, sources), time.Duration(0), atomic.Int64{}
		var mu sync.Mutex
		for i := range specs {
			p := &place{read: func(ctx context.Context, _ int, b *metric.Batch) error {
				if i%3 == 0 {
					readsOfZone.Add(1)
					return behaviour[int(time.Since(began)/phase)](ctx, b)
				}
				time.Sleep(20 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				if !last[i].IsZero() {
					oldest = max(oldest, time.Since(last[i]))
				}
				last[i] = time.Now()
				return answers(b)
			}}
			specs[i] = p.spec(fmt.Sprint("node-", i), interval, timeout)
		}
		h := build(t, Options{MaxReads: 128}, specs...)
		h.until(time.Duration(len(behaviour))*phase - time.Second)
		mu.Lock()
		for i, at := range last {
			if i%3 != 0 {
				oldest = max(oldest, time.Since(at))
			}
		}
		if oldest > 2*interval {
			t.Errorf("a number of a healthy source was %v old, want at most two intervals of %v", oldest, interval)
		}
		mu.Unlock()
		if n, least := readsOfZone.Load(), int64(sources/3*3*phase/interval); n < least {
			t.Errorf("%d reads of the zone, want each source to be tried in most of its rounds, %d", n, least)
		}
		if _, err := h.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestErrorsArePassedOnAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		refused := &metric.ReadError{Reason: metric.NodeUnreachable, Err: errors.New("connection refused")}
		p := &place{read: func(ctx context.Context, round int, b *metric.Batch) error {
			b.Add(metric.Entity{Kind: metric.Node})
			switch round {
			case 1, 2, 3:
				b.Samples = b.Samples[:0]
				return fmt.Errorf("dial: %w", refused)
			case 4:
				panic("garbage") // like a parser with a bug
			case 5:
				return &metric.ReadError{Reason: metric.NodeScrapeError, Err: errors.New("half of it")}
			case 6:
				<-ctx.Done()
				b.Samples = b.Samples[:0]
				return ctx.Err()
			}
			return nil
		}}
		h := build(t, Options{Sinks: []NamedSink{d.named()}}, p.spec("a", interval, timeout))
		h.until(2 * time.Minute)
		var got []string
		for _, line := range d.read() {
			_, line, _ = strings.Cut(line, " ")
			got = append(got, line)
		}
		wantLines(t, "batches", got[:7], "a 0 NodeUnreachable", "a 0 NodeUnreachable", "a 0 NodeUnreachable",
			"a 0 Panic", "a 1 NodeScrapeError", "a 0 NodeTimeout", "a 1")
		h.wantLogs("the source fails", "the source fails for another reason", "the source fails for another reason",
			"the source fails for another reason", "the source answers for the first time")
		h.wantMetric(3, "weir_stage_errors_total", "stage=read", "kind=test", "reason=NodeUnreachable")
		h.wantMetric(1, "weir_stage_errors_total", "stage=read", "kind=test", "reason=Panic")
		h.wantMetric(1, "weir_panics_total", "stage=read")
		if !strings.Contains(fmt.Sprint(h.logs.FilterField(reasonField("Panic")).All()[0].ContextMap()["stack"]), "TestErrorsArePassedOn") {
			t.Errorf("log line of the panic: want the stack of it")
		}
		h.mustEnd()
	})
}

func TestSourcesAppearAndVanish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		h := build(t, Options{Sinks: []NamedSink{d.named()}}, healthy().spec("a", interval, timeout))
		h.until(time.Second)
		d.read()

		b := healthy()
		b.closed = func() { d.write("closed") }
		h.provide(healthy().spec("a", interval, timeout), b.spec("b", interval, timeout))
		synctest.Wait()
		wantLines(t, "a node that appears is read at once", d.read(), "1s b 1")
		h.wantMetric(2, "weir_sources", "kind=test")

		h.until(2 * time.Second)
		h.provide(healthy().spec("a", interval, timeout))
		h.until(time.Minute)
		if lines := d.read(); len(lines) < 2 || lines[0] != "closed" || lines[1] != "2s forget test b" || strings.Contains(fmt.Sprint(lines[2:]), " b ") {
			t.Errorf("a node that vanishes: got %q, want it closed and forgotten at 2s and not read any more", lines)
		}
		h.wantMetric(1, "weir_sources", "kind=test")
		if s := h.m.Status(); len(s) != 1 || s[0].Node != "a" {
			t.Errorf("status: got %+v, want node a alone", s)
		}

		// Another interval is another source.
		h.provide(healthy().spec("a", 30*time.Second, timeout))
		synctest.Wait()
		time.Sleep(minReconcileGap)
		synctest.Wait()
		wantLines(t, "changed interval", d.read(), "1m0s forget test a", "1m0.2s a 1")
		h.mustEnd()
	})
}

// If a source is removed while its read hangs, it is closed after that read, and forgotten
// before another source of its name begins.
func TestVanishingWhileHanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		let := make(chan struct{})
		old := hanging(let)
		old.closed = func() { d.write("closed") }
		h := build(t, Options{Sinks: []NamedSink{d.named()}}, old.spec("a", interval, timeout))
		h.until(time.Second)
		h.provide()
		h.until(1100 * time.Millisecond)
		h.provide(healthy().spec("a", interval, timeout))
		h.until(3 * time.Second)
		wantLines(t, "after the grace", d.read(), "2s forget test a", "2s a 1")
		close(let)
		synctest.Wait()
		wantLines(t, "after the read", d.read(), "closed")
		h.mustEnd()
	})
}

// Many sources that appear together are read within the spread, not at once.
func TestManyAppearTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		var specs []Spec
		for i := range 1001 {
			specs = append(specs, healthy().spec(fmt.Sprint(i), interval, timeout))
		}
		h := build(t, Options{Sinks: []NamedSink{d.named()}}, specs...)
		h.until(100 * time.Millisecond)
		if n := len(d.read()); n < 70 || n > 130 {
			t.Errorf("first reads of 1001 after a tenth of the spread: got %d, want 100 ± 30", n)
		}
		h.until(time.Second)
		if got := h.metric("weir_rounds_total", "kind=test"); got != 1001 {
			t.Errorf("first reads after the spread: got %v, want 1001", got)
		}
		h.mustEnd()
	})
}

func TestShutdownWithAllHanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		h := build(t, Options{
			Shutdown: 4 * time.Second,
			Sinks:    []NamedSink{{Name: "hung", Sink: writes(func(context.Context, *metric.Batch) error { <-let; return nil })}},
		}, hanging(let).spec("a", interval, timeout), hanging(let).spec("b", interval, timeout), healthy().spec("c", interval, timeout))
		h.until(time.Second)
		took, err := h.end()
		want := "shut down: 3 still run after 4s: sink hung, source test/a, source test/b"
		if took != 4*time.Second || err == nil || err.Error() != want {
			t.Errorf("shutdown: took %v, returned %v; want 4s, %s", took, err, want)
		}
		close(let)
	})
}

// Batches that are queued when the context ends are still written, within the limit of time.
func TestShutdownWritesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		slow := writes(func(ctx context.Context, b *metric.Batch) error {
			select {
			case <-time.After(2 * time.Second):
				return d.Write(ctx, b)
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		var specs []Spec
		for _, node := range []string{"a", "b", "c", "d", "e", "f"} {
			specs = append(specs, healthy().spec(node, interval, timeout))
		}
		h := build(t, Options{Shutdown: 8 * time.Second, Sinks: []NamedSink{{Name: "slow", Sink: slow}}}, specs...)
		h.until(time.Second)
		took, err := h.end()
		// From about 0 s on, one batch is written every 2 s. At 1 + 7 s the sink's context
		// ends.
		if n := len(d.read()); took != 7*time.Second || err != nil || n != 3 {
			t.Errorf("shutdown: took %v, returned %v, %d batches written; want 7s, nil, 3", took, err, n)
		}
		h.wantMetric(2, "weir_sink_dropped_batches_total", "sink=slow")
	})
}

func TestRunOnlyOnce(t *testing.T) {
	m := New(Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Run(ctx); err != nil {
		t.Errorf("first Run: got %v, want nil", err)
	}
	if err := m.Run(ctx); err == nil {
		t.Errorf("second Run: got nil, want an error")
	}
}

func TestSourceThatCannotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		opened := 0
		h := build(t, Options{Sinks: []NamedSink{d.named()}},
			Spec{Name: "bad", Kind: "test", Node: "bad", Interval: interval, Open: func() (Source, error) {
				opened++
				return nil, &metric.ReadError{Reason: metric.NodeNoAddress, Err: io.EOF}
			}},
			Spec{Name: "worse", Kind: "test", Node: "worse", Interval: interval, Open: func() (Source, error) { panic("no") }})
		h.until(12 * time.Second)
		lines := fmt.Sprint(d.read())
		if opened != 1 || strings.Count(lines, "bad 0 NodeNoAddress") != 2 || strings.Count(lines, "worse 0 Panic") != 2 {
			t.Errorf("opened %d times, batches %s; want once, and two batches with the reason of each", opened, lines)
		}
		h.mustEnd()
	})
}

// After a panic of a provider its sources are not removed.
func TestProviderThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var panics atomic.Bool
		p := asks(func(*cluster.Facts) []Spec {
			if panics.Load() {
				panic("no")
			}
			return []Spec{healthy().spec("a", interval, timeout), healthy().spec("a", interval, timeout)}
		})
		h := build(t, Options{Providers: []Provider{p}})
		h.until(7 * time.Second)
		h.wantLogs("two sources have one name; the second is not read")
		panics.Store(true)
		h.until(21 * time.Second)
		h.wantMetric(1, "weir_sources", "kind=test")
		h.wantMetric(3, "weir_panics_total", "stage=provider")
		h.wantLogs("two sources have one name; the second is not read", "a provider panicked; its sources stay as they are")
		h.mustEnd()
	})
}

// A closed channel of changes has no further effect. The providers are still called every few
// seconds.
func TestFactsChangedClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Options{}, healthy().spec("a", interval, timeout))
		h.until(time.Second)
		close(h.changed)
		h.until(2 * time.Second)
		h.mu.Lock()
		h.specs = nil
		h.mu.Unlock()
		h.until(7 * time.Second)
		h.wantMetric(0, "weir_sources", "kind=test")
		h.mustEnd()
	})
}
