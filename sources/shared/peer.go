package shared

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/internal/recording"
)

// peer reads the stream of another replica.
type peer struct {
	x      *Exchange
	member Member
	stop   context.CancelFunc
	// streamEnded is closed when the current stream ends; nil if there is no stream.
	streamEnded atomic.Pointer[chan struct{}]
}

// lost returns a channel that is closed when the current stream ends. It returns nil if there is no
// stream.
func (p *peer) lost() <-chan struct{} {
	if p == nil {
		return nil
	}
	if c := p.streamEnded.Load(); c != nil {
		return *c
	}
	return nil
}

// follow reads the streams of the peer, one after the other, until ctx ends.
func (p *peer) follow(ctx context.Context) {
	log := p.x.o.Logger.With(zap.String("replica", p.member.Name))
	for logged := false; ; {
		hadStream, err := p.readStream(ctx)
		if ctx.Err() != nil {
			return
		}
		if hadStream || !logged {
			log.Info("no stream from another replica: this one reads its nodes too", zap.Error(err))
			logged = true
		}
		select {
		case <-time.After(p.x.o.Retry):
		case <-ctx.Done():
			return
		}
	}
}

// readStream reads one stream to its end. It reports whether the stream was established.
func (p *peer) readStream(ctx context.Context) (hadStream bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(p.x.o.Silence, func() { cancel(errors.New("it has sent nothing for too long")) })
	defer silence.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.member.URL, nil)
	if err != nil {
		return false, fmt.Errorf("make request: %w", err)
	}
	response, err := p.member.Transport.RoundTrip(request)
	if err != nil {
		return false, contextError(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("the answer has status %s", response.Status)
	}
	reader, err := recording.NewReader(response.Body)
	if err != nil {
		return false, contextError(ctx, err)
	}
	defer reader.Close()
	ended := make(chan struct{})
	defer close(ended)
	for {
		f, err := reader.Next()
		if err != nil {
			return hadStream, contextError(ctx, err)
		}
		silence.Reset(p.x.o.Silence)
		if !hadStream {
			hadStream = true
			p.streamEnded.Store(&ended)
			defer p.streamEnded.Store(nil)
		}
		if f.Kind == recording.Round {
			p.x.take(p.member.Name, f.Batch)
		}
	}
}

// contextError returns the context's cause if ctx has ended, else err.
func contextError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
