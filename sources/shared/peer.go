package shared

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/recording"
)

// peer is another replica, whose stream is followed.
type peer struct {
	x      *Exchange
	member Member
	stop   context.CancelFunc
	// hears is closed when the stream that is being read breaks off; nil while there
	// is none.
	hears atomic.Pointer[chan struct{}]
}

// lost returns what is closed when the peer is no longer heard; nil if it is not now.
func (p *peer) lost() <-chan struct{} {
	if p == nil {
		return nil
	}
	if c := p.hears.Load(); c != nil {
		return *c
	}
	return nil
}

// follow reads the peer's stream, again and again, until ctx ends.
func (p *peer) follow(ctx context.Context) {
	log := p.x.o.Logger.With(zap.String("replica", p.member.Name))
	for told := false; ; {
		heard, err := p.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard || !told {
			log.Info("another replica is not heard: this one reads its nodes too", zap.Error(err))
			told = true
		}
		retry := time.NewTimer(p.x.o.Retry)
		select {
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
			return
		}
	}
}

// listen reads one stream to its end. It reports whether there was one.
func (p *peer) listen(ctx context.Context) (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(p.x.o.Silence, func() { cancel(errors.New("it has gone silent")) })
	defer silence.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.member.URL, nil)
	if err != nil {
		return false, fmt.Errorf("make request: %w", err)
	}
	response, err := p.member.Transport.RoundTrip(request)
	if err != nil {
		return false, because(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("it answers with status %s", response.Status)
	}
	reader, err := recording.NewReader(bufio.NewReaderSize(response.Body, 64<<10))
	if err != nil {
		return false, because(ctx, err)
	}
	defer reader.Close()
	lost := make(chan struct{})
	defer close(lost)
	for {
		f, err := reader.Next()
		if err != nil {
			return heard, because(ctx, err)
		}
		silence.Reset(p.x.o.Silence)
		if !heard {
			heard = true
			p.hears.Store(&lost)
			defer p.hears.Store(nil)
		}
		if f.Kind == recording.Round {
			p.x.mail.put(f.Batch)
		}
	}
}

// because returns why ctx was ended, if it was, and else err.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
