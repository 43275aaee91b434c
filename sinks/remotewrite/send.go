package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/client_golang/exp/api/remote"
	"go.uber.org/zap"
)

// Run sends what is queued until ctx ends, and then for Options.Grace more. It
// returns nil: a receiver that is away is no reason to end.
func (s *Sink) Run(ctx context.Context) error {
	defer s.client.CloseIdleConnections()
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s.next(ctx) {
			s.drain(sending)
		}
		s.flush(0)
		s.drain(sending)
	}()
	tick := time.NewTicker(s.o.Flush / 2)
	defer tick.Stop()
	sums := time.NewTicker(s.o.Interval)
	defer sums.Stop()
	for {
		select {
		case <-tick.C:
			s.flush(s.o.Flush)
		case now := <-sums.C:
			s.totals(now)
		case <-ctx.Done():
			grace := time.AfterFunc(s.o.Grace, stop)
			defer grace.Stop()
			<-ended
			if _, samples, _ := s.queue.state(); samples > 0 {
				s.o.Logger.Warn("what the receiver has not taken is lost", zap.Int("samples", samples))
			}
			return nil
		}
	}
}

// next waits until there is something to send; false if ctx ended.
func (s *Sink) next(ctx context.Context) bool {
	select {
	case <-s.queue.more:
		return true
	case <-ctx.Done():
		return false
	}
}

// drain sends all that is queued, the oldest first. A request that was begun when ctx
// ended stays in the count of what is lost.
func (s *Sink) drain(ctx context.Context) {
	for ctx.Err() == nil {
		p, ok := s.queue.first()
		if !ok {
			return
		}
		message, err := snappy.Decode(nil, p.bytes)
		if err == nil {
			err = s.deliver(ctx, message)
		}
		switch {
		case err == nil:
			s.meters.sent.Add(float64(p.samples))
		case ctx.Err() != nil:
			s.meters.dropped.Add(float64(p.samples))
		default:
			s.meters.rejected.Add(float64(p.samples))
			s.o.Logger.Error("the receiver refuses samples, which are lost", zap.Int("samples", p.samples), zap.Error(err))
		}
	}
}

// deliver sends one request, again and again until it is taken or refused.
func (s *Sink) deliver(ctx context.Context, message []byte) error {
	if s.old {
		return s.deliverOld(ctx, message)
	}
	err := s.try(ctx, remote.WriteV2MessageType, message)
	s.modern = s.modern || err == nil
	if s.modern || !s.status.unknown() {
		return s.advise(err)
	}
	if e := s.deliverOld(ctx, message); e != nil {
		return s.advise(errors.Join(err, e))
	}
	s.old = true
	s.o.Logger.Info("the receiver knows remote write 1.0 alone", zap.NamedError("to 2.0 it says", err))
	return nil
}

func (s *Sink) deliverOld(ctx context.Context, message []byte) error {
	old, err := downgrade(message)
	if err != nil {
		return fmt.Errorf("make a request of version 1.0: %w", err)
	}
	return s.try(ctx, remote.WriteV1MessageType, old)
}

// try sends a message, with the library's patience: what may pass is tried again for
// as long as ctx lasts.
func (s *Sink) try(ctx context.Context, kind remote.WriteMessageType, message []byte) error {
	failing := false
	_, err := s.api.Write(ctx, kind, encoded(message), remote.WithWriteRetryCallback(func(err error) {
		s.meters.retries.Inc()
		if !failing {
			failing = true
			s.o.Logger.Warn("the receiver cannot be written to; what is measured waits in the queue", zap.String("url", s.o.URL), zap.Error(err))
		}
	}))
	if failing && err == nil {
		s.o.Logger.Info("the receiver takes samples again", zap.String("url", s.o.URL))
	}
	return err
}

// advise adds to a refusal what to do about it.
func (s *Sink) advise(err error) error {
	switch {
	case err == nil:
		return nil
	case s.status.code == http.StatusNotFound:
		return fmt.Errorf("%w: is it the path of remote write? A Prometheus takes it at /api/v1/write, if it runs with --web.enable-remote-write-receiver", err)
	case s.status.code == http.StatusUnauthorized || s.status.code == http.StatusForbidden:
		return fmt.Errorf("%w: see the sink's token-file, username and header options", err)
	}
	return err
}

// status remembers what the receiver answered last: the library tells it in words
// only. Requests follow each other, so there is one last.
type status struct {
	next http.RoundTripper
	code int // 0: no answer
}

// RoundTrip satisfies http.RoundTripper.
func (s *status) RoundTrip(r *http.Request) (*http.Response, error) {
	s.code = 0
	resp, err := s.next.RoundTrip(r)
	if err == nil {
		s.code = resp.StatusCode
	}
	return resp, err
}

// unknown reports whether the last answer may be that of a receiver which does not know
// version 2.0: it says so, takes the message for a broken one of version 1.0, or
// takes it and does not say that it kept any of it.
func (s *status) unknown() bool {
	return s.code == http.StatusUnsupportedMediaType || s.code == http.StatusBadRequest || s.code/100 == 2
}

// encoded is a message that is encoded already, as the library takes messages.
type encoded []byte

// SizeVT returns the message's size in bytes.
func (e encoded) SizeVT() int { return len(e) }

// MarshalToSizedBufferVT copies the message.
func (e encoded) MarshalToSizedBufferVT(b []byte) (int, error) { return copy(b, e), nil }
