package memory

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

func TestFloat24(t *testing.T) {
	for _, v := range []float64{0, 1, 0.001, math.Pi, 1e9, 1<<40 + 1, 1e15, 0.9999999, 1e-12, 1e26} {
		got, ok := toFloat24(v).float()
		if !ok || math.Abs(got-v) > v/(1<<18) {
			t.Errorf("%v: got %v %v", v, got, ok)
		}
	}
	for v, want := range map[float64]float64{1e-13: 0, math.Inf(1): math.Float64frombits((maxFloat24 + exponentBias) << droppedBits)} {
		if got, ok := toFloat24(v).float(); !ok || got != want {
			t.Errorf("%v: got %v %v, want %v", v, got, ok, want)
		}
	}
	for _, v := range []float64{-1, math.NaN(), math.Inf(-1)} {
		if got, ok := toFloat24(v).float(); ok {
			t.Errorf("%v: got %v, want none", v, got)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		v := math.Exp(r.Float64()*80 - 20)
		if got, _ := toFloat24(v).float(); math.Abs(got-v) > v/(1<<18) {
			t.Fatalf("%v: got %v, which is off by %v of it", v, got, math.Abs(got-v)/v)
		}
	}
}

// pointsAre checks times to the millisecond and values to 4 millionths.
func pointsAre(t *testing.T, got []Point, want []Point) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d points %v, want %d", len(got), got, len(want))
	}
	for i := range got {
		if d := want[i].Time - got[i].Time; d < 0 || d >= int64(time.Millisecond) {
			t.Errorf("point %d: got time %v, want %v", i, time.Unix(0, got[i].Time), time.Unix(0, want[i].Time))
		}
		if math.Abs(got[i].Value-want[i].Value) > want[i].Value/(1<<18) {
			t.Errorf("point %d: got %v, want %v", i, got[i].Value, want[i].Value)
		}
	}
}

// The history of a source with more rows than fit into 16 bits is packed and read like any other.
func TestHistoryOfManyRows(t *testing.T) {
	const rows, rounds = 70_000, packRounds + 1
	sink := New(Options{HistoryMetrics: []metric.ID{metric.MemoryWorkingSet}})
	var entities []metric.Entity
	for i := range rows {
		entities = append(entities, on("n1", pod("shop", fmt.Sprintf("web-%05d", i))))
	}
	for round := range rounds {
		b := at("s", "n1", time.Duration(round)*15*time.Second)
		for i, e := range entities {
			use(b, e, 1, float64(i*rounds+round))
		}
		write(t, sink, b)
	}
	snap := sink.Snapshot()
	for i := 0; i < rows; i += 777 {
		var want []Point
		for round := range rounds {
			want = append(want, Point{epoch.Add(time.Duration(round) * 15 * time.Second).UnixNano(), float64(i*rounds + round)})
		}
		pointsAre(t, snap.History(entities[i], metric.MemoryWorkingSet, epoch, epoch.Add(time.Hour)), want)
	}
}

func TestHistory(t *testing.T) {
	c := kubelet(2, 3, 2)
	sink := New(Options{History: 10 * time.Minute})
	names := []*nodeNames{c.names(0), c.names(1)}
	const rounds = 100
	for round := range rounds {
		for _, n := range names {
			write(t, sink, c.fill(&c.batch, n, round))
		}
	}
	snap := sink.Snapshot()
	for _, n := range names {
		all := append(append([]metric.Entity{n.node}, n.pods...), n.containers...)
		for i, e := range all {
			var cpu, memory []Point
			for round := rounds - 41; round < rounds; round++ { // 10 minutes, both ends included
				at := epoch.Add(time.Duration(round)*c.interval - time.Duration(i)*time.Millisecond).UnixNano()
				u, m := truth(i, round)
				cpu, memory = append(cpu, Point{at, u}), append(memory, Point{at, m})
			}
			pointsAre(t, snap.History(e, metric.CPUUsageRate, epoch, epoch.Add(time.Hour)), cpu)
			e.Node = map[bool]metric.NodeName{true: "", false: e.Node}[isPodKind(e.Kind)]
			from, to := time.Unix(0, memory[5].Time), time.Unix(0, memory[9].Time)
			pointsAre(t, snap.History(e, metric.MemoryWorkingSet, from, to), memory[5:10])
			if got := snap.History(e, metric.MemoryCache, epoch, epoch.Add(time.Hour)); got != nil {
				t.Errorf("a metric without a history has %v", got)
			}
		}
	}
	if got := sink.Stats().HistoryBytes; got > 42*2*(10*8) {
		t.Errorf("history: got %d bytes, want what 41 rounds take", got)
	}
}

