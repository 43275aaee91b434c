package shared

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
)

// ContentType is the content type of a stream.
const ContentType = "application/vnd.weir.recording"

// maxWaiting bounds the bytes that wait for a slow replica. If there are more, the stream ends, and
// that replica reads nodes itself until it has a new stream.
const maxWaiting = 64 << 20

// maxStreams bounds the streams, because each can have so many bytes that wait. A replica without a
// stream reads nodes itself.
const maxStreams = 16

var errTooManyStreams = fmt.Errorf("%d replicas have a stream, which is the most", maxStreams)

// gather is the time for which batches are collected before they are compressed and sent.
const gather = 20 * time.Millisecond

// writeTimeout is the limit on the time in which a replica must receive one piece.
const writeTimeout = 30 * time.Second

// hub has a stream for each replica that requested one.
type hub struct {
	mu      sync.Mutex
	streams map[*stream]struct{}
	ended   bool
}

// stream is the data that is sent to one replica.
type stream struct {
	more chan struct{} // it has room for one signal: there is something to send
	ctx  context.Context
	end  context.CancelFunc

	mu     sync.Mutex
	buf    bytes.Buffer
	writer *recording.Writer // it writes into buf
}

// publish adds a batch to every stream.
func (h *hub) publish(b *metric.Batch, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) == 0 {
		return
	}
	b.Err = err
	now := time.Now()
	for s := range h.streams {
		s.add(b, now)
	}
	b.Err = nil // the caller sets it
}

func (s *stream) add(b *metric.Batch, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	// If the batch is too large to be written, the other replica reads the node itself.
	_ = s.writer.Round(b, nil, now)
	if s.buf.Len() > maxWaiting {
		s.end()
	}
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// packed appends all waiting data to dst, or a keep-alive record if there is none.
func (s *stream) packed(dst []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buf.Len() == 0 {
		_ = s.writer.Facts(nil, time.Now()) // it first writes a Begin if nothing was written yet
		_ = s.writer.Gone("", "")
	}
	_ = s.writer.Flush() // it writes into memory and cannot fail
	dst = append(dst, s.buf.Bytes()...)
	s.buf.Reset()
	return dst
}

func (h *hub) open(ctx context.Context) (s *stream, err error) {
	s = &stream{more: make(chan struct{}, 1)}
	s.ctx, s.end = context.WithCancel(ctx)
	if s.writer, err = recording.NewWriter(&s.buf, recording.Options{Flush: time.Hour}); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= maxStreams {
		s.end()
		return nil, errors.Join(errTooManyStreams, s.writer.Close())
	}
	if h.ended {
		s.end()
		return s, nil
	}
	if h.streams == nil {
		h.streams = map[*stream]struct{}{}
	}
	h.streams[s] = struct{}{}
	return s, nil
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for s := range h.streams {
		s.end()
	}
}

func (h *hub) drop(s *stream) {
	h.mu.Lock()
	delete(h.streams, s)
	h.mu.Unlock()
	s.end()
	_ = s.writer.Close() // it writes into memory and cannot fail
}

// serve sends one stream. It sends a keep-alive record at least once in every alive.
func (h *hub) serve(w http.ResponseWriter, r *http.Request, alive time.Duration) {
	s, err := h.open(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer h.drop(s)
	controller := http.NewResponseController(w)
	w.Header().Set("Content-Type", ContentType)
	w.WriteHeader(http.StatusOK)
	tick := time.NewTicker(alive)
	defer tick.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	var out []byte
	for {
		out = s.packed(out[:0])
		// The deadline is for one piece, because the stream has no end. Some connections do not support
		// deadlines.
		_ = controller.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := w.Write(out); err != nil {
			return
		}
		if err := controller.Flush(); err != nil {
			return
		}
		select {
		case <-s.more:
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
		pause.Reset(gather)
		select {
		case <-pause.C:
		case <-s.ctx.Done():
			return
		}
	}
}
