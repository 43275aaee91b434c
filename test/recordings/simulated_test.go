package recordings

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/cadvisor"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
	"github.com/weir-metrics/weir/test/simulator"
)

// troubles are the faults of a simulated cluster.
var troubles = []string{
	"restart pod=%[1]s at=70s", "restart pod=%[1]s at=110s for=25s", "replace pod=%[1]s at=150s",
	"duplicate pod=%[1]s at=40s for=80s style=old-instance", "duplicate pod=%[1]s at=60s for=90s style=two-lines",
	"duplicate pod=%[1]s at=200s for=60s style=two-paths", "jitter pod=%[1]s start=±700ms at=30s for=200s",
	"missing pod=%[1]s at=100s for=40s", "zero pod=%[1]s at=120s for=30s", "stale pod=%[1]s at=60s for=100s",
	"clockstep node=%[2]s at=130s by=-90s", "clockstep node=%[2]s at=220s by=45m", "stale node=%[2]s at=180s for=40s",
	"twonodes pod=%[1]s node=%[3]s at=90s for=90s",
}

// TestSimulatedClusters checks that the replays of simulated clusters give the
// same numbers, whatever their faults.
func TestSimulatedClusters(t *testing.T) {
	secondReads := 0
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { secondReads += simulate(t, seed) })
	}
	if secondReads == 0 {
		t.Error("no second read was made: the test shows less than it should")
	}
}

// node is one endpoint of a node.
type node struct {
	*simulator.Node
	endpoint simulator.Endpoint
	parser   parser
	batch    metric.Batch
	next     time.Time
}

func simulate(t *testing.T, seed uint64) (secondReads int) {
	r := rand.New(rand.NewPCG(seed, 9))
	start := time.Unix(1_800_000_000, 12345)
	o := simulator.Options{Nodes: 3, Pods: 8, Containers: 2, Seed: seed, Start: start, Fresh: seed%3 == 0}
	bare, err := simulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range troubles {
		n := bare.Nodes()[r.IntN(2)]
		pod := n.Pods()[i%len(n.Pods())]
		f, err := simulator.Parse(fmt.Sprintf(text+"%.0[2]s%.0[3]s%.0[1]s", pod.Namespace+"/"+pod.Name, n.Name, bare.Nodes()[2].Name))
		if err != nil {
			t.Fatal(err)
		}
		// A fault that comes while its pod is between two lives matches nothing.
		if _, err := simulator.New(with(o, f)); err == nil {
			o = with(o, f)
		}
	}
	fleet, err := simulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*node
	for i, n := range fleet.Nodes() {
		for _, e := range []simulator.Endpoint{simulator.Resource, []simulator.Endpoint{simulator.Summary, simulator.CAdvisor}[(uint64(i)+seed)%2]} {
			s := &node{Node: n, endpoint: e, next: start.Add(time.Duration(r.Int64N(15e9)))}
			s.batch = metric.Batch{Source: e.String(), Node: metric.NodeName(n.Name), Interval: 15 * time.Second}
			switch e {
			case simulator.Resource:
				s.parser, s.batch.Resolution = resource.New(), resource.Clock
			case simulator.CAdvisor:
				s.parser, s.batch.Resolution = cadvisor.New(), cadvisor.Clock
			default:
				s.parser, s.batch.Resolution = summary.New(), summary.Clock
			}
			nodes = append(nodes, s)
		}
	}
	l := newLive(t, start)
	var facts *cluster.Facts
	known := map[metric.PodUID]time.Time{}
	for range 22 * len(nodes) {
		s := nodes[0]
		for _, o := range nodes {
			if o.next.Before(s.next) {
				s = o
			}
		}
		now := s.next
		s.next = now.Add(15*time.Second + time.Duration(r.Int64N(2e9)-1e9))
		if r.IntN(3) == 0 {
			facts = factsAt(t, fleet, known, now)
		}
		b := &s.batch
		read := func(p parser, e simulator.Endpoint, b *metric.Batch) {
			body := fleet.Append(nil, s.Node, e, now)
			b.Bytes, b.Cores = len(body), float64(s.Cores)
			b.NodeTime = s.Clock(now).Truncate(time.Second).UnixNano()
			b.Err = p.Parse(body, payload.Request{Node: b.Node, Received: now.UnixNano()}, b)
		}
		b.Reset()
		b.Began, b.Ended = now.Add(-20*time.Millisecond), now
		switch r.IntN(12) {
		case 0:
			b.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: fmt.Errorf("get it: %w", context.DeadlineExceeded)}
		default:
			read(s.parser, s.endpoint, b)
		}
		var readSecond func() *metric.Batch
		if s.endpoint == simulator.Resource && r.IntN(4) > 0 {
			readSecond = func() *metric.Batch {
				w := &metric.Batch{Source: b.Source, Node: b.Node, Began: now, Ended: now, Interval: b.Interval, Resolution: summary.Clock}
				read(summary.New(), simulator.SummaryCPUMemory, w)
				return w
			}
		}
		l.round(b, facts, now, readSecond)
	}
	return l.replay()
}

func with(o simulator.Options, f simulator.Fault) simulator.Options {
	o.Faults = append(append([]simulator.Fault(nil), o.Faults...), f)
	return o
}

// factsAt returns the facts of the API server. A pod's KnownAt is when it was
// first seen.
func factsAt(t *testing.T, fleet *simulator.Fleet, known map[metric.PodUID]time.Time, now time.Time) *cluster.Facts {
	t.Helper()
	var all corev1.PodList
	for _, n := range fleet.Nodes() {
		var pods corev1.PodList
		if err := json.Unmarshal(fleet.Append(nil, n, simulator.PodList, now.Add(-time.Second)), &pods); err != nil {
			t.Fatal(err)
		}
		all.Items = append(all.Items, pods.Items...)
	}
	facts := informer.FactsFromList(nil, &all, now)
	facts.EachPod(func(pod *cluster.Pod) bool {
		if _, ok := known[pod.UID]; !ok {
			known[pod.UID] = now
		}
		pod.KnownAt = known[pod.UID]
		return true
	})
	return facts
}
