package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// Limits are the most time and memory that one answer of the API server may take. Without them, an
// API server that hangs stops weir, and a collection that somebody filled takes its memory.
type Limits struct {
	// Silence is the longest time without a byte of an answer. An open watch may be silent for
	// longer: client-go checks that its connection is alive.
	Silence time.Duration
	// Bytes is the longest body, after decompression. Watches have no limit, because each of their
	// changes is one object, and the API server limits those to 3 MB.
	Bytes int64
}

// DefaultLimits are those of clients without limits of their own. The longest answers are lists of
// HorizontalPodAutoscalers: 5,000 of them take 15 MB.
var DefaultLimits = Limits{Silence: 30 * time.Second, Bytes: 64 << 20}

// ErrTooLarge is in the error of an answer that is longer than its limit.
var ErrTooLarge = errors.New("the answer is too large")

// ErrSilent is in the error of a request if no byte of its answer arrived for Limits.Silence.
var ErrSilent = errors.New("the API server does not answer")

// Limit returns a copy of a configuration. Its clients keep these limits, and those of the original.
func (l Limits) Limit(kube *rest.Config) *rest.Config {
	kube = rest.CopyConfig(kube)
	kube.Wrap(l.Transport)
	return kube
}

// Transport returns a transport that sends requests with next, and keeps these limits.
func (l Limits) Transport(next http.RoundTripper) http.RoundTripper {
	return &limitedTransport{next, l}
}

// ListConfig returns a copy of a configuration for a client that lists many objects: answers have at
// most maxBytes, and are protobuf, which costs both sides much less than JSON.
func ListConfig(kube *rest.Config, maxBytes int64) *rest.Config {
	kube = Limits{Silence: DefaultLimits.Silence, Bytes: maxBytes}.Limit(kube)
	kube.ContentType = "application/vnd.kubernetes.protobuf"
	kube.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return kube
}

// limitedTransport sends requests with another transport, and keeps limits.
type limitedTransport struct {
	next   http.RoundTripper
	limits Limits
}

// WrappedRoundTripper lets client-go find the transport, to close its connections.
func (t *limitedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	silent := fmt.Errorf("%w for %v", ErrSilent, t.limits.Silence)
	silence := time.AfterFunc(t.limits.Silence, func() { cancel(silent) })
	response, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		silence.Stop()
		defer cancel(nil)
		if cause := context.Cause(ctx); errors.Is(cause, ErrSilent) {
			return nil, cause
		}
		return nil, err
	}
	body := &limitedBody{ReadCloser: response.Body, ctx: ctx, cancel: cancel, silence: silence, limits: t.limits, left: t.limits.Bytes}
	if isWatch(r) {
		silence.Stop()
		body.silence, body.left = nil, 1<<63-1
	}
	response.Body = body
	return response, nil
}

// isWatch reports whether a request asks for changes as they happen.
func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// limitedBody is the body of an answer.
type limitedBody struct {
	io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc
	silence *time.Timer // nil for a watch
	limits  Limits
	left    int64 // bytes that may still arrive
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, b.limits.Bytes)
	}
	if b.silence == nil {
		return n, err
	}
	if err == nil && n > 0 {
		b.silence.Reset(b.limits.Silence)
	} else if cause := context.Cause(b.ctx); err != nil && errors.Is(cause, ErrSilent) {
		err = cause
	}
	return n, err
}

// Close implements io.Closer.
func (b *limitedBody) Close() error {
	if b.silence != nil {
		b.silence.Stop()
	}
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
