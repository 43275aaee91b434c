package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

func TestReadiness(t *testing.T) {
	statuses := map[string]SourceStatus{
		"rated":      {Rounds: 2, Reached: true, Rated: true},
		"read":       {Rounds: 2, Reached: true},
		"unread":     {}, // not read yet
		"half":       {Rounds: 2, Reached: true, Rated: true, Err: errors.New("half of it")},
		"failing":    {Rounds: 1, Err: &metric.ReadError{Reason: metric.NodeUnreachable, Err: errors.New("dial tcp 192.0.2.1:10250: refused")}},
		"lost":       {Rounds: 7, Rated: true, Err: errors.New("refused")}, // it had rates once
		"left out":   {Unread: errors.New("not selected")},
		"slow rated": {Rounds: 1, Reached: true, Rated: true, Interval: time.Minute},
	}
	type group struct {
		n   int
		how string
	}
	for _, c := range []struct {
		says    string
		sources []group // each of another node
		up      time.Duration
		want    string
	}{
		{"all have rates", []group{{20, "rated"}}, 10 * time.Second, ""},
		{"95% have", []group{{19, "rated"}, {1, "read"}}, 10 * time.Second, ""},
		{"less have", []group{{18, "rated"}, {1, "read"}}, 10 * time.Second, "waiting for rates: 18 of 19 reachable nodes have them (ready without them in 30s)"},
		{"what is still to be read counts as reachable", []group{{18, "rated"}, {1, "unread"}}, 10 * time.Second, "waiting for rates: 18 of 19 reachable nodes have them (ready without them in 30s)"},
		{"failing ones do not count", []group{{19, "rated"}, {1, "read"}, {500, "failing"}}, 10 * time.Second, ""},
		{"nor do those that had rates", []group{{2, "lost"}, {1, "read"}}, 10 * time.Second, "waiting for rates: 0 of 1 reachable nodes have them, 2 more fail (ready without them in 30s)"},
		{"half an answer is one", []group{{1, "half"}}, 10 * time.Second, ""},
		{"all fail", []group{{2, "failing"}}, 10 * time.Second, "waiting for a node that answers: all 2 fail, one of them with NodeUnreachable, see the log (ready without them in 30s)"},
		{"patience ends after two intervals and a timeout", []group{{2, "failing"}}, 40 * time.Second, ""},
		{"not before", []group{{2, "read"}}, 39 * time.Second, "waiting for rates: 0 of 2 reachable nodes have them (ready without them in 1s)"},
		{"it is that of the slowest", []group{{1, "read"}, {1, "slow rated"}}, 40 * time.Second, "waiting for rates: 1 of 2 reachable nodes have them (ready without them in 1m30s)"},
		{"those left out do not count", []group{{1, "rated"}, {50, "left out"}}, 10 * time.Second, ""},
		{"all are left out", []group{{50, "left out"}}, 10 * time.Second, "waiting for a node: there is none to read (ready without one in 30s)"},
		{"no node", nil, 10 * time.Second, "waiting for a node: there is none to read (ready without one in 30s)"},
		{"no node at all", nil, 40 * time.Second, ""},
	} {
		var sources []SourceStatus
		for _, g := range c.sources {
			for i := range g.n {
				s := statuses[g.how]
				s.Name = fmt.Sprintf("%s %d", g.how, i)
				s.Node = metric.NodeName(s.Name)
				s.Interval, s.Timeout = max(s.Interval, 15*time.Second), 10*time.Second
				sources = append(sources, s)
			}
		}
		wantReady(t, c.says, readiness(sources, c.up), c.want)
	}
}

// Several sources of one node are one node: it has rates if one of them has.
func TestReadinessCountsNodes(t *testing.T) {
	of := func(node metric.NodeName, s SourceStatus) SourceStatus {
		s.Node, s.Rounds, s.Interval, s.Timeout = node, 1, 15*time.Second, 10*time.Second
		return s
	}
	rated, read, refused := SourceStatus{Reached: true, Rated: true}, SourceStatus{Reached: true}, SourceStatus{Err: errors.New("refused")}
	wantReady(t, "one of two", readiness([]SourceStatus{of("a", read), of("a", rated)}, 0), "")
	wantReady(t, "the other fails", readiness([]SourceStatus{of("a", refused), of("a", rated)}, 0), "")
	wantReady(t, "neither", readiness([]SourceStatus{of("a", refused), of("a", read), of("b", rated)}, 0),
		"waiting for rates: 1 of 2 reachable nodes have them (ready without them in 40s)")
}

