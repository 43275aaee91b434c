package model

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
)

// view is a snapshot with the methods that this API reads.
type view struct{ *memory.Snapshot }

func (v view) Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
	return func(yield func(time.Time, float64) bool) {
		for _, p := range v.History(e, id, from, to) {
			if !yield(time.Unix(0, p.Time), p.Value) {
				return
			}
		}
	}
}

// noon is when the village is first read. The tests ask 62 seconds later, in the middle of the
// fifth round.
var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	now  = noon.Add(62 * time.Second)
)

const interval = 15 * time.Second

func entity(kind metric.Kind, node, namespace, pod, name string) metric.Entity {
	return metric.Entity{Kind: kind, Node: metric.NodeName(node), Namespace: metric.Namespace(namespace), Pod: metric.PodName(pod), Name: name}
}

// use adds a sample with the given values, measured when b was read.
func use(b *metric.Batch, e metric.Entity, values map[metric.ID]float64) *metric.Sample {
	s := b.Add(e)
	at := b.Ended.UnixNano()
	s.Instance.Start, s.Instance.Origin = noon.Add(-time.Hour).UnixNano(), metric.StartReported
	for id, v := range values {
		g := id.Describe().Group
		s.Values.Set(id, v)
		s.Times[g], s.Reasons[g] = at, metric.Measured
		if id.Describe().Type == metric.Rate {
			s.Rates[g] = metric.Window{End: at, Length: interval}
		}
	}
	return s
}

// village is a small cluster after five rounds. Usage grows with each round: an entity of base
// millicores and mebibytes uses base×(10+round) of both.
//
//	n1  shop/web-1 (app and sidecar), bank/vault, the runtime and a service; read 1s after the round begins
//	n2  shop/web-2; read 8s after the round begins
//	n3  does not answer, so its pod shop/lost has no numbers
//
// shop/web-3 is pending; web-2 was read once, so it has no rate yet.
func village(t testing.TB) (ModelReader, *cluster.Facts) {
	t.Helper()
	sink := memory.New(memory.Options{})
	write := func(b *metric.Batch) {
		if err := sink.Write(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	batch := func(node metric.NodeName, after time.Duration) *metric.Batch {
		at := noon.Add(after)
		return &metric.Batch{Source: "kubelet:resource", Node: node, Interval: interval, Resolution: time.Millisecond, Began: at, Ended: at}
	}
	for round := range 5 {
		grown := float64(10 + round)
		both := func(base float64) map[metric.ID]float64 {
			return map[metric.ID]float64{
				metric.CPUUsage:         1e12 + grown*1e9,
				metric.CPUUsageRate:     base * grown * 1e6,
				metric.MemoryWorkingSet: base * grown * (1 << 20),
			}
		}
		b := batch("n1", time.Duration(round)*interval+time.Second)
		node := both(100)
		node[metric.CPUNodeCapacity], node[metric.CPUNodeUtilization] = 4e9, 0.375
		node[metric.FilesystemUsage], node[metric.Uptime] = 30<<30, 3600e9
		use(b, entity(metric.Node, "n1", "", "", ""), node)
		disk := entity(metric.Node, "n1", "", "", "")
		disk.Part = "device:/dev/vda1"
		use(b, disk, map[metric.ID]float64{metric.FilesystemUsage: 7 << 30, metric.FilesystemLimit: 9 << 30})
		use(b, entity(metric.System, "n1", "", "", "runtime"), both(2))
		use(b, entity(metric.System, "n1", "", "", "/system.slice/sshd.service"), both(1))
		web := both(10)
		web[metric.NetworkRxRate], web[metric.CPURequest] = 1234.5, 250e6
		use(b, entity(metric.Pod, "n1", "shop", "web-1", ""), web)
		volume := entity(metric.Pod, "n1", "shop", "web-1", "")
		volume.Part = "volume:data"
		use(b, volume, map[metric.ID]float64{metric.FilesystemUsage: 5 << 20})
		use(b, entity(metric.Container, "n1", "shop", "web-1", "app"), both(9))
		use(b, entity(metric.Container, "n1", "shop", "web-1", "sidecar"), both(1))
		use(b, entity(metric.Pod, "n1", "bank", "vault", ""), both(20))
		use(b, entity(metric.Container, "n1", "bank", "vault", "safe"), both(20))
		write(b)

		b = batch("n2", time.Duration(round)*interval+8*time.Second)
		if round == 4 {
			continue // not read yet
		}
		use(b, entity(metric.Node, "n2", "", "", ""), both(50))
		if round == 3 {
			young := use(b, entity(metric.Pod, "n2", "shop", "web-2", ""), map[metric.ID]float64{metric.MemoryWorkingSet: 3 << 20})
			young.Times[metric.CPU], young.Reasons[metric.CPU] = b.Ended.UnixNano(), metric.FirstSample
			b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: young.Entity, Group: metric.CPU, Reason: metric.FirstSample})
		}
		write(b)
	}
	b := batch("n3", 4*interval)
	b.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: errors.New("no answer within 10s")}
	for _, e := range []metric.Entity{entity(metric.Node, "n3", "", "", ""), entity(metric.Pod, "n3", "shop", "lost", "")} {
		for _, g := range []metric.Group{metric.CPU, metric.Memory} {
			b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: e, Group: g, Reason: metric.NodeTimeout, Evidence: metric.Evidence{Err: b.Err}})
		}
	}
	write(b)

	pod := func(namespace, name, node, app string, phase cluster.Phase) *cluster.Pod {
		return &cluster.Pod{
			PodRef: metric.PodRef{Namespace: metric.Namespace(namespace), Name: metric.PodName(name)},
			UID:    metric.PodUID(name + "-uid"), Node: metric.NodeName(node), Phase: phase,
			Labels: map[string]string{"app": app, "tier": "front"},
		}
	}
	node := func(name, zone string) *cluster.Node {
		return &cluster.Node{
			Name: metric.NodeName(name), Labels: map[string]string{"zone": zone},
			Addresses: []cluster.NodeAddress{{Type: "Hostname", Address: name + ".example"}},
		}
	}
	var facts *cluster.Facts
	return view{sink.Snapshot()}, facts.With(cluster.FactsChange{
		Synced: true, At: noon,
		Nodes: []*cluster.Node{node("n1", "a"), node("n2", "b"), node("n3", "b")},
		Pods: []*cluster.Pod{
			pod("shop", "web-1", "n1", "web", cluster.Running),
			pod("shop", "web-2", "n2", "web", cluster.Running),
			pod("shop", "web-3", "", "web", cluster.Pending),
			pod("shop", "lost", "n3", "lost", cluster.Running),
			pod("bank", "vault", "n1", "vault", cluster.Running),
		},
	})
}

// handlerOf returns a handler that serves v and facts at now.
func handlerOf(v ModelReader, facts *cluster.Facts) http.Handler {
	return NewHandler(Options{
		Snapshot:   func() ModelReader { return v },
		Facts:      func() *cluster.Facts { return facts },
		Sources:    func() []explain.SourceState { return nil },
		Now:        func() time.Time { return now },
		Resolution: interval,
	})
}

// get sends a request to a handler.
func get(t testing.TB, h http.Handler, method, target string) *http.Response {
	t.Helper()
	return record(h, httptest.NewRequest(method, target, nil))
}

// record returns the answer of a handler.
func record(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}
