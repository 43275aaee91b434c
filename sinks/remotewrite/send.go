package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/client_golang/exp/api/remote"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/humanize"
)

// Run sends the queue until ctx ends, and then for at most Options.Grace. It always returns
// nil: weir does not end because a receiver does not answer.
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
				s.o.Logger.Warn("samples in the queue are lost", zap.Int("samples", samples))
			}
			return nil
		}
	}
}

// next waits until there is a request to send; false if ctx ended.
func (s *Sink) next(ctx context.Context) bool {
	select {
	case <-s.queue.more:
		return true
	case <-ctx.Done():
		return false
	}
}

// drain sends all queued requests, the oldest first.
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
			s.o.Logger.Error("the receiver rejects samples; they are lost", zap.Int("samples", p.samples), zap.Error(err))
		}
	}
}

// deliver sends one request until the receiver accepts or rejects it.
func (s *Sink) deliver(ctx context.Context, message []byte) error {
	if s.old {
		return s.deliverOld(ctx, message)
	}
	err := s.try(ctx, remote.WriteV2MessageType, message)
	s.modern = s.modern || err == nil
	if s.modern || !s.status.mayBeOld() {
		return s.advise(err)
	}
	if e := s.deliverOld(ctx, message); e != nil {
		return s.advise(errors.Join(err, e))
	}
	s.old = true
	s.o.Logger.Info("the receiver supports remote write 1.0 only", zap.NamedError("to 2.0 it says", err))
	return nil
}

func (s *Sink) deliverOld(ctx context.Context, message []byte) error {
	old, err := downgrade(message)
	if err != nil {
		return fmt.Errorf("make a request of version 1.0: %w", err)
	}
	return s.try(ctx, remote.WriteV1MessageType, old)
}

// try sends a message. The library retries temporary errors until ctx ends.
func (s *Sink) try(ctx context.Context, kind remote.WriteMessageType, message []byte) error {
	failing := false
	_, err := s.api.Write(ctx, kind, encoded(message), remote.WithWriteRetryCallback(func(err error) {
		s.meters.retries.Inc()
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the URL
		}
		if !failing {
			failing = true
			s.o.Logger.Warn("the receiver does not accept samples now; they wait in the queue", zap.String("url", humanize.URL(s.o.URL)), zap.Error(err))
		}
	}))
	if failing && err == nil {
		s.o.Logger.Info("the receiver accepts samples again", zap.String("url", humanize.URL(s.o.URL)))
	}
	return err
}

// advise adds advice to an error.
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

// maxAnswer is how many bytes of an answer are read, and maxText how many of them an error quotes.
const (
	maxAnswer = 4096
	maxText   = 300
)

// maxRetryAfter is the longest wait before the next try that a receiver can ask for.
const maxRetryAfter = time.Minute

// status stores the status code of the last answer, because the library has it only in the text
// of errors. Requests are sent one at a time. It passes on only what is bounded of an answer:
// the library reads all of the body, waits as long as Retry-After says, and follows redirects
// with the headers of the sink's options.
type status struct {
	next http.RoundTripper
	code int // 0 if there was no answer
}

// RoundTrip satisfies http.RoundTripper. A redirect is an error, after which the library tries
// again: the samples wait until the URL is right.
func (s *status) RoundTrip(r *http.Request) (*http.Response, error) {
	s.code = 0
	resp, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	s.code = resp.StatusCode
	// An answer that breaks off has its status all the same.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	resp.Body.Close()
	if resp.StatusCode/100 == 3 {
		return nil, fmt.Errorf("the receiver redirects to %s: put that address in --sink", humanize.Excerpt(humanize.URL(resp.Header.Get("Location")), maxText))
	}
	resp.Body = io.NopCloser(strings.NewReader(humanize.Excerpt(string(body), maxText)))
	resp.Status = fmt.Sprint(resp.StatusCode, " ", http.StatusText(resp.StatusCode))
	if after := resp.Header.Get("Retry-After"); after != "" {
		resp.Header.Set("Retry-After", strconv.Itoa(retryAfter(after, time.Now())))
	}
	return resp, nil
}

// retryAfter returns the seconds of a Retry-After header, from 0 to maxRetryAfter.
func retryAfter(header string, now time.Time) int {
	seconds, err := strconv.ParseInt(header, 10, 64)
	if at, e := http.ParseTime(header); e == nil {
		seconds, err = at.Unix()-now.Unix(), nil
	}
	if err != nil {
		return 0
	}
	return int(min(max(seconds, 0), int64(maxRetryAfter.Seconds())))
}

// mayBeOld reports whether the last answer may be that of a receiver without version 2.0: it
// says so, it takes the message for an invalid one of version 1.0, or it accepts the message
// without reporting how many samples it stored.
func (s *status) mayBeOld() bool {
	return s.code == http.StatusUnsupportedMediaType || s.code == http.StatusBadRequest || s.code/100 == 2
}

// encoded is an encoded message, with the methods that the library calls.
type encoded []byte

// SizeVT returns the message's size in bytes.
func (e encoded) SizeVT() int { return len(e) }

// MarshalToSizedBufferVT copies the message.
func (e encoded) MarshalToSizedBufferVT(b []byte) (int, error) { return copy(b, e), nil }
