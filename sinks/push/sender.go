package push

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/config"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/internal/humanize"
)

// Send sends one request of the queue with Sender.Post. rejected is how many items of an accepted
// request the receiver rejects.
type Send func(ctx context.Context, request []byte) (rejected int, err error)

// Sender sends requests from a queue, the oldest first and one at a time.
type Sender struct {
	// Transport makes the connections, and adds the credentials and headers of Options.HTTP.
	Transport http.RoundTripper

	o      Options
	things string
	queue  *queue
	// protocol is the name of the sink, and the suffix of the files of wal.
	protocol string
	wal      *wal // nil without Options.WAL, and while its folder cannot be used
	meters   *meters
	send     Send
	// unread counts the bodies of the request that is being sent which the transport may still read. Only Run
	// uses the pointer.
	unread *atomic.Int32
	// spare has at most one request that was sent, for the next one: allocating each is a quarter of all
	// garbage of a weir that sends OTLP.
	spare chan []byte
	// filling returns how many items are in no full request yet.
	filling func() int
	// failing means that the last try of a request failed. Only Run uses it.
	failing bool
	// lost is how many items were rejected since the loss was last logged. Only Run uses both.
	lost       int
	lossLogged time.Time
	trouble    atomic.Pointer[trouble]
}

// trouble is why the receiver accepts nothing, and since when. nil means that it accepts requests.
type trouble struct {
	since time.Time
	err   error // of the last try
}

// lossInterval is the time between two messages that the receiver rejects requests.
const lossInterval = time.Minute

// NewSender returns a Sender. The names of its metrics begin with weir_NAME; things are what it
// sends, such as samples. Send is set before Run. Run must be called, because it closes the
// write-ahead log. The error is about certificates, credentials or the folder of the log.
func NewSender(o Options, name, things string) (*Sender, error) {
	o = o.WithDefaults()
	client, err := config.NewClientFromConfig(o.HTTP, name)
	if err != nil {
		return nil, fmt.Errorf("reach the receiver: %w", err)
	}
	s := &Sender{Transport: client.Transport, o: o, things: things, protocol: name, queue: newQueue(o.Queue), unread: new(atomic.Int32), spare: make(chan []byte, 1), filling: func() int { return 0 }}
	s.meters = newMeters(s, "weir_"+name, things)
	if err := s.restore(); err != nil {
		return nil, fmt.Errorf("open the write-ahead log: %w", err)
	}
	return s, nil
}

// SetSend sets the function that sends a request. It is called before Run.
func (s *Sender) SetSend(send Send) { s.send = send }

// SetFilling sets the function that returns how many items are in no full request yet, for a metric.
// It is called before Run.
func (s *Sender) SetFilling(filling func() int) { s.filling = filling }

// Put queues a request with a number of items. The oldest item is from since.
func (s *Sender) Put(request []byte, items int, since time.Time) {
	s.meters.dropped.Add(float64(s.queue.put(request, items, since)))
}

// Buffer returns an empty slice for the next request: the memory of one that was sent, or nil.
func (s *Sender) Buffer() []byte {
	select {
	case sent := <-s.spare:
		return sent[:0]
	default:
		return nil
	}
}

// recycle keeps a request that was sent, unless somebody may still read it: a transport can answer before
// it has read a body, and the log is written beside.
func (s *Sender) recycle(request []byte) {
	if s.o.WAL != "" || s.unread.Load() > 0 {
		return
	}
	select {
	case s.spare <- request:
	default:
	}
}

// Run sends the queue until ctx ends, and then for at most Options.Grace. It calls flush often: flush
// puts what has waited for at least the given time into the queue. Run always returns nil: weir does
// not end because a receiver does not answer.
func (s *Sender) Run(ctx context.Context, flush func(longest time.Duration)) error {
	defer (&http.Client{Transport: s.Transport}).CloseIdleConnections()
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s.next(ctx) {
			s.drain(sending)
		}
		flush(0)
		s.drain(sending)
	}()
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		s.keepWAL(ended)
	}()
	// flush adds the sums, too, which are due every Interval.
	tick := time.NewTicker(max(min(s.o.Flush, s.o.Interval)/2, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			flush(s.o.Flush)
		case <-ctx.Done():
			grace := time.AfterFunc(s.o.Grace, stop)
			defer grace.Stop()
			<-ended
			select {
			case <-logged:
			case <-time.After(s.o.Grace): // the disk of the log does not answer
			}
			s.reportWaiting()
			return nil
		}
	}
}

// next waits until there is a request to send; false if ctx ended.
func (s *Sender) next(ctx context.Context) bool {
	select {
	case <-s.queue.more:
		return true
	case <-ctx.Done():
		return false
	}
}

// drain sends all queued requests.
func (s *Sender) drain(ctx context.Context) {
	for ctx.Err() == nil {
		p, ok := s.queue.first()
		if !ok {
			return
		}
		s.unread = new(atomic.Int32)
		rejected, err := s.send(ctx, p.body)
		switch {
		case err == nil:
			rejected = min(rejected, p.items)
			s.meters.sent.Add(float64(p.items - rejected))
			s.meters.rejected.Add(float64(rejected))
			s.queue.done()
			s.recycle(p.body)
			s.succeeded()
		case ctx.Err() != nil:
			s.queue.postpone()
		default:
			s.queue.done()
			s.failing = false // the receiver answers
			s.meters.rejected.Add(float64(p.items))
			s.reportLoss(p.items, err)
		}
	}
}

// Trouble returns since when the receiver has accepted nothing, and the error of the last try. The error
// is nil if it accepted the last request, or if there was none.
func (s *Sender) Trouble() (since time.Time, err error) {
	if t := s.trouble.Load(); t != nil {
		return t.since, t.err
	}
	return time.Time{}, nil
}

func (s *Sender) noteTrouble(err error) {
	since, _ := s.Trouble()
	if since.IsZero() {
		since = time.Now()
	}
	s.trouble.Store(&trouble{since, err})
}

// reportRetry counts and logs a try that failed.
func (s *Sender) reportRetry(err error) {
	s.noteTrouble(err)
	s.meters.retries.Inc()
	if !s.failing {
		s.failing = true
		s.o.Logger.Warn("the receiver does not accept "+s.things+" now; they wait in the queue", zap.String("url", humanize.URL(s.o.URL)), zap.Error(err))
	}
}

// Rejected logs why the receiver rejects some items of a request, and returns their number. Send
// calls it.
func (s *Sender) Rejected(items int, reason string) int {
	if items > 0 || reason != "" {
		s.o.Logger.Warn("the receiver rejects some "+s.things+"; they are lost", zap.Int(s.things, items), zap.String("reason", humanize.Excerpt(reason, maxText)))
	}
	return max(items, 0)
}

// reportLoss logs that a request is lost: at once, and of a receiver that rejects all requests, once a
// minute, so that the log has one error and not thousands.
func (s *Sender) reportLoss(items int, err error) {
	s.noteTrouble(err)
	s.lost += items
	if time.Since(s.lossLogged) < lossInterval {
		return
	}
	s.o.Logger.Error("the receiver rejects "+s.things+"; they are lost", zap.String("url", humanize.URL(s.o.URL)), zap.Int(s.things, s.lost), zap.Error(err))
	s.lost, s.lossLogged = 0, time.Now()
}

func (s *Sender) succeeded() {
	s.trouble.Store(nil)
	if s.failing {
		s.failing = false
		s.o.Logger.Info("the receiver accepts "+s.things+" again", zap.String("url", humanize.URL(s.o.URL)))
	}
}