func wantReady(t *testing.T, says string, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%s: got %q, want %q", says, got, want)
	}
}

// cached is a node that reports the same sample twice, like a kubelet that is read too soon.
// Its first rate comes with the third read.
func cached() *place {
	return &place{read: func(_ context.Context, round int, b *metric.Batch) error {
		s := b.Add(metric.Entity{Kind: metric.Node, Node: b.Node})
		s.Reasons[metric.CPU] = metric.FirstSample
		if round == 1 {
			s.Reasons[metric.CPU] = metric.WarmingUp
		}
		if round >= 3 {
			s.Reasons[metric.CPU], s.Rates[metric.CPU] = metric.Measured, metric.Window{End: 1, Length: interval}
		}
		return nil
	}}
}

func TestReadyOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var facts atomic.Pointer[cluster.Facts] // nil: the API server has not answered
		if err := New(Options{}).Ready(); err == nil {
			t.Errorf("Ready before Run: got nil, want an error")
		}
		refused := &place{read: func(context.Context, int, *metric.Batch) error { return errors.New("refused") }}
		left := Spec{Name: "left out/z", Kind: "excluded", Node: "z", Interval: interval, Unread: errors.New("not selected")}
		third := steady("a", time.Now().Add(2*time.Minute), settle)
		h := build(t, Options{Facts: facts.Load})
		ready := func(want string) {
			t.Helper()
			wantReady(t, fmt.Sprintf("after %v", time.Since(h.start)), h.m.Ready(), want)
		}
		// weir is not ready without the API server, however long that does not answer.
		h.until(time.Minute)
		ready("waiting for the API server's list of nodes and pods")
		facts.Store((&cluster.Facts{}).With(cluster.FactsChange{}))
		h.until(2 * time.Minute)
		ready("waiting for the API server's list of nodes and pods")

		// The time since then counts.
		facts.Store(facts.Load().With(cluster.FactsChange{Synced: true}))
		h.provide(cached().spec("a", interval, timeout), refused.spec("b", interval, timeout), left)
		h.until(2*time.Minute + time.Second)
		ready("waiting for rates: 0 of 1 reachable nodes have them, 1 more fail (ready without them in 34s)")
		h.until(2*time.Minute + settle)
		ready("waiting for rates: 0 of 1 reachable nodes have them, 1 more fail (ready without them in 25s)")
		h.until(2*time.Minute + third)
		ready("")

		// A node that appears later does not change that.
		h.provide(cached().spec("a", interval, timeout), cached().spec("c", interval, timeout))
		h.until(2*time.Minute + third + time.Second)
		ready("")
		h.mustEnd()
	})
}

// A restart takes little time: the first two reads are settle apart, wherever the places are,
// and their rates are enough.
func TestReadyTenSecondsAfterStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick := func() *place {
			return &place{read: func(_ context.Context, round int, b *metric.Batch) error {
				s := b.Add(metric.Entity{Kind: metric.Node, Node: b.Node})
				if s.Reasons[metric.CPU] = metric.FirstSample; round >= 2 {
					s.Reasons[metric.CPU], s.Rates[metric.CPU] = metric.Measured, metric.Window{End: 1, Length: settle}
				}
				return nil
			}}
		}
		const nodes = 1000
		var specs []Spec
		for i := range nodes {
			specs = append(specs, quick().spec(fmt.Sprintf("n%d", i), time.Minute, 10*time.Second))
		}
		h := build(t, Options{Facts: func() *cluster.Facts { return (&cluster.Facts{}).With(cluster.FactsChange{Synced: true}) }}, specs...)
		h.until(settle)
		if h.m.Ready() == nil {
			t.Error("ready before the second reads")
		}
		// A thousand nodes are read in one second. The last 5% are not needed.
		h.until(settle + time.Second)
		wantReady(t, "after 11s", h.m.Ready(), "")
		h.mustEnd()
	})
}

