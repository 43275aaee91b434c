package recordings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/api/clustermetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/sinks/memory"
)

// weir has pipelines and a memory sink, without a clock.
type weir struct {
	t      *testing.T
	memory *memory.Sink
	chains map[key]*processors.Pipeline
}

type key struct {
	source string
	node   metric.NodeName
}

func newWeir(t *testing.T) *weir {
	return &weir{t: t, memory: memory.New(memory.Options{}), chains: map[key]*processors.Pipeline{}}
}

func (w *weir) chain(b *metric.Batch) *processors.Pipeline {
	k := key{b.Source, b.Node}
	if w.chains[k] == nil {
		w.chains[k] = processors.New(processors.Options{})
	}
	return w.chains[k]
}

// take passes b through the pipeline and returns the result as text.
func (w *weir) take(b *metric.Batch, facts *cluster.Facts, now time.Time) string {
	w.t.Helper()
	w.chain(b).Process(facts, b, now)
	if err := w.memory.Write(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
	return describeBatch(b)
}

// shown returns everything that readers can see: samples, history, verdicts,
// the states of the sources, and the exposition.
func (w *weir) shown() string {
	var out bytes.Buffer
	snapshot := w.memory.Snapshot()
	for k := range metric.Kind(metric.NumKinds) {
		for s := range snapshot.Samples(k) {
			fmt.Fprint(&out, s.Entity, s.Instance, s.Times, s.Rates, s.Reasons, s.Received, s.LastKnown)
			for id, v := range s.Values.All() {
				fmt.Fprintf(&out, " %d=%x", id, math.Float64bits(v))
			}
			fmt.Fprintln(&out, snapshot.History(s.Entity, metric.CPUUsageRate, time.Unix(0, 0), time.Unix(1e10, 0)))
		}
	}
	for v, since := range snapshot.Verdicts() {
		fmt.Fprintln(&out, v, since.UTC())
	}
	for s := range snapshot.Sources() {
		fmt.Fprintln(&out, s)
	}
	answer := httptest.NewRecorder()
	clustermetrics.New(func() clustermetrics.MetricsReader { return snapshot }, clustermetrics.Options{Timestamps: true, Filter: series.Filter{Profile: series.All}}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics/cluster", nil))
	out.Write(answer.Body.Bytes())
	return out.String()
}

// livePipeline is a weir that records its run.
type livePipeline struct {
	*weir
	file   bytes.Buffer
	writer *recording.Writer
	came   []string
	show   []string // after every twentieth round
}

func newLive(t *testing.T, begin time.Time) *livePipeline {
	l := &livePipeline{weir: newWeir(t)}
	var err error
	if l.writer, err = recording.NewWriter(&l.file, recording.Options{Begin: begin, Restart: 5 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	return l
}

// round processes and records one round. readSecond returns the batch of the
// cross-check; it is nil if there is none.
func (l *livePipeline) round(b *metric.Batch, facts *cluster.Facts, now time.Time, readSecond func() *metric.Batch) {
	l.t.Helper()
	if readSecond != nil && !b.Failed() && l.chain(b).NeedsCrossCheck(facts, b, now) {
		b.CrossCheck = readSecond()
	}
	if err := l.writer.Round(b, facts, now); err != nil {
		l.t.Fatal(err)
	}
	l.came = append(l.came, l.take(b, facts, now))
	if len(l.came)%20 == 0 {
		l.show = append(l.show, l.shown())
	}
}

// replay replays the recording and compares the results. It returns the number
// of cross-checks.
func (l *livePipeline) replay() (secondReads int) {
	l.t.Helper()
	if err := l.writer.Close(); err != nil {
		l.t.Fatal(err)
	}
	samples := 0
	size := l.file.Len()
	r, err := recording.NewReader(&l.file)
	if err != nil {
		l.t.Fatal(err)
	}
	defer r.Close()
	again, n := newWeir(l.t), 0
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			l.t.Fatal(err)
		}
		if f.Kind != recording.Round {
			continue
		}
		samples += len(f.Batch.Samples)
		if f.Batch.CrossCheck != nil {
			secondReads++
			samples += len(f.Batch.CrossCheck.Samples)
		}
		got := again.take(f.Batch, f.Facts, f.Now)
		if diff := cmp.Diff(l.came[n], got); diff != "" {
			l.t.Fatalf("round %d differs (-recorded +replayed):\n%s", n, diff)
		}
		if n++; n%20 == 0 {
			if diff := cmp.Diff(l.show[n/20-1], again.shown()); diff != "" {
				l.t.Fatalf("after round %d (-recorded +replayed):\n%s", n, diff)
			}
		}
	}
	if n != len(l.came) {
		l.t.Errorf("%d rounds were replayed, %d recorded", n, len(l.came))
	}
	if diff := cmp.Diff(l.shown(), again.shown()); diff != "" {
		l.t.Errorf("in the end (-recorded +replayed):\n%s", diff)
	}
	l.t.Logf("%d rounds, %d samples, %d second reads, %.2f bytes a sample", n, samples, secondReads, float64(size)/float64(samples))
	return secondReads
}

// describeBatch returns the whole batch as text: a line for each sample and
// verdict, sorted, because the order of some processors is not defined.
func describeBatch(b *metric.Batch) string {
	var lines []string
	for i := range b.Samples {
		s := b.Samples[i]
		s.Slot = 0 // slots depend on the order of the facts, which a recording does not contain
		lines = append(lines, fmt.Sprintf("%+v\n", s))
	}
	for i := range b.Verdicts {
		v := b.Verdicts[i]
		lines = append(lines, fmt.Sprintf("%+v %s\n", v, failure(v.Evidence.Err)))
	}
	slices.Sort(lines)
	return fmt.Sprintln(b.Source, b.Node, b.Began.UnixNano(), b.Ended.UnixNano(), b.NodeTime, b.Interval, b.Resolution, b.Exhaustive, b.Cores, b.Bytes, failure(b.Err)) +
		strings.Join(lines, "")
}

// failure returns the part of an error that a recording contains.
func failure(err error) string {
	var read *metric.ReadError
	errors.As(err, &read)
	if read == nil {
		read = new(metric.ReadError)
	}
	return fmt.Sprint(err, read.Reason, errors.Is(err, context.DeadlineExceeded))
}