// Last known values are not points. Groups with different times, metrics that appear later, and
// entities that come back are all stored.
func TestHistoryOfAnUnsteadyPod(t *testing.T) {
	sink := New(Options{})
	p := on("n1", pod("a", "p"))
	var cpu, memory, rss []Point
	for round := range 40 {
		b := at("s", "n1", time.Duration(round)*15*time.Second)
		if round%10 == 7 {
			write(t, sink, b) // the pod is not reported
			continue
		}
		s := use(b, p, float64(1000+round), float64(5000+round))
		now := b.Ended.UnixNano()
		s.Times[metric.Memory] = now - int64(round)*int64(time.Second)
		memory = append(memory, Point{s.Times[metric.Memory], float64(5000 + round)})
		switch {
		case round < 2:
			s.Reasons[metric.CPU] = metric.FirstSample
		case round%5 == 3:
			s.LastKnown = 1 << metric.CPU
		default:
			cpu = append(cpu, Point{now, float64(1000 + round)})
		}
		if round > 20 {
			s.Values.Set(metric.MemoryRSS, 3)
			rss = append(rss, Point{s.Times[metric.Memory], 3})
		}
		write(t, sink, b)
	}
	snap := sink.Snapshot()
	until := epoch.Add(time.Hour)
	pointsAre(t, snap.History(p, metric.CPUUsageRate, epoch, until), cpu)
	pointsAre(t, snap.History(p, metric.MemoryWorkingSet, epoch, until), memory)
	pointsAre(t, snap.History(p, metric.MemoryRSS, epoch, until), rss)
}

// A time more than 65 seconds back makes the block's clock coarser, not wrong.
func TestHistoryOfOldTimes(t *testing.T) {
	sink := New(Options{})
	b := at("s", "n1", 0)
	use(b, on("n1", pod("a", "new")), 1, 1)
	old := use(b, on("n1", pod("a", "old")), 2, 2)
	when := epoch.Add(-10 * time.Minute).UnixNano()
	old.Times[metric.Memory] = when
	write(t, sink, b)
	got := sink.Snapshot().History(pod("a", "old"), metric.MemoryWorkingSet, epoch.Add(-time.Hour), epoch)
	if len(got) != 1 || got[0].Time-when < 0 || got[0].Time-when >= int64(16*time.Millisecond) {
		t.Errorf("got %v, want one point at %v to 16 ms", got, when)
	}
}

// If the preferred source fails, the points are those of a source that goes on.
func TestHistoryOfAFailedSource(t *testing.T) {
	sink := New(Options{Preference: []string{"good", "spare"}})
	p := on("n1", pod("a", "p"))
	round := func(n int, sources map[string]float64) {
		for source, memory := range sources {
			b := at(source, "n1", time.Duration(n)*15*time.Second)
			use(b, p, 1, memory)
			write(t, sink, b)
		}
	}
	check := func(name string, points int, memory float64) {
		t.Helper()
		got := sink.Snapshot().History(p, metric.MemoryWorkingSet, epoch, epoch.Add(time.Hour))
		if len(got) != points || math.Abs(got[0].Value-memory) > 0.01 {
			t.Errorf("%s: got %d points %v, want %d of %v", name, len(got), got, points, memory)
		}
	}
	for n := range 10 {
		round(n, map[string]float64{"good": 100, "spare": 200})
	}
	check("both", 10, 100)
	for n := 10; n < 14; n++ {
		round(n, map[string]float64{"spare": 200})
	}
	check("the preferred one failed a minute ago", 10, 100)
	for n := 14; n < 26; n++ {
		round(n, map[string]float64{"spare": 200})
	}
	check("the preferred one failed 4 minutes ago", 26, 200)
	round(26, map[string]float64{"good": 100})
	check("it is back", 11, 100)
}

