package shared

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// replica is an Exchange with a server. It counts its own reads.
type replica struct {
	*Exchange
	name   string
	server *httptest.Server
	reads  atomic.Int64
}

func newReplica(t *testing.T, name string, o Options) *replica {
	t.Helper()
	r := &replica{Exchange: New(o), name: name}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.kill)
	return r
}

// kill ends a replica like a crash.
func (r *replica) kill() {
	if r.server == nil {
		return
	}
	r.Close()
	r.server.CloseClientConnections()
	r.server.Close()
	r.server = nil
}

// meet makes all replicas members of each other, and waits until all streams are open.
func meet(t *testing.T, all ...*replica) {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	var members []Member
	for _, r := range all {
		members = append(members, Member{Name: r.name, URL: r.server.URL, Transport: transport})
	}
	for _, r := range all {
		r.SetMembers(r.name, members)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		silent := 0
		for _, r := range all {
			for _, p := range r.members.Load().peers {
				if p.lost() == nil {
					silent++
				}
			}
		}
		if silent == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of the streams are not heard", silent)
		}
		time.Sleep(time.Millisecond) // a real connection needs some time
	}
}

// read reads one round of a node through a replica.
func (r *replica) read(node string, round int, fails error) (*metric.Batch, error) {
	b := &metric.Batch{Source: "kubelet:resource", Node: metric.NodeName(node), Interval: 15 * time.Second}
	err := r.Read(context.Background(), b, func(_ context.Context, b *metric.Batch) error {
		r.reads.Add(1)
		fill(b, round)
		return fails
	})
	return b, err
}

func fill(b *metric.Batch, round int) {
	b.Resolution, b.Cores, b.Exhaustive, b.Bytes, b.NodeTime = time.Millisecond, 8, true, 1234, int64(round)*1e9
	b.Began = time.Unix(1_800_000_000+int64(round)*15, 0).UTC()
	b.Ended = b.Began.Add(20 * time.Millisecond)
	for c := range 3 {
		s := b.Add(metric.Entity{Kind: metric.Container, Node: b.Node, Namespace: "shop", Pod: "web", Name: fmt.Sprint("c", c)})
		s.Times[metric.CPU] = b.Began.UnixNano()
		s.Values.Set(metric.CPUUsage, float64(round)*1.5e9)
		s.Instance.Start, s.Instance.Origin = 1_700_000_000e9, metric.StartReported
	}
}

// equal compares the parts of batches that the pipeline uses.
func equal(t *testing.T, got, want *metric.Batch) {
	t.Helper()
	options := []cmp.Option{
		cmpopts.IgnoreUnexported(metric.Batch{}, metric.Sample{}), cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0),
		cmp.Comparer(func(a, b metric.Values) bool {
			for id := range metric.NumMetrics {
				x, okX := a.Get(id)
				if y, okY := b.Get(id); x != y || okX != okY {
					return false
				}
			}
			return true
		}),
	}
	cmptest.Equal(t, "batch", want, got, options...)
}

// TestEachNodeIsReadOnce checks that two replicas read each node once in each round, and that both
// have every batch.
func TestEachNodeIsReadOnce(t *testing.T) {
	o := Options{Patience: time.Minute, Silence: time.Minute} // long enough for a busy machine
	a, b := newReplica(t, "a", o), newReplica(t, "b", o)
	meet(t, a, b)
	const nodes, rounds = 40, 5
	for n := range nodes {
		for _, r := range []*replica{a, b} {
			r.Expect("kubelet:resource", metric.NodeName(fmt.Sprint("node-", n)))
		}
	}
	for round := range rounds {
		var wait sync.WaitGroup
		for n := range nodes {
			node := fmt.Sprint("node-", n)
			var want error
			if n == 7 {
				want = &metric.ReadError{Reason: metric.NodeTimeout, Err: context.DeadlineExceeded}
			}
			for _, r := range []*replica{a, b} {
				wait.Go(func() {
					got, err := r.read(node, round, want)
					var read *metric.ReadError
					if errors.As(err, &read) != (want != nil) || want != nil && read.Reason != metric.NodeTimeout {
						t.Errorf("%s: error %v, want %v", node, err, want)
					}
					full := &metric.Batch{Source: got.Source, Node: got.Node, Interval: got.Interval}
					fill(full, round)
					equal(t, got, full)
				})
			}
		}
		wait.Wait()
	}
	x, y := a.reads.Load(), b.reads.Load()
	if x+y != nodes*rounds || x < nodes*rounds/4 || y < nodes*rounds/4 {
		t.Errorf("the replicas read %d and %d times, want %d together", x, y, nodes*rounds)
	}
}

