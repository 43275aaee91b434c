package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

// Every number of the last round is served exactly as it was written.
func TestServesWhatWasWritten(t *testing.T) {
	c := kubelet(3, 4, 2)
	sink := New(Options{})
	want := map[metric.Entity]*metric.Sample{}
	for round := range 5 {
		for n := range c.nodes {
			b := c.fill(&c.batch, c.names(n), round)
			for i := range b.Samples {
				kept := new(metric.Sample)
				kept.CopyFrom(&b.Samples[i])
				want[kept.Entity] = kept
			}
			write(t, sink, b)
		}
	}
	snap := sink.Snapshot()
	if got, want := snap.At(), epoch.Add(60*time.Second); !got.Equal(want) {
		t.Errorf("At: got %v, want %v", got, want)
	}
	seen := 0
	for _, kind := range []metric.Kind{metric.Node, metric.System, metric.Pod, metric.Container} {
		var order []metric.Entity
		var kept []*metric.Sample
		for s := range snap.Samples(kind) {
			order, kept = append(order, s.Entity), append(kept, s)
		}
		if !slices.IsSortedFunc(order, metric.Entity.Compare) {
			t.Errorf("%vs are not sorted: %v", kind, order)
		}
		for _, s := range kept {
			seen++
			same(t, s, want[s.Entity])
			found, ok := snap.Lookup(s.Entity)
			if !ok {
				t.Fatalf("Lookup %v: not found", s.Entity)
			}
			same(t, found, want[s.Entity])
		}
	}
	if seen != len(want) {
		t.Errorf("got %d entities, want %d", seen, len(want))
	}
}

func same(t *testing.T, got, want *metric.Sample) {
	t.Helper()
	if want == nil {
		t.Fatalf("got %v, which was not written", got.Entity)
	}
	// Values are compared by content, not by how they are stored.
	numbers := cmp.Transformer("numbers", func(v metric.Values) map[metric.ID]float64 { return maps.Collect(v.All()) })
	private := cmp.Options{cmpopts.IgnoreUnexported(metric.Sample{}), cmpopts.IgnoreFields(metric.Sample{}, "Slot")}
	cmptest.Equal(t, fmt.Sprintf("%v", want.Entity), want, got, numbers, private)
}

// Numbers, times and windows that are hard to encode are returned unchanged.
func TestRoundKeepsEveryBit(t *testing.T) {
	sink := New(Options{})
	b := at("host", "n1", 0)
	s := use(b, on("n1", pod("a", "p")), math.Pi*1e9, 1<<53-1)
	s.Values.Set(metric.CPUUsage, math.MaxFloat64)
	s.Values.Set(metric.MemoryCache, 0)
	s.Values.Set(metric.MemoryRSS, math.SmallestNonzeroFloat64)
	s.Instance = metric.Instance{UID: "u", ID: "i", Path: "/p", Inode: 7, Start: 3, Origin: metric.StartCgroup, Processes: 12}
	s.Times[metric.Memory] = 1
	s.Received, s.LastKnown = 1<<metric.CPU, 1<<metric.Memory
	s.Reasons[metric.Memory] = metric.Ambiguous
	s.Rates[metric.Network] = metric.Window{End: math.MaxInt64, Length: -5}
	want := new(metric.Sample)
	want.CopyFrom(s)
	write(t, sink, b)
	got, ok := sink.Snapshot().Lookup(want.Entity)
	if !ok {
		t.Fatal("not served")
	}
	same(t, got, want)
}

