package shared

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/metric"
)

// Member is a replica that shares the reading of nodes.
type Member struct {
	// Name is unique among the members. It changes with a restart.
	Name string
	// URL is the address of the member's Exchange. It is not used for this replica itself.
	URL string
	// Transport sends requests to URL.
	Transport http.RoundTripper
}

// Options configures an Exchange. The zero Options is ready to use.
type Options struct {
	// Patience is how long to wait for the batch of a node's owner. After that time the node is read
	// here too. Default 2 s.
	Patience time.Duration
	// Retry is the time between two attempts to reach another replica. Default 1 s.
	Retry time.Duration
	// Silence is how long a stream may be silent before it is closed. Default 5 s. A replica sends
	// something at least every Silence/4.
	Silence time.Duration
	// Logger gets a line when the stream of a replica ends. Default: none.
	Logger *zap.Logger
	// Registerer registers the weir_shared_ metrics. Default: none.
	Registerer prometheus.Registerer
}

func (o Options) withDefaults() Options {
	o.Patience = cmp.Or(max(o.Patience, 0), 2*time.Second)
	o.Retry = cmp.Or(max(o.Retry, 0), time.Second)
	o.Silence = cmp.Or(max(o.Silence, 0), 5*time.Second)
	o.Logger = cmp.Or(o.Logger, zap.NewNop())
	return o
}

// Exchange shares reads with other replicas. Several goroutines may call its methods. Without
// members, or as the only member, it reads every node.
type Exchange struct {
	o       Options
	mail    mailbox
	hub     hub
	meters  *meters
	members atomic.Pointer[members]

	mu struct {
		sync.Mutex
		ended bool
		wait  sync.WaitGroup
	}
}

// members are the replicas that share the reading, as far as this replica knows.
type members struct {
	self  string
	all   []Member
	peers map[string]*peer // by name; of all but self
}

// New returns an Exchange without members.
func New(o Options) *Exchange {
	x := &Exchange{o: o.withDefaults()}
	x.mail.boxes = map[metric.SourceKey]chan letter{}
	x.mail.free.New = func() any { return new(metric.Batch) }
	x.members.Store(&members{})
	x.meters = newMeters(x)
	return x
}

// SetMembers sets the members. all has every member and this replica; self is the name of this
// replica. SetMembers opens streams to new members and closes the streams to members that are gone.
func (e *Exchange) SetMembers(self string, all []Member) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.ended {
		return
	}
	before := e.members.Load().peers
	now := make(map[string]*peer, len(all))
	for _, m := range all {
		if m.Name == self {
			continue
		}
		if p := before[m.Name]; p != nil && p.member.URL == m.URL && p.member.Transport == m.Transport {
			now[m.Name] = p
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		p := &peer{x: e, member: m, stop: stop}
		now[m.Name] = p
		e.mu.wait.Go(func() { p.follow(ctx) })
	}
	for name, p := range before {
		if now[name] != p {
			p.stop()
		}
	}
	e.members.Store(&members{self: self, all: all, peers: now})
}

// Close ends the streams to and from other replicas.
func (e *Exchange) Close() error {
	e.mu.Lock()
	e.mu.ended = true
	for _, p := range e.members.Load().peers {
		p.stop()
	}
	e.mu.Unlock()
	e.hub.close()
	e.mu.wait.Wait()
	return nil
}

// Read fills b with a read of a source of a node. It calls do if this replica owns the node, or if
// it gets nothing from the owner in time. Otherwise it uses the owner's batch. The caller sets
// b.Source and b.Node.
func (e *Exchange) Read(ctx context.Context, b *metric.Batch, do func(context.Context, *metric.Batch) error) error {
	m := e.members.Load()
	ownerName := owner(m.all, string(b.Node))
	box := e.mail.box(b.Key()) // for own nodes, too: another replica may own them in the next round
	if ownerName == "" || ownerName == m.self {
		err := do(ctx, b)
		e.meters.self.Inc()
		e.hub.publish(b, err)
		return err
	}
	if got := e.await(ctx, m.peers[ownerName], b, box); got != nil {
		e.meters.peer.Inc()
		b.CopyFrom(got)
		e.mail.recycle(got)
		err := b.Err
		b.Err = nil // the caller sets it
		return err
	}
	e.meters.late.Inc()
	return do(ctx, b)
}

// Expect keeps what other replicas send of a source of a node that will be read here.
func (e *Exchange) Expect(source string, node metric.NodeName) {
	e.mail.box(metric.SourceKey{Source: source, Node: node})
}

// Forget drops what other replicas sent of a node that is no longer read here.
func (e *Exchange) Forget(node metric.NodeName) { e.mail.forget(node) }

// await waits for the batch of a peer for the read into b. It returns nil if the batch does not
// arrive in time.
func (e *Exchange) await(ctx context.Context, p *peer, b *metric.Batch, box <-chan letter) *metric.Batch {
	lost := p.lost()
	received := poll(box)
	// One that arrived in the first half of the interval was too late for the round before. It is not
	// used, or the node's numbers would be a round late from then on.
	tooOld := b.Interval > 0 && time.Since(received.arrived) > b.Interval/2
	if received.batch != nil && (lost == nil || tooOld) {
		e.mail.recycle(received.batch)
		received.batch = nil
	}
	if lost == nil || received.batch != nil {
		return received.batch
	}
	select {
	case received := <-box:
		return received.batch
	case <-lost:
	case <-time.After(e.o.Patience):
	case <-ctx.Done():
	}
	return poll(box).batch
}

// take keeps a batch of a member for the next read of its node. It keeps none of a node that the
// member does not own, which would replace the owner's, and none of a node that is not read here.
func (e *Exchange) take(from string, b *metric.Batch) {
	if owner(e.members.Load().all, string(b.Node)) == from {
		e.mail.put(b)
	}
}

// ServeHTTP streams what this replica reads to another replica, until one of them ends the stream.
func (e *Exchange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.hub.serve(w, r, e.o.Silence/4)
}
