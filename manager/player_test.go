package manager

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// marker is a processor that changes its batches, as all do, and counts them.
type marker struct{ rounds float64 }

func (m *marker) Process(_ *cluster.Facts, b *metric.Batch, now time.Time) {
	m.rounds++
	for i := range b.Samples {
		b.Samples[i].Values.Set(metric.CPUUsageRate, m.rounds)
	}
}

// tape is a Recorder that keeps its batches, and a Player of them.
type tape struct {
	mu    sync.Mutex
	takes []take
}

type take struct {
	b     *metric.Batch // nil if the source is gone
	node  metric.NodeName
	facts *cluster.Facts
	now   time.Time
}

func (t *tape) Record(_ context.Context, b *metric.Batch, facts *cluster.Facts, now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := new(metric.Batch)
	c.CopyFrom(b)
	if b.CrossCheck != nil {
		c.CrossCheck = new(metric.Batch)
		c.CrossCheck.CopyFrom(b.CrossCheck)
	}
	t.takes = append(t.takes, take{c, b.Node, facts, now})
	return nil
}

func (t *tape) Forget(source string, node metric.NodeName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.takes = append(t.takes, take{node: node})
}

func (t *tape) Next(_ context.Context, b *metric.Batch) (facts *cluster.Facts, now time.Time, gone []metric.SourceKey, err error) {
	for len(t.takes) > 0 {
		k := t.takes[0]
		t.takes = t.takes[1:]
		if k.b != nil {
			b.CopyFrom(k.b)
			b.CrossCheck = k.b.CrossCheck
			return k.facts, k.now, gone, nil
		}
		gone = append(gone, metric.SourceKey{Source: "k", Node: k.node})
	}
	return nil, now, nil, io.EOF
}

// page is a sink that stores its calls as lines, and may be slow.
type page struct {
	lines []string
	slow  time.Duration
}

func (p *page) Write(_ context.Context, b *metric.Batch) error {
	time.Sleep(p.slow) // in a synctest bubble
	v, _ := b.Samples[0].Values.Get(metric.CPUUsageRate)
	p.lines = append(p.lines, fmt.Sprintf("%s %s %d %v", b.Source, b.Node, b.Ended.UnixNano(), v))
	return nil
}

func (p *page) Forget(source string, node metric.NodeName) {
	p.lines = append(p.lines, fmt.Sprintf("%s %s gone", source, node))
}

// sampleSource is a source of one sample.
type sampleSource struct{}

func (sampleSource) Read(_ context.Context, b *metric.Batch) error {
	s := b.Add(metric.Entity{Kind: metric.Node, Node: b.Node})
	s.Values.Set(metric.CPUUsage, 7)
	return nil
}

type specs []Spec

func (s specs) Sources(*cluster.Facts) []Spec { return s }

// A recorder gets the batches before the processors. When they are played, the results and
// times are those of the recorded run, and a slow sink loses no batch. No source is gone because
// the recording weir ended.
func TestWhatIsRecordedPlays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		facts := (*cluster.Facts)(nil).With(cluster.FactsChange{Synced: true})
		pipeline := func(Spec) []Processor { return []Processor{&marker{}} }
		var sources specs
		for i := range 3 {
			node := metric.NodeName(fmt.Sprint("n", i))
			sources = append(sources, Spec{Name: string(node), Kind: "k", Node: node, Open: func() (Source, error) { return sampleSource{}, nil }})
		}
		run := func(o Options, d time.Duration) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			if err := New(o).Run(ctx); err != nil {
				t.Fatal(err)
			}
		}
		recorded, live := &tape{}, &page{}
		run(Options{
			Providers: []Provider{sources}, Pipeline: pipeline, Facts: func() *cluster.Facts { return facts },
			Sinks: []NamedSink{{Name: "tape", Recorder: recorded}, {Name: "page", Sink: live}},
		}, 10*time.Minute)

		rounds := 0
		for _, k := range recorded.takes {
			if k.b == nil {
				t.Fatalf("after %d rounds, the source of %s is recorded as gone", rounds, k.node)
			}
			rounds++
			if k.b.Samples[0].Values.Has(metric.CPUUsageRate) {
				t.Fatalf("round %d was recorded after a processor had changed it", rounds)
			}
			if k.facts != facts || !k.now.Equal(k.b.Ended) {
				t.Fatalf("round %d was recorded with %v and %v, want the facts and moment of the processors", rounds, k.facts, k.now)
			}
		}
		if rounds < 100 {
			t.Fatalf("%d rounds were recorded, want those of ten minutes", rounds)
		}

		time.Sleep(time.Hour)
		played := &page{slow: time.Second}
		run(Options{Player: recorded, Pipeline: pipeline, Sinks: []NamedSink{{Name: "page", Sink: played, Queue: 2}}}, time.Hour)
		// The order of several sources at one moment is random.
		slices.Sort(live.lines)
		slices.Sort(played.lines)
		if diff := cmp.Diff(live.lines, played.lines); diff != "" {
			t.Errorf("(-live +played):\n%s", diff)
		}
	})
}

// A verdict that a processor adds before the first sample of a round is kept, in a played batch
// as in one that is read.
func TestVerdictBeforeTheFirstSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		holds := does(func(_ *cluster.Facts, b *metric.Batch, _ time.Time) {
			b.Verdicts = append(b.Verdicts, metric.Verdict{Reason: metric.Stale})
			b.Add(metric.Entity{Kind: metric.Node, Node: b.Node})
		})
		var got []int
		counts := writes(func(_ context.Context, b *metric.Batch) error {
			got = append(got, len(b.Verdicts))
			return nil
		})
		failed := &tape{}
		for range 3 {
			failed.takes = append(failed.takes, take{b: &metric.Batch{Source: "k", Node: "n", Err: io.ErrUnexpectedEOF}})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := New(Options{
			Player: failed, Pipeline: func(Spec) []Processor { return []Processor{holds} },
			Sinks: []NamedSink{{Name: "counts", Sink: counts}},
		}).Run(ctx)
		if diff := cmp.Diff([]int{1, 1, 1}, got); err != nil || diff != "" {
			t.Errorf("verdicts of each round (-want +got), and %v:\n%s", err, diff)
		}
	})
}
