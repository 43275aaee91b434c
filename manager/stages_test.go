package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// writes, asks and does are a Sink, a Provider and a Processor, each made of one function.
type (
	writes func(context.Context, *metric.Batch) error
	asks   func(*cluster.Facts) []Spec
	does   func(*cluster.Facts, *metric.Batch, time.Time)
)

func (f writes) Write(ctx context.Context, b *metric.Batch) error         { return f(ctx, b) }
func (f asks) Sources(facts *cluster.Facts) []Spec                        { return f(facts) }
func (f does) Process(facts *cluster.Facts, b *metric.Batch, n time.Time) { f(facts, b, n) }
func (f does) Name() string                                               { return "does" }

func reasonField(reason string) zap.Field { return zap.String("reason", reason) }

func TestSlowSinkCostsOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		let := make(chan struct{})
		hung := writes(func(context.Context, *metric.Batch) error { <-let; return nil })
		h := build(t, Options{Sinks: []NamedSink{{Name: "hung", Sink: hung, Queue: 2, Deadline: 3 * time.Second}, d.named()}},
			healthy().spec("a", interval, timeout))
		third := steady("a", h.start, settle)
		h.until(3500 * time.Millisecond)
		h.wantMetric(0, "weir_sink_timeouts_total", "sink=hung")
		h.until(4 * time.Second)
		h.wantMetric(1, "weir_sink_timeouts_total", "sink=hung")
		h.until(third + 3*interval)
		if n := len(d.read()); n != 6 {
			t.Errorf("batches the other sink got: got %d, want 6", n)
		}
		// One batch is in the sink, two are in its queue.
		h.wantMetric(2, "weir_sink_queue_length", "sink=hung")
		h.wantMetric(2, "weir_sink_queue_capacity", "sink=hung")
		h.wantMetric(3, "weir_sink_dropped_batches_total", "sink=hung")
		h.wantMetric(1, "weir_sink_timeouts_total", "sink=hung")
		h.wantMetric(0, "weir_sink_dropped_batches_total", "sink=diary")

		close(let)
		synctest.Wait()
		h.wantMetric(0, "weir_sink_queue_length", "sink=hung")
		h.wantLogs("the sink ignores its deadline; it is not called until it returns",
			"the sink is too slow: its queue is full and batches are dropped", "the sink has caught up")
		h.mustEnd()
	})
}

func TestSinkThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		n := 0
		bad := writes(func(ctx context.Context, _ *metric.Batch) error {
			n++
			switch n {
			case 1:
				panic("no")
			case 2, 3:
				return errors.New("disk full")
			case 4:
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		h := build(t, Options{Sinks: []NamedSink{{Name: "bad", Sink: bad, Deadline: time.Second}, d.named()}},
			healthy().spec("a", interval, timeout))
		h.until(90 * time.Second)
		if got := len(d.read()); got != n || n < 6 {
			t.Errorf("batches: the bad sink got %d, the other %d; want both the same, at least 6", n, got)
		}
		h.wantMetric(1, "weir_panics_total", "stage=bad")
		h.wantMetric(2, "weir_stage_errors_total", "stage=bad", "kind=test", "reason=Other")
		h.wantMetric(1, "weir_stage_errors_total", "stage=bad", "kind=test", "reason=Timeout")
		h.wantMetric(1, "weir_sink_timeouts_total", "sink=bad")
		h.wantLogs("the sink fails", "the sink fails", "the sink fails", "the sink works again")
		h.mustEnd()
	})
}

// The processors are called in their order, also for failed reads, with separate state for each
// source. A panic ends that state.
func TestPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		facts := (*cluster.Facts)(nil).With(cluster.FactsChange{Synced: true})
		assembled := 0
		h := build(t, Options{
			Facts: func() *cluster.Facts { return facts },
			Sinks: []NamedSink{d.named()},
			Pipeline: func(spec Spec) []Processor {
				assembled++
				seen := 0
				return []Processor{
					does(func(got *cluster.Facts, b *metric.Batch, now time.Time) {
						if got != facts || !now.Equal(time.Now()) || b.Node != spec.Node || b.Source != spec.Kind || b.Interval != interval {
							t.Errorf("Process: got facts %p at %v for %s/%s every %v; want %p at %v for %s/%s every %v",
								got, now, b.Source, b.Node, b.Interval, facts, time.Now(), spec.Kind, spec.Node, interval)
						}
						seen++
						b.Add(metric.Entity{Kind: metric.Pod, Name: fmt.Sprint(seen)})
					}),
					does(func(_ *cluster.Facts, b *metric.Batch, _ time.Time) {
						last := b.Samples[len(b.Samples)-1].Entity.Name
						if last == "3" {
							panic("the state is rotten")
						}
						d.write(string(b.Node) + " round " + last)
					}),
				}
			},
		}, (&place{read: func(_ context.Context, round int, _ *metric.Batch) error {
			if round == 2 {
				return errors.New("no")
			}
			return nil
		}}).spec("a", interval, timeout))
		third := steady("a", h.start, settle)
		h.until(third + interval)
		wantLines(t, "rounds", d.read(),
			"a round 1", "0s a 1", "a round 2", "10s a 1 Other",
			fmt.Sprintf("%v a 0 Panic", third), "a round 1", fmt.Sprintf("%v a 1", third+interval))
		if assembled != 2 {
			t.Errorf("pipelines assembled: got %d, want 2: at the start and after the panic", assembled)
		}
		h.wantMetric(1, "weir_panics_total", "stage=does")
		h.wantMetric(7, "weir_stage_samples_out_total", "stage=does", "kind=test")
		h.mustEnd()
	})
}