// A source that is excluded on purpose has its reason every round, and is not counted as
// failing.
func TestUnreadSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		reason := &metric.ReadError{Reason: metric.NodeExcluded, Err: errors.New("not selected")}
		spec := Spec{Name: "excluded/a", Kind: "excluded", Node: "a", Interval: interval, Unread: reason}
		third, _ := newTimetable(spec.Name, interval).next(2, time.Now().Add(settle), time.Now().Add(settle), false)
		h := build(t, Options{Sinks: []NamedSink{d.named()}, Pipeline: pipeline}, spec)
		at := third.Sub(h.start)
		h.until(at)
		wantLines(t, "rounds", d.read(), "0s a 0 NodeExcluded", "10s a 0 NodeExcluded", fmt.Sprintf("%v a 0 NodeExcluded", at))
		h.wantLogs()
		h.wantMetric(0, "weir_sources", "kind=excluded")
		h.wantMetric(0, "weir_sources_failing", "kind=excluded")
		h.wantMetric(0, "weir_stage_errors_total", "kind=excluded")
		if s := h.m.Status()[0]; s.Err != nil || !errors.Is(s.Unread, reason) {
			t.Errorf("status has error %v and is unread for %v, want none and %v", s.Err, s.Unread, reason)
		}
		// It is read when it is selected. The sources have different kinds, so that neither waits
		// for the other.
		h.provide(healthy().spec("a", interval, timeout))
		h.until(at + time.Second)
		wantLines(t, "after it was selected", slices.Sorted(slices.Values(d.read())),
			fmt.Sprintf("%v a 1", at), fmt.Sprintf("%v forget excluded a", at))
		h.mustEnd()
		h.wantMetric(0, "weir_sources", "kind=test")
	})
}

// A container that has just started has a rate at once, measured from its start. The rest of
// its node, which is seen for the first time, still has none.
func TestRatedIsTheNodeNotItsYoungest(t *testing.T) {
	batch := func(rates, first int) *metric.Batch {
		b := &metric.Batch{}
		for i := range rates + first {
			s := b.Add(metric.Entity{Kind: metric.Container, Node: "n"})
			s.Reasons[metric.CPU] = metric.FirstSample
			if i < rates {
				s.Reasons[metric.CPU], s.Rates[metric.CPU].End = metric.Measured, 1
			}
		}
		return b
	}
	for _, c := range []struct {
		rates, first int
		want         bool
	}{{0, 0, false}, {0, 20, false}, {1, 19, false}, {19, 1, true}, {20, 0, true}} {
		if got := rated(batch(c.rates, c.first)); got != c.want {
			t.Errorf("%d rates, %d seen first: rated is %v, want %v", c.rates, c.first, got, c.want)
		}
	}
}

// A node whose pods have rates is not ready before its own rate is there: it is what people ask
// for first.
func TestReadinessWaitsForTheNodeItself(t *testing.T) {
	b := &metric.Batch{Node: "a"}
	for i := range 30 {
		s := b.Add(metric.Entity{Kind: metric.Container, Node: "a", Namespace: "shop", Pod: "web", Name: fmt.Sprint(i)})
		s.Reasons[metric.CPU], s.Rates[metric.CPU] = metric.Measured, metric.Window{End: 1, Length: interval}
	}
	if !rated(b) {
		t.Error("30 containers with rates: got not rated")
	}
	node := b.Add(metric.Entity{Kind: metric.Node, Node: "a"})
	node.Reasons[metric.CPU] = metric.FirstSample
	if rated(b) {
		t.Error("the node waits for its first rate: got rated")
	}
	node.Reasons[metric.CPU], node.Rates[metric.CPU] = metric.Measured, metric.Window{End: 1, Length: interval}
	if !rated(b) {
		t.Error("the node has a rate, too: got not rated")
	}
}

// A manager collects as long as one source is read in time. Sources that fail are.
func TestCollecting(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	source := func(due time.Duration) SourceStatus {
		return SourceStatus{Interval: 15 * time.Second, Timeout: 10 * time.Second, Due: now.Add(due), Err: errors.New("refused")}
	}
	leftOut := source(-time.Hour)
	leftOut.Unread = errors.New("not selected")
	for name, c := range map[string]struct {
		sources []SourceStatus
		want    string
	}{
		"no source":                    {nil, ""},
		"all are left out":             {[]SourceStatus{leftOut}, ""},
		"one is due in time":           {[]SourceStatus{source(-time.Hour), source(10 * time.Second), leftOut}, ""},
		"one is read for three rounds": {[]SourceStatus{source(-75 * time.Second)}, ""},
		"none is read":                 {[]SourceStatus{source(-time.Hour), source(-101 * time.Second), leftOut}, "no source has been read for 1m41s, although all were due"},
	} {
		got := ""
		if err := collecting(c.sources, now); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