// TestALostReplica checks that a lost, slow or silent replica loses no reads. The other replica
// reads its nodes: at once if there is no stream, otherwise after Patience.
func TestALostReplica(t *testing.T) {
	a, b := newReplica(t, "a", Options{}), newReplica(t, "b", Options{Patience: 10 * time.Millisecond})
	meet(t, a, b)
	theirs := "" // a node that a owns
	for n := 0; theirs == ""; n++ {
		if name := fmt.Sprint("node-", n); owner(b.members.Load().all, name) == "a" {
			theirs = name
		}
	}
	if _, err := b.read(theirs, 1, nil); err != nil || b.reads.Load() != 1 {
		t.Errorf("error %v after %d reads: a has not read the node, so b should have", err, b.reads.Load())
	}
	// A late batch is used in the next round.
	if _, err := a.read(theirs, 2, nil); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if len(b.mail.box(metric.SourceKey{Source: "kubelet:resource", Node: metric.NodeName(theirs)})) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("what a read does not arrive")
		}
	}
	got, err := b.read(theirs, 3, nil)
	if err != nil || got.NodeTime != 2e9 || b.reads.Load() != 1 {
		t.Errorf("got round %d and %v after %d reads, want the round that came", got.NodeTime/1e9, err, b.reads.Load())
	}

	lost := b.members.Load().peers["a"].lost()
	a.kill()
	<-lost
	began := time.Now()
	b.o.Patience = time.Hour // it must not wait for a replica without a stream
	if _, err := b.read(theirs, 4, nil); err != nil || b.reads.Load() != 2 || time.Since(began) > 5*time.Second {
		t.Errorf("error %v after %d reads", err, b.reads.Load())
	}
	b.SetMembers("b", []Member{{Name: "b"}})
	if _, err := b.read(theirs, 5, nil); err != nil || b.reads.Load() != 3 {
		t.Errorf("error %v after %d reads: b is alone", err, b.reads.Load())
	}
}

// TestSilence checks that a stream without keep-alive records is closed.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := New(Options{Silence: time.Second, Patience: time.Hour, Retry: 2 * time.Hour})
		p := follow(t, x, func(w http.ResponseWriter, r *http.Request) {
			var h hub
			s, err := h.open(r.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer h.drop(s)
			_, _ = w.Write(s.packed(nil))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		b := &replica{Exchange: x, name: "b"}
		began := time.Now()
		for n := range 20 { // some reads wait until the stream is closed; none waits for Patience
			if _, err := b.read(fmt.Sprint("node-", n), 1, nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.reads.Load(); got != 20 || p.lost() != nil {
			t.Errorf("%d reads, want 20; heard: %v", got, p.lost() != nil)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("the stream was closed after %v, want %v", took, time.Second)
		}
	})
}

// TestSignsOfLife checks that keep-alive records keep a stream open that has no data.
func TestSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Silence: time.Second}
		a := New(o)
		defer a.Close()
		select {
		case <-follow(t, New(o), a.ServeHTTP).lost():
			t.Error("a is no longer heard")
		case <-time.After(time.Minute):
		}
	})
}

// follow makes x, as b, read a stream that h serves as a. It is for synctest: the connection is in memory.
func follow(t *testing.T, x *Exchange, h http.HandlerFunc) *peer {
	t.Helper()
	connections := make(listener)
	server := &http.Server{Handler: h}
	go server.Serve(connections)
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		connections <- there
		return here, nil
	}}
	t.Cleanup(func() {
		x.Close()
		transport.CloseIdleConnections()
		server.Close()
	})
	x.SetMembers("b", []Member{{Name: "a", URL: "http://a", Transport: transport}, {Name: "b"}})
	synctest.Wait()
	p := x.members.Load().peers["a"]
	if p.lost() == nil {
		t.Fatal("the stream is not heard")
	}
	return p
}

// listener is a net.Listener for connections in memory.
type listener chan net.Conn

func (l listener) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l listener) Close() error { close(l); return nil }

func (l listener) Addr() net.Addr { return &net.UnixAddr{} }