// crossCheckSource needs a cross-check in every round.
type crossCheckSource struct{ rounds *int }

func (d crossCheckSource) NeedsCrossCheck(_ *cluster.Facts, b *metric.Batch, _ time.Time) bool {
	*d.rounds++
	return true
}
func (d crossCheckSource) Process(*cluster.Facts, *metric.Batch, time.Time) {}

func TestSecondRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		let := make(chan struct{})
		asked, doubted := 0, 0
		spec := (&place{read: func(_ context.Context, round int, b *metric.Batch) error {
			if round == 2 {
				return errors.New("nothing to doubt")
			}
			b.Add(metric.Entity{Kind: metric.Node})
			return nil
		}}).spec("a", interval, timeout)
		spec.ReadSecond = func(_ context.Context, b *metric.Batch) error {
			asked++
			switch asked {
			case 1:
				b.Add(metric.Entity{Kind: metric.Pod})
				b.Add(metric.Entity{Kind: metric.Pod})
			case 2:
				return errors.New("it has seen nothing")
			case 3:
				<-let
			}
			return nil
		}
		h := build(t, Options{
			Sinks:    []NamedSink{d.named()},
			Pipeline: func(Spec) []Processor { return []Processor{crossCheckSource{&doubted}} },
		}, spec)
		third := steady("a", h.start, settle)
		h.until(third + 2*interval)
		wantLines(t, "rounds", d.read(), "0s a 1 second 2", "10s a 0 Other", fmt.Sprintf("%v a 1", third),
			// A second read that hangs delays its own round by its deadline and the grace.
			// After that the source is not called until the read returns.
			fmt.Sprintf("%v a 1", third+interval+timeout+grace), fmt.Sprintf("%v a 0 NodeTimeout", third+2*interval))
		if doubted != 3 || asked != 3 {
			t.Errorf("asked for a second read %d times, read %d times; want 3, 3", doubted, asked)
		}
		h.wantMetric(1, "weir_stage_errors_total", "stage=second_read", "kind=test", "reason=Other")
		h.wantMetric(1, "weir_stage_errors_total", "stage=second_read", "kind=test", "reason=NodeTimeout")
		close(let)
		h.until(third + 3*interval)
		wantLines(t, "when it is back", d.read(), fmt.Sprintf("%v a 1 second 0", third+3*interval))
		h.mustEnd()
	})
}

// A batch is filled again only after the sinks have released it.
func TestBatchesAreRecycled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		var mu sync.Mutex
		var filled []*metric.Batch
		p := &place{read: func(_ context.Context, _ int, b *metric.Batch) error {
			if len(b.Samples) != 0 || b.Err != nil || b.Resolution != 0 || b.Exhaustive || b.Cores != 0 || b.CrossCheck != nil {
				t.Errorf("batch to fill: got %+v, want an empty one", b)
			}
			mu.Lock()
			filled = append(filled, b)
			mu.Unlock()
			b.Add(metric.Entity{Kind: metric.Node})
			b.Resolution, b.Exhaustive, b.Cores = time.Millisecond, true, 4
			return errors.New("partly")
		}}
		slow := writes(func(context.Context, *metric.Batch) error { <-let; return nil })
		h := build(t, Options{Sinks: []NamedSink{newDiary().named(), {Name: "slow", Sink: slow}}}, p.spec("a", interval, timeout))
		rounds := func() []*metric.Batch {
			mu.Lock()
			defer mu.Unlock()
			rounds := filled
			filled = nil
			return rounds
		}
		h.until(time.Minute)
		before := rounds()
		for i, b := range before {
			if slices.Contains(before[:i], b) {
				t.Errorf("round %d of %d: got a batch that a sink has, want another", i+1, len(before))
			}
		}
		close(let)
		h.until(2 * time.Minute)
		free := rounds()
		for _, b := range free {
			if b != free[0] {
				t.Errorf("rounds without a batch in use: got a new one, want the last one's again")
			}
		}
		h.mustEnd()
	})
}

func TestMetricNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, Options{Sinks: []NamedSink{newDiary().named()}}, healthy().spec("a", interval, timeout))
		h.until(time.Second)
		families, err := h.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
		for _, f := range families {
			if !strings.HasPrefix(f.GetName(), "weir_") || f.GetHelp() == "" {
				t.Errorf("metric %s: help %q; want the prefix weir_ and a help text", f.GetName(), f.GetHelp())
			}
		}
		h.mustEnd()
	})
}

// TestCountersBeginAtZero: for Prometheus, a counter that first appears with 1 has not increased.
func TestCountersBeginAtZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		h := build(t, Options{Sinks: []NamedSink{d.named()}}, healthy().spec("a", interval, timeout))
		h.until(interval)
		families, err := h.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, f := range families {
			for _, m := range f.Metric {
				for _, l := range m.Label {
					found[f.GetName()+" "+l.GetValue()] = true
				}
			}
		}
		for _, name := range []string{
			"weir_sink_dropped_batches_total diary", "weir_sink_timeouts_total diary",
			"weir_panics_total diary", "weir_panics_total read", "weir_panics_total provider",
		} {
			if !found[name] {
				t.Errorf("%s is not there before it counts something", name)
			}
		}
	})
}