// If pods come and go on a node for a day, the size of its history stays the same.
func TestChurnIsBounded(t *testing.T) {
	sink := New(Options{})
	most := 0
	for round := range 2000 {
		b := at("s", "n1", time.Duration(round)*15*time.Second)
		for i := range 20 {
			use(b, on("n1", pod("jobs", "job-"+string(rune('a'+i))+time.Duration(round-i).String())), 1, 1)
		}
		write(t, sink, b)
		if v := sink.mu.sources[sourceKey{"s", "n1"}]; round > 1000 {
			most = max(most, len(v.history.rows), int(v.history.ids))
		}
	}
	if want := 20 + 20 + 20 + 64; most > want {
		t.Errorf("got %d rows, want at most %d", most, want)
	}
	if got := sink.Stats(); got.Entities != 20 {
		t.Errorf("entities: got %d, want 20", got.Entities)
	}
}

// PastPods yields the pods of a node that have a history, also those that are gone.
func TestPastPods(t *testing.T) {
	sink := New(Options{HistoryMetrics: []metric.ID{metric.MemoryWorkingSet}})
	for round, name := range []metric.PodName{"web-1", "web-2"} {
		for _, node := range []metric.NodeName{"n1", "n2"} {
			b := at("s", node, time.Duration(round)*15*time.Second)
			use(b, on(node, metric.Entity{Kind: metric.Pod, Namespace: "shop", Pod: name + "-" + metric.PodName(node)}), 1, 1)
			write(t, sink, b)
		}
	}
	for node, want := range map[metric.NodeName]string{"n1": "[web-1-n1 web-2-n1]", "n2": "[web-1-n2 web-2-n2]", "n3": "[]"} {
		var got []metric.PodName
		for e := range sink.Snapshot().PastPods(node) {
			if e.Kind != metric.Pod || e.Node != node || e.Namespace != "shop" {
				t.Errorf("got %+v, want a pod of %s", e, node)
			}
			got = append(got, e.Pod)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, want %s", node, got, want)
		}
	}
}

// PastContainers yields what has a history, also if it is gone, and only the namespace's.
func TestPastContainers(t *testing.T) {
	sink := New(Options{HistoryMetrics: []metric.ID{metric.MemoryWorkingSet}})
	here := func(namespace metric.Namespace, name metric.PodName) metric.Entity {
		return on("n1", metric.Entity{Kind: metric.Container, Namespace: namespace, Pod: name, Name: "app"})
	}
	old, present, other := here("shop", "web-1"), here("shop", "web-2"), here("bank", "vault")
	for round, all := range [][]metric.Entity{{old, other}, {present, other}} {
		b := at("s", "n1", time.Duration(round)*15*time.Second)
		for _, e := range all {
			use(b, e, 1, 1)
		}
		write(t, sink, b)
	}
	for namespace, want := range map[metric.Namespace]string{"shop": "[shop/web-1 shop/web-2]", "bank": "[bank/vault]", "": "[bank/vault shop/web-1 shop/web-2]", "none": "[]"} {
		var got []string
		for e := range sink.Snapshot().PastContainers(namespace) {
			if e.Kind != metric.Container || e.Node != "n1" || e.Name != "app" {
				t.Errorf("got %+v, want a container app of n1", e)
			}
			got = append(got, string(e.Namespace)+"/"+string(e.Pod))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("namespace %q: got %v, want %s", namespace, got, want)
		}
	}
}