func TestOwner(t *testing.T) {
	members := []Member{{Name: "weir-a_1"}, {Name: "weir-a_2"}, {Name: "weir-a_3"}}
	const nodes = 30_000
	count, moved := map[string]int{}, 0
	for n := range nodes {
		name := fmt.Sprintf("ip-10-0-%d-%d.ec2.internal", n/256, n%256)
		whose := owner(members, name)
		count[whose]++
		if with := owner(append(members[:3:3], Member{Name: "weir-a_4"}), name); with != whose {
			moved++
			if with != "weir-a_4" {
				t.Fatalf("%s moved from %s to %s, which is not new", name, whose, with)
			}
		}
	}
	for _, m := range members {
		if n := count[m.Name]; n < nodes*32/100 || n > nodes*35/100 {
			t.Errorf("%s owns %d of %d nodes", m.Name, n, nodes)
		}
	}
	if moved < nodes*24/100 || moved > nodes*26/100 {
		t.Errorf("%d of %d nodes moved to a fourth", moved, nodes)
	}
	if got := owner(nil, "n"); got != "" {
		t.Errorf("%q owns a node of nobody's", got)
	}
}

// A batch that arrives too late for its round is not used in the next one: a node whose owner was
// slow once has the numbers of the same round again.
func TestALateBatchIsNotTheNextRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := New(Options{})
		stream := make(chan struct{})
		p := &peer{x: x}
		p.streamEnded.Store(&stream)
		x.members.Store(&members{self: "a", all: []Member{{Name: "b"}}, peers: map[string]*peer{"b": p}})
		r := &replica{Exchange: x, name: "a"}
		began := time.Now()
		arrive := func(round int, after time.Duration) {
			time.AfterFunc(time.Until(began.Add(time.Duration(round)*15*time.Second+after)), func() {
				b := &metric.Batch{Source: "kubelet:resource", Node: "n1"}
				fill(b, round)
				x.mail.put(b)
			})
		}
		arrive(0, time.Second)
		arrive(1, 3*time.Second) // later than the patience of 2 s
		arrive(2, time.Second)
		arrive(3, -time.Second) // the owner reads a little earlier
		for round := range 4 {
			time.Sleep(time.Until(began.Add(time.Duration(round) * 15 * time.Second)))
			b, err := r.read("n1", round, nil)
			if err != nil || b.NodeTime != int64(round)*1e9 {
				t.Errorf("round %d has the numbers of round %d (%v)", round, b.NodeTime/1e9, err)
			}
		}
		if got := r.reads.Load(); got != 1 {
			t.Errorf("read %d times here, want once", got)
		}
	})
}

// Callers with the right to the stream cannot open so many that the memory for what waits is not
// bounded.
func TestStreamsAreBounded(t *testing.T) {
	r := newReplica(t, "a", Options{})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	codes := map[int]int{}
	for range 2 * maxStreams {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		codes[response.StatusCode]++
	}
	if codes[http.StatusOK] != maxStreams || codes[http.StatusServiceUnavailable] != maxStreams {
		t.Errorf("%d streams were asked for: answers %v, want %d of 200 and the others of 503", 2*maxStreams, codes, maxStreams)
	}
}

// A member sends reads of its own nodes only.
func TestOnlyTheOwnerSendsANode(t *testing.T) {
	x := New(Options{})
	all := []Member{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	x.members.Store(&members{self: "a", all: all})
	for i := range 100 {
		b := &metric.Batch{Source: "kubelet:resource", Node: metric.NodeName(fmt.Sprint("n", i))}
		for _, from := range []string{"b", "c"} {
			x.mail.box(b.Key())
			x.take(from, b)
			got, want := poll(x.mail.box(b.Key())).batch != nil, owner(all, string(b.Node)) == from
			if got != want {
				t.Errorf("%s from %s: kept %v, want %v", b.Node, from, got, want)
			}
		}
	}
}

// A member invents nodes that it would own. Nothing is kept of them, nor of nodes that are gone.
func TestInventedNodesAreNotKept(t *testing.T) {
	x := New(Options{})
	x.members.Store(&members{self: "a", all: []Member{{Name: "b"}}})
	here := &metric.Batch{Source: "kubelet:resource", Node: "n1"}
	x.mail.box(here.Key())
	for i := range 1000 {
		x.take("b", &metric.Batch{Source: "kubelet:resource", Node: metric.NodeName(fmt.Sprint("invented-", i))})
	}
	x.take("b", here)
	if got := len(x.mail.boxes); got != 1 {
		t.Errorf("batches of %d sources are kept, want that of n1 alone", got)
	}
	if poll(x.mail.box(here.Key())).batch == nil {
		t.Error("the batch of n1 was dropped")
	}
	x.Forget("n1")
	if got := len(x.mail.boxes); got != 0 {
		t.Errorf("%d boxes are left of a node that is gone", got)
	}
}