func TestServesOnlyWhatIsRight(t *testing.T) {
	sink := New(Options{})
	b := at("kubelet:resource", "n1", 0)
	s := use(b, on("n1", pod("a", "half")), 5, 6)
	s.Reasons[metric.CPU] = metric.FirstSample
	s = use(b, on("n1", pod("a", "none")), 5, 6)
	s.Reject(metric.Stale)
	s = use(b, on("n1", pod("a", "twin")), 1, 1)
	s.Reject(metric.OlderStart)
	use(b, on("n1", pod("a", "twin")), 2, 2)
	s = use(b, on("n1", pod("a", "chosen")), 3, 3)
	s.Reasons[metric.CPU], s.Reasons[metric.Memory] = metric.Ambiguous, metric.Ambiguous
	write(t, sink, b)

	var got []string
	for s := range sink.Snapshot().Samples(metric.Pod) {
		for id, v := range s.Values.All() {
			got = append(got, s.Entity.String()+" "+id.String()+" "+string(rune('0'+int(v))))
		}
	}
	want := []string{
		"a/chosen cpu/usage_rate 3", "a/chosen memory/working_set 3",
		"a/half memory/working_set 6",
		"a/twin cpu/usage_rate 2", "a/twin memory/working_set 2",
	}
	cmptest.Equal(t, "served", want, got)
	half, _ := sink.Snapshot().Lookup(pod("a", "half"))
	if got := half.Reasons[metric.CPU]; got != metric.FirstSample {
		t.Errorf("reason for the missing CPU: got %v, want FirstSample", got)
	}
}

// A pod that is not in a batch is not in the next snapshot. An earlier snapshot still has it.
func TestVanishesAtOnce(t *testing.T) {
	sink := New(Options{})
	b := at("s", "n1", 0)
	use(b, on("n1", pod("a", "p")), 1, 1)
	use(b, on("n1", pod("a", "q")), 1, 1)
	write(t, sink, b)
	before := sink.Snapshot()
	b = at("s", "n1", 15*time.Second)
	use(b, on("n1", pod("a", "q")), 2, 2)
	write(t, sink, b)

	if _, ok := sink.Snapshot().Lookup(pod("a", "p")); ok {
		t.Error("a/p is served after it vanished")
	}
	if q, ok := sink.Snapshot().Lookup(pod("a", "q")); !ok {
		t.Error("a/q is not served")
	} else {
		value(t, q, metric.CPUUsageRate, 2)
	}
	if _, ok := before.Lookup(pod("a", "p")); !ok {
		t.Error("an earlier snapshot lost a/p")
	}
	if q, _ := before.Lookup(pod("a", "q")); q != nil {
		value(t, q, metric.CPUUsageRate, 1)
	}
}

func TestPodWithContainers(t *testing.T) {
	sink := New(Options{})
	b := at("s", "n1", 0)
	p := on("n1", pod("a", "p"))
	use(b, containerOf(p, "web"), 2, 20)
	use(b, containerOf(p, "log"), 1, 10)
	use(b, on("n1", containerOf(pod("a", "p2"), "other")), 9, 90)
	use(b, p, 3, 30)
	write(t, sink, b)
	got, containers := sink.Snapshot().Pod(metric.PodRef{Namespace: "a", Name: "p"})
	if got == nil || len(containers) != 2 {
		t.Fatalf("Pod: got %v and %d containers, want a sample and 2", got, len(containers))
	}
	value(t, got, metric.CPUUsageRate, 3)
	value(t, containers[0], metric.CPUUsageRate, 1)
	value(t, containers[1], metric.CPUUsageRate, 2)
	if got, containers := sink.Snapshot().Pod(metric.PodRef{Namespace: "a", Name: "p3"}); got != nil || containers != nil {
		t.Errorf("Pod of an unknown pod: got %v, %v", got, containers)
	}
}

func TestNodesHaveTheTimesOfReads(t *testing.T) {
	sink := New(Options{})
	b := at("s", "n1", 0)
	use(b, metric.Entity{Kind: metric.Node, Node: "n1"}, 1, 1)
	write(t, sink, b)
	b = at("s", "n1", 15*time.Second)
	b.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: context.DeadlineExceeded}
	write(t, sink, b)
	got := slices.Collect(sink.Snapshot().Sources())
	if len(got) != 1 || !errors.Is(got[0].Err, context.DeadlineExceeded) {
		t.Fatalf("Nodes: got %+v", got)
	}
	got[0].Err = nil
	want := SourceStatus{Source: "s", Node: "n1", LastRead: epoch.Add(15 * time.Second).Local(), LastSuccess: epoch.Local(), Interval: 15 * time.Second}
	cmptest.Equal(t, "status", want, got[0])
}

// A batch of many nodes counts as one batch for each node.
func TestSourceOfMany(t *testing.T) {
	sink := New(Options{})
	b := at("recording", "", 0)
	use(b, on("n2", pod("a", "q")), 2, 2)
	use(b, on("n1", pod("a", "p")), 1, 1)
	write(t, sink, b)
	got := 0
	for s := range sink.Snapshot().Samples(metric.Pod) {
		got++
		if want := metric.NodeName("n" + string(rune('0'+got))); s.Entity.Node != want {
			t.Errorf("node of pod %d: got %v, want %v", got, s.Entity.Node, want)
		}
	}
	if got != 2 {
		t.Errorf("got %d pods, want 2", got)
	}
	b = at("recording", "", 15*time.Second)
	use(b, on("n2", pod("a", "q")), 3, 3)
	write(t, sink, b)
	if n := len(slices.Collect(sink.Snapshot().Sources())); n != 1 {
		t.Errorf("after n1 went: got %d nodes, want 1", n)
	}
	sink.Forget("recording", "")
	if got := sink.Stats(); got != (Stats{}) {
		t.Errorf("after Forget: got %+v, want nothing", got)
	}
}

func TestEntityLimit(t *testing.T) {
	sink := New(Options{MaxEntities: 3})
	for range 3 {
		b := at("s", "n1", 0)
		p := on("n1", pod("a", "p"))
		use(b, containerOf(p, "x"), 1, 1)
		use(b, containerOf(p, "y"), 1, 1)
		use(b, p, 2, 2)
		use(b, metric.Entity{Kind: metric.Node, Node: "n1"}, 2, 2)
		write(t, sink, b)
	}
	if got, want := sink.Stats().Entities, 3; got != want {
		t.Errorf("entities: got %d, want %d", got, want)
	}
	if got, want := sink.Stats().Dropped, int64(3); got != want {
		t.Errorf("dropped: got %d, want %d", got, want)
	}
	var verdicts []metric.Verdict
	for v := range sink.Snapshot().Verdicts() {
		verdicts = append(verdicts, v)
	}
	if len(verdicts) != 1 || verdicts[0].Reason != metric.OverLimit || verdicts[0].Evidence.Got.Value != 1 || verdicts[0].Evidence.Limit != 3 {
		t.Errorf("verdicts: got %+v, want one OverLimit of 1 over 3", verdicts)
	}
	if _, ok := sink.Snapshot().Lookup(metric.Entity{Kind: metric.Node, Node: "n1"}); !ok {
		t.Error("the node itself was dropped")
	}
}

// parse parses the text after the name and colon of a sink.
func parse(t *testing.T, spec string) (Options, error) {
	t.Helper()
	config, query, _ := strings.Cut(spec, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return ParseOptions(config, values)
}

func TestParseOptions(t *testing.T) {
	got, err := parse(t, "?history=5m&metrics=cpu/usage_rate,memory_rss_bytes&entities=10&prefer=host,kubelet:summary")
	if err != nil {
		t.Fatal(err)
	}
	want := Options{
		History: 5 * time.Minute, MaxEntities: 10,
		HistoryMetrics: []metric.ID{metric.CPUUsageRate, metric.MemoryRSS},
		Preference:     []string{"host", "kubelet:summary"},
	}
	cmptest.Equal(t, "options", want, got)
	for spec, want := range map[string]string{
		"?colour=red":     `no option is called "colour": there are entities, history, metrics, prefer`,
		"?entities=0":     "option entities: 0 is not above 0",
		"?metrics=cpu":    `option metrics: no metric is called "cpu": docs/metrics.md lists them`,
		"file?history=1m": `there is no configuration before the question mark, got "file": write memory:?history=15m`,
	} {
		if _, err := parse(t, spec); err == nil || err.Error() != want {
			t.Errorf("ParseOptions(%q): got error %v, want %s", spec, err, want)
		}
	}
}
